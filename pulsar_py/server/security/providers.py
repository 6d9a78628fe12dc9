"""The providers that `authenticationProviders` names, by Apache Pulsar's names or Python's.

A class of users' own declares the settings that it reads from broker.conf as a class attribute
`settings`, names with their defaults, and is given them when it is made:

    class Badges(AuthenticationProvider):
        method_name = "badge"
        settings = {"badgeServer": "", "badgeTimeoutSeconds": "5"}

        def __init__(self, settings: Mapping[str, str]) -> None: ...

Source: AuthenticationService in Pulsar's broker.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import (
    AuthenticationCounts,
    AuthenticationProvider,
    Authenticators,
)
from pulsar_py.server.security.basic_provider import BasicProvider
from pulsar_py.server.security.openid_provider import OpenIdProvider, OpenIdSettings
from pulsar_py.server.security.provider_chain import ProviderChain
from pulsar_py.server.security.tls_provider import TlsProvider
from pulsar_py.server.security.token_provider import TokenProvider, TokenSettings

__all__ = ["AuthenticationSettings", "authenticators_of", "own_settings"]

_JAVA_PACKAGE: Final = "org.apache.pulsar.broker.authentication."
_JAVA_OPENID: Final = "oidc."
_OFFERED: Final = (
    f"{_JAVA_PACKAGE}AuthenticationProviderToken",
    f"{_JAVA_PACKAGE}AuthenticationProviderTls",
    f"{_JAVA_PACKAGE}AuthenticationProviderBasic",
    f"{_JAVA_PACKAGE}oidc.AuthenticationProviderOpenID",
)
_NOT_OFFERED: Final = {
    "sasl": " (Kerberos needs a key distribution centre and GSSAPI)",
    "kerberos": " (it needs a key distribution centre and GSSAPI)",
    "athenz": " (its tokens are those of a service of its own)",
}
"""Why, by the short name."""


class AuthenticationSettings(Struct, frozen=True, kw_only=True):
    """What a broker's methods of authentication are made of."""

    is_enabled: bool = False
    provider_names: Sequence[str] = ()
    anonymous_role: str = ""
    is_original_authenticated: bool = False
    token: TokenSettings = field(default_factory=TokenSettings)
    openid: OpenIdSettings = field(default_factory=OpenIdSettings)
    basic_users: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    """Values of the settings that users' own providers declare, those that were given."""


def authenticators_of(settings: AuthenticationSettings, clock: Clock) -> Authenticators:
    """The methods of a broker; none while authentication is off.

    Raises:
        ConfigurationError: A provider is unknown or can't be made, or there is none.
    """
    if not settings.is_enabled:
        return Authenticators()
    names = [name for name in settings.provider_names if name]
    if not names:
        raise ConfigurationError(
            "authenticationEnabled=true needs authenticationProviders: token, tls, basic or openid"
        )
    found: dict[str, list[AuthenticationProvider]] = {}  # by method
    for name in names:
        provider = _provider_of(name, settings, clock)
        others = found.setdefault(provider.method_name, [])
        if any(type(each) is type(provider) for each in others):
            raise ConfigurationError(
                f"authenticationProviders: {name} stands there twice: name it once"
            )
        others.append(provider)
    return Authenticators(
        {
            method: each[0] if len(each) == 1 else ProviderChain(each)
            for method, each in found.items()
        },
        settings.anonymous_role or None,
        is_original_authenticated=settings.is_original_authenticated,
        counts=AuthenticationCounts(clock),
    )


def _provider_of(
    name: str, settings: AuthenticationSettings, clock: Clock
) -> AuthenticationProvider:
    own: Mapping[str, Callable[[], AuthenticationProvider]] = {
        "token": lambda: TokenProvider(settings.token, clock),
        "tls": lambda: TlsProvider(clock),
        "basic": lambda: BasicProvider(settings.basic_users, clock),
        "openid": lambda: OpenIdProvider(settings.openid, clock),
    }
    short = (
        name.removeprefix(_JAVA_PACKAGE)
        .removeprefix(_JAVA_OPENID)
        .removeprefix("AuthenticationProvider")
        .lower()
    )
    make = own.get(short)
    if make is not None:
        return make()
    if _is_foreign(name):
        reason = _NOT_OFFERED.get(short, "")
        raise ConfigurationError(
            f"authenticationProviders: {name} is not offered{reason}; there are "
            f"{', '.join(_OFFERED)}, and Python classes as module.Class"
        )
    return _users_own(name, settings.own)


def _is_foreign(name: str) -> bool:
    """Whether a name can't be that of a Python class."""
    return "." not in name or name.startswith(("org.apache.", "io.streamnative.", "com."))


def own_settings(provider_names: Sequence[str]) -> Mapping[str, str]:
    """The settings that users' own providers declare, with their defaults."""
    found: dict[str, str] = {}
    for name in provider_names:
        if not _is_foreign(name):
            found.update(getattr(_class_of(name), "settings", {}))
    return found


def _class_of(name: str) -> Any:  # Any: a class of users' own
    module_name, _, class_name = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"authenticationProviders: {name}: {error}") from error


def _users_own(name: str, given: Mapping[str, str]) -> AuthenticationProvider:
    kind = _class_of(name)
    declared: Mapping[str, str] | None = getattr(kind, "settings", None)
    if declared is None:
        provider = kind()
    else:
        provider = kind({each: given.get(each, default) for each, default in declared.items()})
    missing = [
        each
        for each in ("method_name", "new_state", "authenticate_http")
        if not hasattr(provider, each)
    ]
    if missing:
        raise ConfigurationError(
            f"authenticationProviders: {name} is no AuthenticationProvider: it has no "
            f"{', '.join(missing)}"
        )
    made: AuthenticationProvider = provider
    return made
