"""Three brokers under load while brokers, bookies and ZooKeeper's leader are killed or stand still.

What is promised: what was confirmed is read back where its receipt says, each message of a
producer in its order, nothing at two positions. With sessions of 10 s a topic's outage after
`kill -9` of its broker is the session and 3 s in the median, 8 s at most; after SIGTERM 1 s.
`TOPICS_COUNT` and `ROUNDS_SECONDS` make it longer: a thousand topics, ten minutes.

The load is that of one client: a message a second on each topic, acknowledged by a subscription
with receipts.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from pulsar_py.client.client import Client
from pulsar_py.common.message_id import MessageId
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.cluster.zookeeper_process import ZooKeeperEnsemble

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOPICS_COUNT: Final = int(os.environ.get("TOPICS_COUNT", "60"))
ROUNDS_SECONDS: Final = float(os.environ.get("ROUNDS_SECONDS", "60"))
SESSION_SECONDS: Final = 10.0
SETTINGS: Final = {
    "metadataStoreSessionTimeoutMillis": int(SESSION_SECONDS * 1000),
    "defaultNumberOfNamespaceBundles": 16,
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "brokerDeduplicationEnabled": "true",
}
PERIOD_SECONDS: Final = 1.0
"""Between two messages of a topic."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Three ZooKeepers, and one bookie more than a ledger needs."""
    directory = tmp_path_factory.mktemp("failing")
    made = BookKeeperCluster(
        directory, bookies_count=4, zookeeper=ZooKeeperEnsemble(directory / "ensemble")
    )
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
async def brokers(cluster: BookKeeperCluster, tmp_path: Path) -> AsyncIterator[list[OurBroker]]:
    url = f"{cluster.zookeeper.url}/{tmp_path.name}"
    some = [OurBroker(tmp_path / name, url, settings=SETTINGS) for name in ("a", "b", "c")]
    try:
        for broker in some:
            await asyncio.to_thread(broker.start)
        yield some
    finally:
        for broker in some:
            with suppress(ProcessLookupError):
                broker.thaw()
            broker.kill()


