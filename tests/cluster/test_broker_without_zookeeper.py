"""A broker on real bookies goes on with what is open while there is no ZooKeeper."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Self

import pytest

from pulsar_py import Client
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.message_id import MessageId
from pulsar_py.metadata.paths import bundle_owner
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.standalone import Broker
from pulsar_py.testing.faulty_proxy import FaultyProxy
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.cluster_broker import ZOOKEEPER, Metadata, cluster_broker
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.waiting import until
from tests.cluster.zookeeper_process import ZooKeeperEnsemble

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

AWAY_SECONDS = 12.0
"""Two of the broker's sessions."""
TOPIC = "persistent://public/default/goes-on"


class Traffic:
    """A producer that sends one message after the other, and a consumer that acknowledges all."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.confirmed: list[bytes] = []
        self.received: list[bytes] = []
        self.slowest_seconds = 0.0
        self.is_ending = False

    async def __aenter__(self) -> Self:
        self.producer: Producer = await self.client.create_producer(
            self.topic, batching_enabled=False, send_timeout_millis=60_000
        )
        keeps = await self.client.subscribe(self.topic, "keeps all", consumer_name="keeps")
        await keeps.close()
        self.consumer: Consumer = await self.client.subscribe(
            self.topic, "s", initial_position=InitialPosition.Earliest
        )
        self.tasks = [asyncio.ensure_future(self._send()), asyncio.ensure_future(self._receive())]
        return self

    async def _send(self) -> None:
        while not self.is_ending:
            body = b"%d" % len(self.confirmed)
            began = time.monotonic()
            await self.producer.send(body)
            self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
            self.confirmed.append(body)
            await asyncio.sleep(0.005)

    async def _receive(self) -> None:
        while True:
            message = await self.consumer.receive()
            self.received.append(message.data())
            await self.consumer.acknowledge(message)

    async def more(self, count: int, seconds: float = 30.0) -> None:
        """Return when so many more were confirmed, and all of them were received."""
        confirmed = len(self.confirmed) + count
        await until(lambda: len(self.confirmed) >= confirmed, seconds)
        await until(lambda: len(self.received) >= confirmed, seconds)

    async def __aexit__(self, *error: object) -> None:
        self.is_ending = True
        try:
            async with asyncio.timeout(20):
                await self.tasks[0]
            await until(lambda: len(self.received) >= len(self.confirmed))
        finally:
            for task in self.tasks:
                task.cancel()
        await self.producer.close()
        await self.consumer.close()


async def stored(client: Client, topic: str) -> list[bytes]:
    """Everything that was sent to a topic; a subscription keeps it."""
    found: list[bytes] = []
    async with await client.create_reader(topic, MessageId.earliest) as reader:
        while await reader.has_message_available():
            found.append((await reader.read_next()).data())
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Four bookies and three ZooKeepers that may be killed."""
    directory = tmp_path_factory.mktemp("cluster")
    ensemble = ZooKeeperEnsemble(directory)
    made = BookKeeperCluster(directory, bookies_count=4, zookeeper=ensemble)
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
async def bookkeeper_whole(cluster: BookKeeperCluster) -> BookKeeperCluster:
    """All servers, whatever the test before did."""
    await asyncio.to_thread(cluster.zookeeper.start)
    for bookie in cluster.bookies:
        if not bookie.is_running:
            await asyncio.to_thread(bookie.start)
        await until(bookie.is_registered)
    return cluster


@asynccontextmanager
async def broker_and_client(metadata: Metadata) -> AsyncIterator[tuple[Broker, Client]]:
    async with cluster_broker(metadata) as broker, Client(broker.service_url) as client:
        yield broker, client


def bookies_in_use(broker: Broker, ledger_id: int) -> tuple[str, ...]:
    """Those of the ledger's ensemble, as its writer knows it."""
    store = broker.service.ledger_store
    assert isinstance(store, BookKeeperLedgerStore)
    writer = next(each for each in store._writers if each.ledger_id == ledger_id)
    return writer._ledger.recorded.metadata.last_segment.bookie_ids


