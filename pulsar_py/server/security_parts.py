"""Makes a broker's authorization and rules for proxies from its settings.

Source: AuthorizationService in Pulsar's broker.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.authorization import (
    Authorization,
    AuthorizationSettings,
    PulsarAuthorization,
    Unrestricted,
)
from pulsar_py.server.security.trusted_proxies import TrustedProxies

__all__ = [
    "ProxyRules",
    "authorization_of",
    "authorization_settings",
    "proxy_rules",
]

_OWN: Final = (
    "PulsarAuthorizationProvider",
    "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider",
)


class ProxyRules(Struct, frozen=True, kw_only=True):
    """Whose word about clients' addresses counts, by the way in which it is said."""

    binary: TrustedProxies = TrustedProxies()
    """Headers of the PROXY protocol before the binary protocol."""
    http: TrustedProxies = TrustedProxies()
    """The same before HTTP."""
    forwarded: TrustedProxies = TrustedProxies()
    """`X-Forwarded-For`."""


def proxy_rules(config: BrokerConfig) -> ProxyRules:
    """The proxies that are trusted to name their clients' addresses.

    Raises:
        ConfigurationError: Nobody's, though a setting says so, or an address is none.
    """
    wanted = {
        "haProxyProtocolEnabled": config.haProxyProtocolEnabled,
        "webServiceHaProxyProtocolEnabled": config.webServiceHaProxyProtocolEnabled,
        "webServiceTrustXForwardedFor": config.webServiceTrustXForwardedFor,
    }
    listed = TrustedProxies.parse("trustedProxyAddresses", config.trustedProxyAddresses)
    if any(wanted.values()) and not listed:
        name = next(name for name, is_wanted in wanted.items() if is_wanted)
        raise ConfigurationError(
            f"{name}=true needs trustedProxyAddresses, the addresses of the proxies: anybody else "
            "could claim to connect from anywhere"
        )
    nobody = TrustedProxies()
    return ProxyRules(
        binary=listed if config.haProxyProtocolEnabled else nobody,
        http=listed if config.webServiceHaProxyProtocolEnabled else nobody,
        forwarded=listed if config.webServiceTrustXForwardedFor else nobody,
    )


def authorization_settings(config: BrokerConfig) -> AuthorizationSettings:
    """The settings of authorization."""
    return AuthorizationSettings(
        super_user_roles=config.superUserRoles,
        proxy_roles=config.proxyRoles,
        has_wildcards=config.authorizationAllowWildcardsMatching,
    )


def authorization_of(
    config: BrokerConfig,
    authenticators: Authenticators,
    resources: Resources,
    settings: Callable[[], AuthorizationSettings],
) -> Authorization:
    """The rules of authorization; `settings` tells what they go by now.

    Raises:
        ConfigurationError: Nobody proves a role that it could go by, or there are no such rules.
    """
    if not config.authorizationEnabled:
        return Unrestricted()
    if not authenticators.is_enabled:
        raise ConfigurationError("authorizationEnabled=true needs authenticationEnabled=true")
    name = config.authorizationProvider
    if name in _OWN:
        return PulsarAuthorization(resources, settings)
    if "." not in name or name.startswith(("org.apache.", "io.streamnative.")):
        raise ConfigurationError(
            f"authorizationProvider={name} is not offered; there are PulsarAuthorizationProvider, "
            "and Python classes as module.Class"
        )
    return _users_own(name, resources, settings)


def _users_own(
    name: str, resources: Resources, settings: Callable[[], AuthorizationSettings]
) -> Authorization:
    module_name, _, class_name = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module_name), class_name)
        made: Authorization = kind(resources, settings)
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigurationError(f"authorizationProvider={name}: {error}") from error
    missing = [each for each in ("is_enabled", "is_valid", "allows") if not hasattr(made, each)]
    if missing:
        raise ConfigurationError(
            f"authorizationProvider={name} is no Authorization: it has no {', '.join(missing)}"
        )
    return made
