"""A ZooKeeper and bookies behind TLS, which want to know who their clients are."""

from __future__ import annotations

from pathlib import Path

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.certificates import Certificate
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.zookeeper_process import ZooKeeperProcess, free_port

BROKER = DigestMd5Credentials(username="broker", password="broker's secret")
OTHER = DigestMd5Credentials(username="other", password="other's secret")
JAAS = f"""
Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_{BROKER.username}="{BROKER.password}"
    user_{OTHER.username}="{OTHER.password}";
}};
"""
JAAS_OPTION = "java.security.auth.login.config"
CLIENT_JAAS = f"""
// Of brokers, and of bookies.
Client {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="{BROKER.username}"
    password="{BROKER.password}";
}};
"""


class SecureServer:
    """A ZooKeeper behind TLS that takes nothing from who is not known by SASL."""

    def __init__(self, directory: Path) -> None:
        self.own = Certificate(directory, "server", host="localhost")
        self.broker = Certificate(directory, "broker", host="localhost")
        self.other = Certificate(directory, "other", host="localhost")
        trusted = directory / "trusted.pem"
        trusted.write_text(
            Path(self.broker.certificate_path).read_text()
            + Path(self.other.certificate_path).read_text()
        )
        key_store = directory / "key-store.pem"
        key_store.write_text(
            Path(self.own.key_path).read_text() + Path(self.own.certificate_path).read_text()
        )
        jaas = directory / "jaas.conf"
        jaas.write_text(JAAS)
        self.client_jaas = directory / "client-jaas.conf"
        self.client_jaas.write_text(CLIENT_JAAS)
        self.client_java_options = (
            f"-D{JAAS_OPTION}={self.client_jaas}",
            "-Dzookeeper.fips-mode=false",  # otherwise Java's client has no DIGEST-MD5
        )
        self.secure_port = free_port()
        self.process = ZooKeeperProcess(
            directory / "zookeeper",
            settings=(
                f"secureClientPort={self.secure_port}",
                "secureClientPortAddress=127.0.0.1",
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"ssl.keyStore.location={key_store}",
                f"ssl.trustStore.location={trusted}",
                "ssl.clientAuth=need",
                "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                "sessionRequireClientSASLAuth=true",
            ),
            java_options=(f"-D{JAAS_OPTION}={jaas}",),
        )
        self.settings = ZooKeeperSettings(
            session_timeout_millis=10_000,
            operation_timeout_seconds=30.0,  # its first handshakes take seconds
            tls=self.tls(self.broker),
            sasl=BROKER,
            acls=CREATOR_ALL_ACL,
        )

    def tls(self, certificate: Certificate) -> TlsOptions:
        return TlsOptions(
            tls_trust_certs_file_path=self.own.certificate_path,
            tls_validate_hostname=True,
            tls_certificate_file_path=certificate.certificate_path,
            tls_private_key_file_path=certificate.key_path,
        )

    async def open(
        self, settings: ZooKeeperSettings, host: str = "localhost"
    ) -> ZooKeeperMetadataStore:
        address = ZooKeeperAddress.parse(f"zk:{host}:{self.secure_port}")
        return await ZooKeeperMetadataStore.open(address, SystemClock(), settings=settings)


class SecureCluster:
    """One bookie with TLS, which knows the certificate of one client."""

    def __init__(self, directory: Path, server: SecureServer | None = None) -> None:
        """`server` is its ZooKeeper, which it uses as the user of brokers; None: one of its own."""
        self.bookie = Certificate(directory, "bookie", host="localhost")
        self.broker = Certificate(directory, "broker", host="localhost")
        self.cluster = BookKeeperCluster(
            directory,
            bookies_count=1,
            zookeeper=server and server.process,
            java_options=() if server is None else server.client_java_options,
            settings={
                "tlsProvider": "JDK",
                "tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
                "tlsClientAuthentication": "true",
                "tlsKeyStoreType": "PEM",
                "tlsKeyStore": self.bookie.key_path,
                "tlsCertificatePath": self.bookie.certificate_path,
                "tlsTrustStoreType": "PEM",
                "tlsTrustStore": self.broker.certificate_path,
            },
        )
        self.tls = TlsOptions(
            tls_trust_certs_file_path=self.bookie.certificate_path,
            tls_certificate_file_path=self.broker.certificate_path,
            tls_private_key_file_path=self.broker.key_path,
        )