def topic_of(path: Path) -> str:
    return f"{TOPIC}-{path.name}"


async def test_all_zookeepers_are_away_and_a_bookie_fails_meanwhile(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    metadata = Metadata(cluster.zookeeper.url)
    async with broker_and_client(metadata) as (broker, client):
        async with Traffic(client, topic) as traffic:
            await traffic.more(50)
            cluster.zookeeper.kill()
            await until(lambda: SessionEvent.IN_DOUBT in metadata.events)
            await traffic.more(500)  # more than a ledger has room for
            ledger = broker.service.managed_ledgers.ledgers[0]
            in_use = bookies_in_use(broker, ledger.ledgers_info()[-1].ledger_id)
            killed = next(each for each in cluster.bookies if each.bookie_id in in_use)
            killed.kill()
            await traffic.more(300)
            new = asyncio.ensure_future(client.create_producer(f"{topic}-new"))
            await asyncio.sleep(AWAY_SECONDS - ZOOKEEPER.session_timeout_millis / 1000)
            await traffic.more(100)
            assert ledger.ledgers_info()[-1].entries_count > 200, "it grew on"
            assert not new.done(), "nothing new begins while the session is in doubt"
            await asyncio.to_thread(cluster.zookeeper.start)
            await until(lambda: metadata.session.is_good)
            await traffic.more(500)
            await until(lambda: ledger.ledgers_info()[-1].entries_count <= 200)
            await (await new).close()
        assert traffic.received == traffic.confirmed
        assert await stored(client, topic) == traffic.confirmed
        assert traffic.slowest_seconds < 10
    # Another broker finds the same, and nothing to deliver.
    async with broker_and_client(Metadata(cluster.zookeeper.url)) as (_, client):
        assert await stored(client, topic) == traffic.confirmed


async def test_the_leader_of_three_is_killed_under_load(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    metadata = Metadata(cluster.zookeeper.url)
    async with broker_and_client(metadata) as (_, client):
        session_id = metadata.session.session_id
        async with Traffic(client, topic) as traffic:
            await traffic.more(300)
            await asyncio.to_thread(cluster.zookeeper.leader.kill)
            await traffic.more(1000)
            await until(lambda: metadata.session.is_good)
            new = await client.create_producer(f"{topic}-new")
            await new.send(b"1")
            await new.close()
        assert traffic.received == traffic.confirmed
        assert await stored(client, topic) == traffic.confirmed
        assert metadata.session.session_id == session_id
        assert SessionEvent.NEW_SESSION not in metadata.events
        assert traffic.slowest_seconds < 10


async def test_a_session_that_expired_under_a_living_broker_closes_nothing(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    proxy = FaultyProxy("127.0.0.1", cluster.zookeeper.leader.port, Random(7))
    await proxy.start()
    metadata = Metadata(f"zk:127.0.0.1:{proxy.port}")
    async with broker_and_client(metadata) as (broker, client):
        session_id = metadata.session.session_id
        async with Traffic(client, topic) as traffic:
            await traffic.more(100)
            (owned,) = broker.service.namespaces.owned_bundles()
            proxy.is_refusing = True
            proxy.cut()
            ended = session_id.encode()
            await until(lambda: ended not in cluster.zookeeper.ask(b"dump"))
            await traffic.more(300)
            proxy.is_refusing = False
            await until(lambda: SessionEvent.NEW_SESSION in metadata.events)
            await until(broker.service.namespaces.may_change)
            await traffic.more(300)
        assert metadata.session.session_id != session_id
        assert traffic.received == traffic.confirmed, "nothing was closed, nothing came twice"
        assert broker.service.namespaces.owned_bundles() == [owned]
        record = await metadata.store.get(bundle_owner(*owned))
        assert record is not None
        assert record.owner == metadata.session.session_id
    await proxy.close()
