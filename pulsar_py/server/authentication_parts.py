"""Makes a broker's methods of authentication from its settings.

The broker imports it where its clients authenticate; a start of the others does without.

Source: AuthenticationService in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.issuers import IssuerTimes
from pulsar_py.server.security.openid_provider import OpenIdSettings
from pulsar_py.server.security.providers import AuthenticationSettings, authenticators_of
from pulsar_py.server.security.token_provider import TokenSettings

__all__ = ["authentication_settings", "configured_authenticators", "openid_settings"]


def configured_authenticators(config: BrokerConfig, clock: Clock) -> Authenticators:
    """The methods that the settings name.

    Raises:
        ConfigurationError: A provider is unknown or can't be made, or there is none.
    """
    return authenticators_of(authentication_settings(config), clock)


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
