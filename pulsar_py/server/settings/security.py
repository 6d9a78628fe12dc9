"""Settings of TLS, authentication and authorization.

Source: ServiceConfiguration in Pulsar; its token, Basic and TLS providers of authentication.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from typing import Final

from pulsar_py.server.security.role_logging import RoleLogging
from pulsar_py.server.settings.declaring import Settings, setting

TLS: Final = "TLS"
AUTHENTICATION: Final = "Authentication"
AUTHORIZATION: Final = "Authorization"

_MAX_PORT: Final = 65_535
_KEY_NOTATION: Final = "`data:;base64,…`, `file:///path`, a path, or base64"


class SecuritySettings(Settings):
    """The settings of broker.conf for TLS, authentication and authorization."""

    brokerServicePortTls: int | None = setting(
        default=None,
        minimum=0,
        maximum=_MAX_PORT,
        category=TLS,
        doc="Port of the binary protocol over TLS; empty opens none, 0 takes a free one.",
    )
    webServicePortTls: int | None = setting(
        default=None,
        minimum=0,
        maximum=_MAX_PORT,
        category=TLS,
        doc="Port of administration and metrics over HTTPS; empty opens none, 0 takes a free one.",
    )
    tlsCertificateFilePath: str = setting(
        default="", category=TLS, doc="PEM file of the broker's certificate, with its chain."
    )
    tlsKeyFilePath: str = setting(
        default="", category=TLS, doc="PEM file of the key of the broker's certificate."
    )
    tlsTrustCertsFilePath: str = setting(
        default="",
        category=TLS,
        doc="PEM file of the authorities whose clients' certificates are accepted; empty asks no "
        "client for one.",
    )
    tlsAllowInsecureConnection: bool = setting(
        default=False,
        category=TLS,
        doc="Whether clients may connect whatever certificate they have. No certificate is asked "
        "for then, so none proves a role.",
    )
    tlsRequireTrustedClientCertOnConnect: bool = setting(
        default=False,
        category=TLS,
        doc="Whether a client without a trusted certificate is turned away in the handshake.",
    )
    tlsProtocols: frozenset[str] = setting(
        default=frozenset(),
        choices=("TLSv1.2", "TLSv1.3"),
        category=TLS,
        doc="Versions of TLS on the port of the binary protocol; empty means both.",
    )
    tlsCiphers: tuple[str, ...] = setting(
        default=(),
        category=TLS,
        doc="Cipher suites of TLS 1.2 on the port of the binary protocol, by OpenSSL's or the "
        "standard's names; empty means OpenSSL's own choice. Those of TLS 1.3 are always on.",
    )
    webServiceTlsProtocols: frozenset[str] = setting(
        default=frozenset(),
        choices=("TLSv1.2", "TLSv1.3"),
        category=TLS,
        doc="Versions of TLS on the port of HTTPS; empty means both.",
    )
    webServiceTlsCiphers: tuple[str, ...] = setting(
        default=(),
        category=TLS,
        doc="Cipher suites of TLS 1.2 on the port of HTTPS, as in `tlsCiphers`.",
    )
    tlsCertRefreshCheckDurationSec: int = setting(
        default=300,
        minimum=0,
        category=TLS,
        doc="Seconds between two looks whether the files of certificates, keys and authorities "
        "changed; 0 never looks again.",
    )
    tlsEnabledWithKeyStore: bool = setting(
        default=False,
        category=TLS,
        doc="Whether certificates, keys and authorities come from stores, not from PEM files.",
    )
    tlsKeyStoreType: str = setting(
        default="JKS", category=TLS, doc="Kind of the key store; PKCS12 is the one that is read."
    )
    tlsKeyStore: str = setting(
        default="", category=TLS, doc="PKCS#12 file of the broker's certificate and key."
    )
    tlsKeyStorePassword: str = setting(default="", category=TLS, doc="Password of the key store.")
    tlsTrustStoreType: str = setting(
        default="JKS", category=TLS, doc="Kind of the trust store; PKCS12 is the one that is read."
    )
    tlsTrustStore: str = setting(
        default="",
        category=TLS,
        doc="PKCS#12 file of the authorities whose clients' certificates are accepted.",
    )
    tlsTrustStorePassword: str = setting(
        default="", category=TLS, doc="Password of the trust store."
    )
    authenticationEnabled: bool = setting(
        default=False, category=AUTHENTICATION, doc="Whether clients have to authenticate."
    )
    authenticationProviders: tuple[str, ...] = setting(
        default=(),
        category=AUTHENTICATION,
        doc="The ways in which clients may prove it: Apache Pulsar's Java classes "
        "AuthenticationProviderToken, AuthenticationProviderTls, AuthenticationProviderBasic and "
        "AuthenticationProviderOpenID with or without their package, `token`, `tls`, `basic`, "
        "`openid`, or a Python class as `module.Class`.",
    )
    anonymousUserRole: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Role of clients that send no credentials; empty turns them away.",
    )
    authenticateOriginalAuthData: bool = setting(
        default=False,
        category=AUTHENTICATION,
        doc="Whether a proxy has to pass on its client's credentials, which are checked here; "
        "otherwise its word counts.",
    )
    authenticateMetricsEndpoint: bool = setting(
        default=False,
        category=AUTHENTICATION,
        doc="Whether `/metrics` needs authentication, too.",
    )
    authenticationRoleLoggingAnonymizer: RoleLogging = setting(
        default=RoleLogging.NONE,
        category=AUTHENTICATION,
        doc="How roles stand in logs: as they are, as `[REDACTED]`, or as a digest in base64.",
    )
    tokenSecretKey: str = setting(
        default="",
        category=AUTHENTICATION,
        doc=f"Secret key of tokens signed by HS256, HS384 or HS512: {_KEY_NOTATION}.",
    )
    tokenPublicKey: str = setting(
        default="",
        category=AUTHENTICATION,
        doc=f"Public key of tokens, SubjectPublicKeyInfo in DER: {_KEY_NOTATION}.",
    )
    tokenPublicAlg: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Algorithm of tokens signed with a private key: RS256 (also if empty), RS384, RS512, "
        "PS256, PS384, PS512, ES256, ES384 or ES512.",
    )
    tokenAuthClaim: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Claim of a token that has the role, a text or a list whose first text counts; empty "
        "means `sub`.",
    )
    tokenAudienceClaim: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Claim of a token that names whom it is for; empty asks for none.",
    )
    tokenAudience: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="What the claim `tokenAudienceClaim` has to be, or contain.",
    )
    tokenAllowedClockSkewSeconds: int = setting(
        default=0,
        minimum=0,
        category=AUTHENTICATION,
        doc="Seconds by which the clock of whoever signs tokens may be wrong.",
    )
    tokenRevocationFile: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="File of tokens that no longer count though they have not expired, a line each: "
        "`jti ID`, `sub NAME`, `sub NAME iat SECONDS` or `iat SECONDS` (issued before). Read "
        "again when it changes; connections of a revoked token end within a second. Apache "
        "Pulsar has none.",
    )
    tokenSettingPrefix: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Prefix of the names of the settings of tokens: with `my_`, `my_tokenSecretKey` is "
        "read in place of `tokenSecretKey`.",
    )
    basicAuthConf: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Lines `user:hash` for Basic authentication, hashes as `htpasswd` writes them: "
        f"{_KEY_NOTATION}.",
    )
    brokerClientAuthenticationPlugin: str = setting(
        default="org.apache.pulsar.client.impl.auth.AuthenticationDisabled",
        category=AUTHENTICATION,
        doc="The way in which a broker of a cluster proves who it is to the others, when it has "
        "their bundles moved or asks them for their part of an answer: the name's last word is "
        "AuthenticationToken, AuthenticationBasic or AuthenticationTls. It also says whether a "
        "broker with authentication makes its cluster, tenants and namespaces at the start: it "
        "does if this is set.",
    )
    brokerClientAuthenticationParameters: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="Its credentials: `token:TEXT` or `file:///PATH` for tokens, "
        '`{"userId":"NAME","password":"TEXT"}` for Basic, '
        "`tlsCertFile:PATH,tlsKeyFile:PATH` for TLS. The role has to be a super user's.",
    )
    brokerClientTlsEnabled: bool = setting(
        default=False,
        category=AUTHENTICATION,
        doc="Whether other brokers are spoken to by TLS; they are where they have no port in clear "
        "text, too.",
    )
    brokerClientTrustCertsFilePath: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="PEM file of the authorities that other brokers' certificates are trusted by; empty: "
        "the system's.",
    )
    brokerClientCertificateFilePath: str = setting(
        default="",
        category=AUTHENTICATION,
        doc="PEM file with the certificate that other brokers are shown; empty: none.",
    )
    brokerClientKeyFilePath: str = setting(
        default="", category=AUTHENTICATION, doc="PEM file with its private key."
    )
    tlsHostnameVerificationEnabled: bool = setting(
        default=False,
        category=AUTHENTICATION,
        doc="Whether another broker's certificate has to name its host.",
    )
    authorizationEnabled: bool = setting(
        default=False,
        category=AUTHORIZATION,
        doc="Whether roles may do only what they were allowed; needs `authenticationEnabled`.",
    )
    authorizationProvider: str = setting(
        default="org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider",
        category=AUTHORIZATION,
        doc="The rules of authorization: Apache Pulsar's PulsarAuthorizationProvider, or a Python "
        "class as `module.Class`.",
    )
    authorizationAllowWildcardsMatching: bool = setting(
        default=False,
        category=AUTHORIZATION,
        doc="Whether a permission for `abc.*` or `*.abc` is one for every role of that beginning "
        "or end.",
    )
    allowAclChangesOnNonExistentTopics: bool = setting(
        default=False,
        category=AUTHORIZATION,
        doc="Whether permissions of a topic may be read, granted and revoked before it is there.",
    )
    superUserRoles: frozenset[str] = setting(
        default=frozenset(),
        category=AUTHORIZATION,
        dynamic=True,
        doc="Roles that may do everything; `*` is every role.",
    )
    proxyRoles: frozenset[str] = setting(
        default=frozenset(),
        category=AUTHORIZATION,
        doc="Roles of proxies, which act for the role that they name: both need the right.",
    )
