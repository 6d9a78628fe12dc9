"""The providers that `authenticationProviders` names, by Apache Pulsar's names or Python's.

Source: AuthenticationService in Pulsar's broker.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import AuthenticationProvider, Authenticators
from pulsar_py.server.security.basic_provider import BasicProvider
from pulsar_py.server.security.tls_provider import TlsProvider
from pulsar_py.server.security.token_provider import TokenProvider, TokenSettings

__all__ = ["AuthenticationSettings", "authenticators_of"]

_JAVA_PACKAGE: Final = "org.apache.pulsar.broker.authentication."


class AuthenticationSettings(Struct, frozen=True, kw_only=True):
    """What a broker's methods of authentication are made of."""

    is_enabled: bool = False
    provider_names: Sequence[str] = ()
    anonymous_role: str = ""
    is_original_authenticated: bool = False
    token: TokenSettings = field(default_factory=TokenSettings)
    basic_users: str = ""


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
            "authenticationEnabled=true needs authenticationProviders: token, tls or basic"
        )
    providers: dict[str, AuthenticationProvider] = {}
    for name in names:
        provider = _provider_of(name, settings, clock)
        if provider.method_name in providers:
            raise ConfigurationError(
                f"authenticationProviders: two for the method {provider.method_name}"
            )
        providers[provider.method_name] = provider
    return Authenticators(
        providers,
        settings.anonymous_role or None,
        is_original_authenticated=settings.is_original_authenticated,
    )


def _provider_of(
    name: str, settings: AuthenticationSettings, clock: Clock
) -> AuthenticationProvider:
    own: Mapping[str, Callable[[], AuthenticationProvider]] = {
        "token": lambda: TokenProvider(settings.token, clock),
        "tls": TlsProvider,
        "basic": lambda: BasicProvider(settings.basic_users, clock),
    }
    short = name.removeprefix(_JAVA_PACKAGE).removeprefix("AuthenticationProvider").lower()
    make = own.get(short)
    if make is not None:
        return make()
    if name.startswith(("org.apache.", "io.streamnative.")) or "." not in name:
        raise ConfigurationError(
            f"authenticationProviders: {name} is not offered; there are "
            f"{', '.join(f'{_JAVA_PACKAGE}AuthenticationProvider{each.title()}' for each in own)}, "
            "and Python classes as module.Class"
        )
    return _users_own(name)


def _users_own(name: str) -> AuthenticationProvider:
    module_name, _, class_name = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"authenticationProviders: {name}: {error}") from error
    provider = kind()
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
