"""`pulsar-py broker` and its tools where ZooKeeper wants TLS, SASL and ACLs, and bookies want TLS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pulsar
import pytest

from pulsar_py.common.errors import MetadataError
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker, tool
from tests.cluster.secure_servers import JAAS_OPTION, OTHER, SecureCluster, SecureServer

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CHROOT = "/secure"
TOPIC = "persistent://public/default/secret"


class Secured:
    """Both servers, and what a broker needs to use them."""

    def __init__(self, directory: Path) -> None:
        self.server = SecureServer(directory)
        own_directory = directory / "bookies"
        own_directory.mkdir()
        self.bookies = SecureCluster(own_directory, self.server)
        self.url = f"zk:localhost:{self.server.secure_port}{CHROOT}"
        key_store = directory / "broker-key-store.pem"
        own = self.server.broker
        key_store.write_text(
            Path(own.key_path).read_text() + Path(own.certificate_path).read_text()
        )
        self.properties = directory / "zookeeper-client.properties"
        self.properties.write_text(
            "zookeeper.client.secure=true\n"
            "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n"
            f"zookeeper.ssl.keyStore.location={key_store}\n"
            f"zookeeper.ssl.trustStore.location={self.server.own.certificate_path}\n"
            "zookeeper.ssl.trustStore.type=PEM\n"
            f"{JAAS_OPTION}={self.server.client_jaas}\n"
        )
        self.settings = {
            "metadataStoreConfigPath": self.properties,
            "zkEnableSecurity": "true",
            "metadataStoreSessionTimeoutMillis": 10_000,  # handshakes take seconds at first
            "bookkeeperTLSClientAuthentication": "true",
            "bookkeeperTLSTrustCertsFilePath": self.bookies.bookie.certificate_path,
            "bookkeeperTLSCertificateFilePath": self.bookies.broker.certificate_path,
            "bookkeeperTLSKeyFilePath": self.bookies.broker.key_path,
        }

    def broker(self, directory: Path, **settings: object) -> OurBroker:
        return OurBroker(
            directory, self.url, settings={**self.settings, **settings}, quorums=(1, 1, 1)
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    try:
        made.bookies.cluster.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.bookies.cluster.kill()


def initialize(secured: Secured, broker: OurBroker) -> str:
    path = str(secured.properties)
    return broker.initialize_cluster(
        "--metadata-store-config-path", path,
        "--configuration-metadata-store-config-path", path, "--zk-enable-security",
    )  # fmt: skip


async def test_a_broker_of_a_secured_cluster(secured: Secured, tmp_path: Path) -> None:
    broker = secured.broker(tmp_path)
    assert "setup correctly" in initialize(secured, broker)
    with broker:
        client = pulsar.Client(
            broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        )
        consumer = client.subscribe(TOPIC, "sub")
        producer = client.create_producer(TOPIC)
        for number in range(200):
            producer.send_async(b"%d" % number * 100, None)
        assert [consumer.receive(20_000).data() for _ in range(200)] == [
            b"%d" % number * 100 for number in range(200)
        ]
        client.close()

    where = ("--config", str(broker.config), "-o", "json")
    rows = [json.loads(line) for line in tool("ledger", "list", *where).splitlines()]
    (row,) = [each for each in rows if each["owner"] == "public/default/persistent/secret"]
    assert tool("ledger", "read", str(row["ledger"]), *where)

    settings = replace(
        secured.server.settings, sasl=OTHER, tls=secured.server.tls(secured.server.other)
    )
    other = await secured.server.open(settings)
    for path in (f"{CHROOT}/admin/clusters", f"{CHROOT}/managed-ledgers/public/default"):
        with pytest.raises(MetadataError, match="this client is not allowed"):
            await other.get(path)
    await other.close()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"metadataStoreConfigPath": ""}, "the server closed it"),
        ({"bookkeeperTLSCertificateFilePath": "/missing.pem"}, "bookkeeperTLS"),
        ({"bookkeeperTLSClientAuthentication": "false"}, "bookkeeperTLSTrustCertsFilePath"),
    ],
)
def test_a_broker_that_can_not_prove_itself_ends_with_the_reason(
    secured: Secured, tmp_path: Path, settings: dict[str, str], reason: str
) -> None:
    broker = secured.broker(tmp_path, metadataStoreOperationTimeoutSeconds=4, **settings)
    initialize(secured, broker)
    done = subprocess.run(
        broker.command(), capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 1
    assert reason in done.stderr.splitlines()[-1]