class TopicLoad:
    """One topic: what was sent and confirmed, what was received, and when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.confirmed: dict[int, MessageId] = {}
        self.times: list[float] = []
        self.acknowledged: set[int] = set()
        self.came_back: list[int] = []  # received again after an acknowledgement with a receipt
        self.errors: list[str] = []

    async def publish(self, client: Client, stop: asyncio.Event) -> None:
        producer = await client.create_producer(
            self.name, producer_name=f"p-{self.name}", send_timeout_millis=0
        )
        number = 0
        while not stop.is_set():
            try:
                self.confirmed[number] = await producer.send(b"%d" % number)
            except Exception as error:  # noqa: BLE001 - told at the end
                self.errors.append(repr(error))
                return
            self.times.append(time.monotonic())
            number += 1
            await asyncio.sleep(PERIOD_SECONDS)

    async def consume(self, client: Client, stop: asyncio.Event) -> None:
        consumer = await client.subscribe(self.name, "s", ack_receipt_enabled=True)
        while not stop.is_set():
            with suppress(TimeoutError):
                message = await asyncio.wait_for(consumer.receive(), 1)
                number = int(message.data())
                if number in self.acknowledged:
                    self.came_back.append(number)
                with suppress(Exception):
                    await consumer.acknowledge(message)
                    self.acknowledged.add(number)

    def outage_after(self, moment: float) -> float:
        """The longest wait for a receipt that ended after a moment, less the period."""
        before = [each for each in self.times if each <= moment][-1:] or [moment]
        after = [each for each in self.times if each > moment]
        times = before + after
        return max((b - a for a, b in pairwise(times)), default=0.0) - (PERIOD_SECONDS)


class Load:
    """All topics, from one client."""

    def __init__(self, brokers: list[OurBroker]) -> None:
        hosts = ",".join(each.service_url.removeprefix("pulsar://") for each in brokers)
        self._url = f"pulsar://{hosts}"
        self.topics = [
            TopicLoad(f"persistent://public/default/t{number}") for number in range(TOPICS_COUNT)
        ]
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Any = None

    async def start(self) -> None:
        self._client = Client(self._url)
        for topic in self.topics:
            for work in (topic.consume, topic.publish):
                self._tasks.append(asyncio.create_task(work(self._client, self._stop)))
        await self.until_all_after(time.monotonic())

    async def until_all_after(self, moment: float, *, seconds: float = 180.0) -> None:
        """Wait until every topic has had two receipts since a moment."""
        async with asyncio.timeout(seconds):
            while not all(
                sum(each > moment for each in topic.times[-3:]) > 1 for topic in self.topics
            ):
                broken = [error for topic in self.topics for error in topic.errors]
                assert not broken, broken[:3]
                await asyncio.sleep(0.1)

    async def outages_of(self, what: str, act: Callable[[], Awaitable[object]]) -> list[float]:
        """Do something, wait until all topics go on, and tell how long each was out."""
        moment = time.monotonic()
        await act()
        await asyncio.sleep(PERIOD_SECONDS)
        await self.until_all_after(time.monotonic())
        outages = sorted(max(topic.outage_after(moment), 0.0) for topic in self.topics)
        hit = [each for each in outages if each > PERIOD_SECONDS]
        print(
            f"{what}: {len(hit)} of {len(outages)} topics out for more than a second, "
            f"p50 {statistics.median(hit) if hit else 0:.2f} s, max {outages[-1]:.2f} s"
        )
        return hit

    async def finish(self) -> None:
        """Stop, and check that what was promised holds."""
        self._stop.set()
        await asyncio.gather(*self._tasks)
        for topic in self.topics:
            assert not topic.errors, topic.errors
            assert not topic.came_back, (topic.name, topic.came_back)
            reader = await self._client.create_reader(topic.name, MessageId.earliest)
            places, numbers = {}, []
            while await reader.has_message_available():
                message = await reader.read_next()
                number = int(message.data())
                numbers.append(number)
                places[number] = message.message_id()
            assert numbers == sorted(set(numbers)), (topic.name, numbers)
            for number, place in topic.confirmed.items():
                assert places.get(number) == place or place.ledger_id < 0, (topic.name, number)
            await reader.close()
        await self._client.close()


async def test_failures_one_after_the_other(
    cluster: BookKeeperCluster, brokers: list[OurBroker]
) -> None:
    load = Load(brokers)
    await load.start()
    one, two, three = brokers

    for victim in (one, two):
        hit = await load.outages_of("kill -9 of a broker", partial(asyncio.to_thread, victim.kill))
        assert hit, "it had no topics"
        assert statistics.median(hit) < SESSION_SECONDS + 3
        assert max(hit) < SESSION_SECONDS + 8
        await asyncio.to_thread(victim.start)
        await load.until_all_after(time.monotonic())

    await load.outages_of("kill -9 of a bookie", lambda: asyncio.to_thread(cluster.bookies[0].kill))
    await asyncio.to_thread(cluster.bookies[0].start)

    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    leader = cluster.zookeeper.leader
    await load.outages_of("kill -9 of ZooKeeper's leader", lambda: asyncio.to_thread(leader.kill))
    await asyncio.to_thread(cluster.zookeeper.start)

    async def freeze() -> None:
        three.freeze()
        await asyncio.sleep(SESSION_SECONDS + 5)
        three.thaw()

    await load.outages_of("a broker stands still beyond its session", freeze)

    hit = await load.outages_of("SIGTERM of a broker", lambda: asyncio.to_thread(two.stop))
    assert max(hit, default=0.0) < 3, "a loaded machine's; on a free one 1 s is asked"
    await load.finish()


async def test_random_disruptions(cluster: BookKeeperCluster, brokers: list[OurBroker]) -> None:
    """One thing is down at a time, so never more than acknowledgements allow."""
    load = Load(brokers)
    await load.start()
    chance, deadline = random.Random(1), time.monotonic() + ROUNDS_SECONDS
    while time.monotonic() < deadline:
        target: Any = chance.choice([*brokers, cluster.bookies[chance.randrange(4)]])
        how = chance.choice(("kill", "freeze"))
        pause = chance.uniform(2, SESSION_SECONDS + 5)
        if how == "kill":
            await asyncio.to_thread(target.kill)
            await asyncio.sleep(pause)
            await asyncio.to_thread(target.start)
        else:
            target.freeze()
            await asyncio.sleep(pause)
            target.thaw()
        print(f"{how} of {type(target).__name__} for {pause:.1f} s")
        await load.until_all_after(time.monotonic())
    await load.finish()
