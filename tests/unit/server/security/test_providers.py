"""providers: which methods the names in the settings are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.server.authentication_parts import authentication_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.openid_provider import OpenIdProvider, OpenIdSettings
from pulsar_py.server.security.provider_chain import ProviderChain
from pulsar_py.server.security.providers import AuthenticationSettings, authenticators_of
from pulsar_py.server.security.token_provider import TokenProvider, TokenSettings


def methods(clock: Clock, *names: str) -> list[str]:
    settings = AuthenticationSettings(is_enabled=True, provider_names=names)
    return list(authenticators_of(settings, clock).providers)


@pytest.mark.parametrize(
    "name",
    [
        "tls",
        "AuthenticationProviderTls",
        "org.apache.pulsar.broker.authentication.AuthenticationProviderTls",
    ],
)
def test_java_names_and_short_ones(name: str) -> None:
    assert methods(SystemClock(), name) == ["tls"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("tls", "AuthenticationProviderTls"), "AuthenticationProviderTls stands there twice"),
        (("kerberos",), "kerberos is not offered"),
        (("org.apache.pulsar.broker.authentication.AuthenticationProviderSasl",), "Kerberos"),
        (("org.apache.pulsar.broker.authentication.AuthenticationProviderAthenz",), "service of"),
        (("com.example.Provider",), "com.example.Provider is not offered"),
        (("collections.OrderedDict",), "is no AuthenticationProvider: it has no method_name"),
        ((), "needs authenticationProviders"),
    ],
)
def test_what_is_none_is_named(names: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        methods(SystemClock(), *names)


def test_while_it_is_off_nothing_is_made() -> None:
    settings = AuthenticationSettings(provider_names=("no.such.Class",))
    assert not authenticators_of(settings, SystemClock()).is_enabled


class Badges:
    """A user's own, with settings."""

    method_name = "badge"
    settings: ClassVar = {"badgeServer": "", "badgeTimeoutSeconds": "5"}

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.given = settings

    def new_state(self, credentials: object) -> None: ...

    async def authenticate_http(self, credentials: object) -> None: ...


def test_a_users_own_declares_its_settings() -> None:
    name = f"{__name__}.Badges"
    texts = {"authenticationProviders": name, "badgeServer": " here "}
    config = BrokerConfig.from_texts(texts | {"authenticationEnabled": "true"})
    assert dict(config.replace(clusterName="c").provider_settings) == {"badgeServer": "here"}
    found = authenticators_of(authentication_settings(config), SystemClock()).providers["badge"]
    assert isinstance(found, Badges)
    assert found.given == {"badgeServer": "here", "badgeTimeoutSeconds": "5"}
    values = {"authenticationProviders": (name,), "badgeServer": "here"}
    assert dict(BrokerConfig.from_values(values).provider_settings) == {"badgeServer": "here"}


def test_a_setting_that_nobody_declares_is_unknown() -> None:
    for providers in ("", "tls", f"{__name__}.Badges"):
        with pytest.raises(ConfigurationError, match="badgeColour"):
            BrokerConfig.from_texts({"authenticationProviders": providers, "badgeColour": "red"})


def test_tokens_of_two_kinds_are_tried_in_turn() -> None:
    settings = AuthenticationSettings(
        is_enabled=True,
        provider_names=(
            "token",
            "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID",
        ),
        token=TokenSettings(secret_key="data:;base64," + "AAAA" * 16),
        openid=OpenIdSettings(allowed_issuers=("https://i",), allowed_audiences=("a",)),
    )
    chain = authenticators_of(settings, SystemClock()).providers["token"]
    assert isinstance(chain, ProviderChain)
    assert [type(each) for each in chain.providers] == [TokenProvider, OpenIdProvider]
