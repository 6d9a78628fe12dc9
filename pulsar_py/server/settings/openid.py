"""Settings of OpenID Connect: allowed issuers, audiences, and how long their keys are kept.

Source: AuthenticationProviderOpenID in Pulsar's pulsar-broker-auth-oidc.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from pulsar_py.server.settings.declaring import Settings, setting
from pulsar_py.server.settings.security import AUTHENTICATION


class OpenIdConnectSettings(Settings):
    """The settings of broker.conf for the provider AuthenticationProviderOpenID."""

    openIDAllowedTokenIssuers: tuple[str, ...] = setting(
        default=(),
        category=AUTHENTICATION,
        doc="The issuers whose tokens are taken, as their claim `iss` names them: URLs below which "
        "`/.well-known/openid-configuration` says where the keys are.",
    )
    openIDAllowedAudiences: tuple[str, ...] = setting(
        default=(),
        category=AUTHENTICATION,
        doc="Whom tokens may be for: one of these has to be the claim `aud`, or in it.",
    )
    openIDRoleClaim: str = setting(
        default="sub",
        category=AUTHENTICATION,
        doc="Claim of such a token that has the role, a text or a list whose first text counts.",
    )
    openIDTokenIssuerTrustCertsFilePath: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="PEM file of the authorities that signed issuers' certificates; empty means those of "
        "the system.",
    )
    openIDAcceptedTimeLeewaySeconds: int = setting(
        default=0,
        minimum=0,
        category=AUTHENTICATION,
        doc="Seconds by which issuers' clocks may be wrong.",
    )
    openIDRequireIssuersUseHttps: bool = setting(
        default=True,
        category=AUTHENTICATION,
        doc="Whether issuers and their keys are asked by HTTPS alone.",
    )
    openIDCacheSize: int = setting(
        default=5,
        minimum=1,
        category=AUTHENTICATION,
        doc="The most issuers whose keys are kept.",
    )
    openIDCacheRefreshAfterWriteSeconds: int = setting(
        default=64_800,
        minimum=1,
        category=AUTHENTICATION,
        doc="Seconds after which keys are fetched again in the background.",
    )
    openIDCacheExpirationSeconds: int = setting(
        default=86_400,
        minimum=1,
        category=AUTHENTICATION,
        doc="Seconds after which keys that could not be fetched again are used no more.",
    )
    openIDKeyIdCacheMissRefreshSeconds: int = setting(
        default=300,
        minimum=0,
        category=AUTHENTICATION,
        doc="The least seconds between two fetches of keys because a token names an unknown one.",
    )
    openIDHttpConnectionTimeoutMillis: int = setting(
        default=10_000,
        minimum=1,
        category=AUTHENTICATION,
        doc="Milliseconds in which a connection with an issuer has to be made.",
    )
    openIDHttpReadTimeoutMillis: int = setting(
        default=10_000,
        minimum=1,
        category=AUTHENTICATION,
        doc="Milliseconds in which an issuer has to answer afterwards.",
    )
    openIDFallbackDiscoveryMode: str = setting(
        default="DISABLED",
        category=AUTHENTICATION,
        doc="How keys are found that discovery does not find; DISABLED, the only one that there "
        "is: a broker with another does not start.",
    )
    openIDKeySetFile: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="File of the issuers' keys (a JSON Web Key Set), used in place of discovery and read "
        "again when it changes. Apache Pulsar has none.",
    )
