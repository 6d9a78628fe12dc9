"""TLS, SASL and ACLs between the ZooKeeper store and a real server that insists on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_py.common.errors import (
    InvalidConfigurationError,
    MetadataError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.digest_md5 import DigestMd5Credentials
from pulsar_py.zookeeper.messages import CREATOR_ALL_ACL, Acl
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.certificates import Certificate
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.zookeeper_process import ZooKeeperProcess, free_port

pytestmark = pytest.mark.slow  # a server of its own; `make test-cluster` runs them

BROKER = DigestMd5Credentials(username="broker", password="broker's secret")
OTHER = DigestMd5Credentials(username="other", password="other's secret")
JAAS = f"""
Server {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_{BROKER.username}="{BROKER.password}"
    user_{OTHER.username}="{OTHER.password}";
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
            java_options=(f"-Djava.security.auth.login.config={jaas}",),
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServer]:
    made = SecureServer(tmp_path_factory.mktemp("secure"))
    try:
        made.process.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.process.kill()


async def test_what_one_user_makes_is_closed_to_another(server: SecureServer) -> None:
    store = await server.open(server.settings)
    # Certificates name users, too: "auth" in an ACL stands for all proofs of who made a node.
    settings = replace(server.settings, sasl=OTHER, tls=server.tls(server.other))
    other = await server.open(settings)
    await store.put("/own/key", b"1")
    session = await store.open_session()
    await store.put("/own/mine", b"", expected_version=MUST_NOT_EXIST, session=session)
    with pytest.raises(MetadataError, match="/own/key: this client is not allowed"):
        await other.get("/own/key")
    with pytest.raises(MetadataError, match="/own/key: this client is not allowed"):
        await other.put("/own/key", b"2")
    found = await store.get("/own/key")
    assert found is not None
    assert (found.value, found.version) == (b"1", 0)
    await store.delete_recursive("/own")
    await store.close()
    await other.close()


async def test_the_session_goes_on_with_another_proof_of_the_same_user(
    server: SecureServer,
) -> None:
    store = await server.open(server.settings)
    session = await store.open_session()
    session_id = session.session_id
    await store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=session)
    connection = store._client._connection
    assert connection is not None
    connection.lose("on purpose")
    found = await store.get("/mine")
    assert found is not None
    assert found.owner == session_id == session.session_id
    assert store.statistics().connections_count == 2
    await store.close()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sasl": replace(BROKER, password="wrong")}, "refused 'broker' by SASL"),
        ({"sasl": None}, "not allowed to do that .SESSION_CLOSED_REQUIRE_SASL_AUTH"),
        ({"tls": None}, "localhost"),
    ],
)
async def test_who_is_not_known_gets_no_session(
    server: SecureServer, changed: dict[str, object], reason: str
) -> None:
    await (await server.open(server.settings)).close()  # it is warm
    settings = replace(server.settings, operation_timeout_seconds=4.0, **changed)  # type: ignore[arg-type]  # any of its fields
    with pytest.raises(MetadataError, match=reason):
        await server.open(settings)


async def test_a_server_that_is_not_trusted_is_told_nothing(server: SecureServer) -> None:
    settings = replace(server.settings, operation_timeout_seconds=4.0)
    assert settings.tls is not None
    tls = replace(settings.tls, tls_trust_certs_file_path=server.broker.certificate_path)
    with pytest.raises(MetadataUnavailableError, match="certificate verify failed"):
        await server.open(replace(settings, tls=tls))
    with pytest.raises(MetadataUnavailableError, match="certificate is not valid for"):
        await server.open(settings, host="127.0.0.1")
    missing = replace(settings.tls, tls_trust_certs_file_path="/missing.pem")
    with pytest.raises(InvalidConfigurationError, match="tls_trust_certs_file_path"):
        await server.open(replace(settings, tls=missing))


async def test_a_digest_names_a_user_without_sasl(zookeeper: ZooKeeperProcess) -> None:
    address = ZooKeeperAddress.parse(f"{zookeeper.url}/digest")
    settings = ZooKeeperSettings(credentials=(("digest", b"broker:secret"),), acls=CREATOR_ALL_ACL)
    store = await ZooKeeperMetadataStore.open(address, SystemClock(), settings=settings)
    other = await ZooKeeperMetadataStore.open(address, SystemClock())
    await store.put("/key", b"1")
    with pytest.raises(MetadataError, match="not allowed"):
        await other.get("/key")
    await store.close()
    await other.close()


def test_an_acl_may_name_several() -> None:
    settings = ZooKeeperSettings(acls=(*CREATOR_ALL_ACL, Acl(1, "sasl", "reader")))
    assert len(settings.acls) == 2
