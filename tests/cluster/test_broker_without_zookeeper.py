"""A broker on real bookies goes on with what is open while there is no ZooKeeper."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final, Self

import pytest

from pulsar_py import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.producing.producer import Producer
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.message_id import MessageId
from pulsar_py.testing.faulty_proxy import FaultyProxy
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.cluster.waiting import until
from tests.cluster.zookeeper_process import ZooKeeperEnsemble

pytestmark = pytest.mark.slow  # minutes of real time; `make test-cluster` runs them

AWAY_SECONDS: Final = 60.0
"""Ten of the broker's sessions."""
ENTRIES_PER_LEDGER: Final = 200
SETTINGS: Final = {
    "metadataStoreSessionTimeoutMillis": 6_000,
    "metadataStoreOperationTimeoutSeconds": 10,
    "bookkeeperClientTimeoutInSeconds": 15,
    "managedLedgerMaxEntriesPerLedger": ENTRIES_PER_LEDGER,
    "managedLedgerMinLedgerRolloverTimeMinutes": 0,
    "managedLedgerDefaultMarkDeleteRateLimit": 10.0,
}
SESSION_GOOD: Final = "pulsar_py_zookeeper_session_good"
EXPIRED: Final = "pulsar_py_zookeeper_expired_sessions_total"
ADDS: Final = "pulsar_py_bookkeeper_bookie_adds_total"
TOPIC: Final = "persistent://public/default/goes-on"


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
async def broker_and_client(directory: Path, url: str) -> AsyncIterator[tuple[OurBroker, Client]]:
    broker = OurBroker(directory, url, settings=SETTINGS)
    await asyncio.to_thread(broker.start)
    try:
        async with Client(broker.service_url) as client:
            yield broker, client
    finally:
        broker.kill()


async def until_metric(
    broker: OurBroker, name: str, holds: Callable[[float], bool], seconds: float = 30.0
) -> None:
    async with asyncio.timeout(seconds):
        while not holds(sum((await metrics(broker, name)).values())):
            await asyncio.sleep(0.1)


async def metrics(broker: OurBroker, name: str) -> dict[str, float]:
    return await asyncio.to_thread(broker.metrics, name)


async def busiest_bookie(broker: OurBroker) -> str:
    """The label of the one that most entries go to: those of a topic are more than of cursors."""
    before = await metrics(broker, ADDS)
    await asyncio.sleep(1)
    after = await metrics(broker, ADDS)
    return max(after, key=lambda label: after[label] - before.get(label, 0.0))


async def largest_ledger(broker: OurBroker, topic: str) -> int:
    path = f"{topic.replace('://', '/')}/internalStats"
    internal = await asyncio.to_thread(broker.get, path)
    return max(each["entries"] for each in internal["ledgers"])


def topic_of(path: Path) -> str:
    return f"{TOPIC}-{path.name}"


async def test_all_zookeepers_are_away_and_a_bookie_fails_meanwhile(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    url = cluster.zookeeper.url
    async with broker_and_client(tmp_path / "first", url) as (broker, client):
        async with Traffic(client, topic) as traffic:
            await traffic.more(50)
            cluster.zookeeper.kill()
            ends = time.monotonic() + AWAY_SECONDS
            await until_metric(broker, SESSION_GOOD, lambda value: value == 0)
            await traffic.more(500)  # more than a ledger has room for
            busiest = await busiest_bookie(broker)
            next(each for each in cluster.bookies if each.bookie_id in busiest).kill()
            await traffic.more(300)
            assert broker.ready() == 503
            await asyncio.sleep(max(ends - time.monotonic() - 10, 0))
            new = asyncio.ensure_future(client.create_producer(f"{topic}-new"))
            await asyncio.sleep(max(ends - time.monotonic(), 0))
            await traffic.more(100)
            assert not new.done(), "nothing new begins while the session is in doubt"
            await asyncio.to_thread(cluster.zookeeper.start)
            await until_metric(broker, SESSION_GOOD, lambda value: value == 1)
            await traffic.more(500)
            await (await new).close()
        assert await largest_ledger(broker, topic) > ENTRIES_PER_LEDGER, "it grew on"
        assert traffic.received == traffic.confirmed
        assert await stored(client, topic) == traffic.confirmed
        assert traffic.slowest_seconds < 10
    # Another broker finds the same, and nothing to deliver.
    async with broker_and_client(tmp_path / "second", url) as (_, client):
        assert await stored(client, topic) == traffic.confirmed


async def test_the_leader_of_three_is_killed_under_load(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    async with broker_and_client(tmp_path / "broker", cluster.zookeeper.url) as (broker, client):
        async with Traffic(client, topic) as traffic:
            await traffic.more(300)
            leader = await asyncio.to_thread(lambda: cluster.zookeeper.leader)
            leader.kill()
            ends = time.monotonic() + AWAY_SECONDS
            await traffic.more(1000)
            await until_metric(broker, SESSION_GOOD, lambda value: value == 1)
            new = await client.create_producer(f"{topic}-new")
            await new.send(b"1")
            await new.close()
            await asyncio.sleep(max(ends - time.monotonic(), 0))
            await traffic.more(1000)
        assert traffic.received == traffic.confirmed
        assert await stored(client, topic) == traffic.confirmed
        assert sum((await metrics(broker, EXPIRED)).values()) == 0
        assert traffic.slowest_seconds < 10


class Owners:
    """Who owns the bundles of `public/default`, as ZooKeeper has it."""

    def __init__(self, store: ZooKeeperMetadataStore) -> None:
        self._store = store

    async def sessions(self) -> dict[str, str]:
        """Sessions by bundle."""
        place = "/namespace/public/default"
        await self._store.sync(place)
        found = {}
        for bundle in await self._store.children(place):
            record = await self._store.get(f"{place}/{bundle}")
            if record is not None:
                found[bundle] = str(record.owner)
        return found


async def test_a_session_that_expired_under_a_living_broker_closes_nothing(
    bookkeeper_whole: BookKeeperCluster, tmp_path: Path
) -> None:
    cluster, topic = bookkeeper_whole, topic_of(tmp_path)
    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    proxy = FaultyProxy("127.0.0.1", cluster.zookeeper.leader.port, Random(7))
    await proxy.start()
    address = ZooKeeperAddress.parse(cluster.zookeeper.url)
    store = await ZooKeeperMetadataStore.open(address, SystemClock())
    owners = Owners(store)
    async with broker_and_client(tmp_path / "broker", f"zk:127.0.0.1:{proxy.port}") as (
        broker,
        client,
    ):
        async with Traffic(client, topic) as traffic:
            await traffic.more(100)
            before = await owners.sessions()
            (session_id,) = set(before.values())
            proxy.is_refusing = True
            proxy.cut()
            ended = session_id.encode()
            await until(lambda: ended not in cluster.zookeeper.ask(b"dump"))
            await traffic.more(300)
            proxy.is_refusing = False
            await until_metric(broker, EXPIRED, lambda value: value >= 1)
            await until_metric(broker, SESSION_GOOD, lambda value: value == 1)
            async with asyncio.timeout(30):
                while (await owners.sessions()).keys() != before.keys():
                    await asyncio.sleep(0.1)
            await traffic.more(300)
        assert traffic.received == traffic.confirmed, "nothing was closed, nothing came twice"
        after = await owners.sessions()
        assert after.keys() == before.keys()
        assert session_id not in after.values()
    await store.close()
    await proxy.close()
