"""Makes a broker's authentication, authorization and rules for proxies from its settings.

Source: AuthenticationService, AuthorizationService in Pulsar's broker.
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
from pulsar_py.server.security.issuers import IssuerTimes
from pulsar_py.server.security.openid_provider import OpenIdSettings
from pulsar_py.server.security.providers import AuthenticationSettings
from pulsar_py.server.security.token_provider import TokenSettings
from pulsar_py.server.security.trusted_proxies import TrustedProxies

__all__ = [
    "ProxyRules",
    "authentication_settings",
    "authorization_of",
    "authorization_settings",
    "openid_settings",
    "proxy_rules",
]

_OWN: Final = (
    "PulsarAuthorizationProvider",
    "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider",
)


def authentication_settings(config: BrokerConfig) -> AuthenticationSettings:
    """The settings of the methods of authentication."""
    return AuthenticationSettings(
        is_enabled=config.authenticationEnabled,
        provider_names=config.authenticationProviders,
        anonymous_role=config.anonymousUserRole,
        is_original_authenticated=config.authenticateOriginalAuthData,
        token=TokenSettings(
            secret_key=config.tokenSecretKey,
            public_key=config.tokenPublicKey,
            public_alg=config.tokenPublicAlg,
            auth_claim=config.tokenAuthClaim,
            audience_claim=config.tokenAudienceClaim,
            audience=config.tokenAudience,
            allowed_clock_skew_seconds=config.tokenAllowedClockSkewSeconds,
            revocation_file=config.tokenRevocationFile,
        ),
        openid=openid_settings(config),
        basic_users=config.basicAuthConf,
        own=config.provider_settings,
    )


def openid_settings(config: BrokerConfig) -> OpenIdSettings:
    """The settings by which tokens of OpenID issuers are checked."""
    return OpenIdSettings(
        allowed_issuers=config.openIDAllowedTokenIssuers,
        allowed_audiences=config.openIDAllowedAudiences,
        role_claim=config.openIDRoleClaim or "sub",
        trust_path=config.openIDTokenIssuerTrustCertsFilePath,
        leeway_seconds=config.openIDAcceptedTimeLeewaySeconds,
        times=IssuerTimes(
            refresh_seconds=config.openIDCacheRefreshAfterWriteSeconds,
            expiration_seconds=config.openIDCacheExpirationSeconds,
            miss_seconds=config.openIDKeyIdCacheMissRefreshSeconds,
            max_issuers=config.openIDCacheSize,
        ),
        connect_seconds=config.openIDHttpConnectionTimeoutMillis / 1000,
        read_seconds=config.openIDHttpReadTimeoutMillis / 1000,
        needs_https=config.openIDRequireIssuersUseHttps,
        key_set_file=config.openIDKeySetFile,
        revocation_file=config.tokenRevocationFile,
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
