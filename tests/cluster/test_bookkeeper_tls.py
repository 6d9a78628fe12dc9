"""TLS between the BookKeeper store and a real bookie that wants certificates of its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pulsar_py.bookkeeper.bookies.connection import BookieConnection, ConnectionLimits
from pulsar_py.bookkeeper.bookies.opening import open_connection
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.network.tls import TlsOptions
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.secure_servers import SecureCluster
from tests.cluster.waiting import until

pytestmark = pytest.mark.slow  # a bookie of its own; `make test-cluster` runs them

ONE = LedgerOptions(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    made = SecureCluster(tmp_path_factory.mktemp("secure-bookie"))
    try:
        made.cluster.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.cluster.kill()


class Listener:
    def __init__(self) -> None:
        self.last = -1
        self.failures: list[StorageError] = []

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        self.last = last_add_confirmed

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        self.failures.append(error)


async def written(secure: SecureCluster, tls: TlsOptions | None) -> list[StorageError]:
    """Write a ledger and read it; what failed."""
    clock = SystemClock()
    address = ZooKeeperAddress.parse(secure.cluster.zookeeper.url)
    metadata = await ZooKeeperMetadataStore.open(address, clock)
    ids = MetadataLedgerIds(metadata)
    limits = ConnectionLimits(connect_timeout_seconds=10.0, request_timeout_seconds=10.0, tls=tls)
    store = await BookKeeperLedgerStore.connect(
        metadata, clock, ids, settings=BookKeeperSettings(connection=limits)
    )
    listener = Listener()
    try:
        writer = await store.create(listener, ONE)
        for number in range(300):
            writer.append(b"%d" % number * 1000)
        await until(lambda: listener.last == 299 or bool(listener.failures), seconds=60)
        if not listener.failures:
            await writer.close()
            reader = await store.open(writer.ledger_id)
            read: list[bytes] = []
            while len(read) < 300:
                read += map(bytes, await reader.read(len(read), 299, 100_000))
            assert read == [b"%d" % number * 1000 for number in range(300)]
    finally:
        await store.close()
        await ids.close()
        await metadata.close()
    return listener.failures


async def test_a_ledger_is_written_and_read_over_tls(secure: SecureCluster) -> None:
    assert await written(secure, secure.tls) == []


async def test_the_connection_is_encrypted(secure: SecureCluster) -> None:
    limits = ConnectionLimits(tls=secure.tls)
    port = secure.cluster.bookies[0].port
    lost: list[str] = []
    connection = await open_connection(
        lambda: BookieConnection(SystemClock(), limits, lost.append), "127.0.0.1", port, limits.tls
    )
    assert connection._transport is not None
    assert connection._transport.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
    connection.lose("the test is over")
    assert lost == ["the test is over"]


async def test_a_client_that_is_not_known_writes_nothing(secure: SecureCluster) -> None:
    stranger = replace(
        secure.tls,
        tls_certificate_file_path=secure.bookie.certificate_path,
        tls_private_key_file_path=secure.bookie.key_path,
    )
    async with asyncio.timeout(60):
        failures = await written(secure, stranger)
    assert failures
    async with asyncio.timeout(60):
        failures = await written(secure, TlsOptions())  # it does not trust the bookie
    assert failures
