"""providers: which methods the names in the settings are."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.server.security.providers import AuthenticationSettings, authenticators_of


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
        (("tls", "AuthenticationProviderTls"), "two for the method tls"),
        (("kerberos",), "kerberos is not offered"),
        (("org.apache.pulsar.broker.authentication.AuthenticationProviderSasl",), "not offered"),
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
