"""security_parts: which rules of authorization the settings name."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import (
    AccessTarget,
    Authorization,
    AuthorizationSettings,
    Caller,
    PulsarAuthorization,
)
from pulsar_py.server.security.tls_provider import TlsProvider
from pulsar_py.server.security_parts import authorization_of, authorization_settings

SOMEBODY = Authenticators({"tls": TlsProvider(SystemClock())})


class EverybodyReads:
    """Rules of a user's own."""

    is_enabled = True

    def __init__(self, resources: Resources, settings: Callable[[], AuthorizationSettings]) -> None:
        self.settings = settings

    def is_valid(self, caller: Caller, *, may_name_itself: bool) -> bool:
        del caller
        return may_name_itself

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        del caller, action, target
        return True


class NoRules:
    def __init__(self, resources: Resources, settings: object) -> None:
        del resources, settings


def rules(authenticators: Authenticators = SOMEBODY, **settings: object) -> Authorization:
    config = BrokerConfig.from_values({"authorizationEnabled": True, **settings})
    return authorization_of(
        config, authenticators, cast("Resources", None), lambda: authorization_settings(config)
    )


def test_apache_pulsars_rules_are_the_default() -> None:
    assert isinstance(rules(), PulsarAuthorization)
    assert isinstance(
        rules(authorizationProvider="PulsarAuthorizationProvider"), PulsarAuthorization
    )
    assert not rules(authorizationEnabled=False).is_enabled


def test_rules_of_users_own_get_the_settings() -> None:
    made = rules(authorizationProvider=f"{__name__}.EverybodyReads", superUserRoles="root")
    assert isinstance(made, EverybodyReads)
    assert made.settings().super_user_roles == {"root"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("org.apache.pulsar.broker.authorization.MultiRolesTokenAuthorizationProvider", "offered"),
        ("com.example.NoSuchRules", "No module named 'com'"),
        ("Rules", "not offered"),
        (f"{__name__}.NoRules", "no Authorization: it has no is_enabled, is_valid, allows"),
        (f"{__name__}.Missing", "Missing"),
    ],
)
def test_rules_that_are_none(name: str, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        rules(authorizationProvider=name)


def test_rules_need_roles() -> None:
    with pytest.raises(ConfigurationError, match="needs authenticationEnabled=true"):
        rules(Authenticators())
