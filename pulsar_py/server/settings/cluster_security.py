"""Settings of TLS, SASL and ACLs between a broker of a cluster and ZooKeeper or bookies.

They have their effect with `pulsar-py broker`. A standalone broker has both within its process.
"""

# ruff: noqa: N815 - settings keep the names of broker.conf
from __future__ import annotations

from pulsar_py.server.settings.cluster import BOOKKEEPER, ZOOKEEPER
from pulsar_py.server.settings.declaring import Settings, setting


class ClusterSecuritySettings(Settings):
    """TLS, SASL and ACLs."""

    metadataStoreConfigPath: str = setting(
        default="",
        category=ZOOKEEPER,
        doc="A file with properties of ZooKeeper's own clients: TLS (`zookeeper.client.secure`, "
        "`zookeeper.ssl.…`, with PEM files), SASL's DIGEST-MD5 (`java.security.auth.login.config`) "
        "and the servers' `jute.maxbuffer`.",
    )
    configurationStoreConfigPath: str = setting(
        default="",
        category=ZOOKEEPER,
        doc="The same for the ZooKeeper of `configurationMetadataStoreUrl`, where that is another.",
    )
    zkEnableSecurity: bool = setting(
        default=False,
        category=ZOOKEEPER,
        doc="Let nobody but who made a node of ZooKeeper read or change it (`CREATOR_ALL_ACL`). "
        "Brokers and bookies then need the same user, by SASL or by certificate.",
    )
    bookkeeperTLSClientAuthentication: bool = setting(
        default=False,
        category=BOOKKEEPER,
        doc="Speak TLS to bookies, and present the broker's certificate.",
    )
    bookkeeperTLSTrustCertsFilePath: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="The certificates of the authorities of bookies' certificates (PEM); empty means those "
        "of the system.",
    )
    bookkeeperTLSCertificateFilePath: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="The broker's certificate (PEM), for bookies with `tlsClientAuthentication`.",
    )
    bookkeeperTLSKeyFilePath: str = setting(
        default="",
        category=BOOKKEEPER,
        doc="Its private key (PEM); empty means that it is in the same file.",
    )
    bookkeeper_tlsHostnameVerificationEnabled: bool = setting(
        default=False,
        category=BOOKKEEPER,
        doc="Whether a bookie's certificate has to name its host.",
    )
