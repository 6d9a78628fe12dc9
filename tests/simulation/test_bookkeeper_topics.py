"""A topic's ledgers on bookies of which too few are left: it goes on, or waits, and loses nothing."""

from __future__ import annotations

import asyncio
import random

from pulsar_py.bookkeeper.bookies.health import STEADY_SECONDS
from pulsar_py.bookkeeper.metadata.ledger_metadata import LedgerMetadata
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import THREE, ScriptedCluster, with_cluster

NAME = "public/default/persistent/topic"
SESSION_SECONDS = 10.0
"""For so long a dead bookie is registered."""
PERIOD_SECONDS = 0.05


class Publisher:
    """Appends all the time; knows what was confirmed when, and what failed."""

    def __init__(self) -> None:
        self.count = 0
        self.confirmed: list[tuple[Position, int]] = []  # position and number
        self.times: list[float] = []
        self.failed: list[int] = []
        self.is_going = True

    def on_appended(self, ledger_id: int, first_entry_id: int, contexts: list[int]) -> None:
        for entry_id, number in enumerate(contexts, first_entry_id):
            self.confirmed.append((Position(ledger_id, entry_id), number))
        self.times.append(asyncio.get_running_loop().time())

    def on_append_failed(self, contexts: list[int], error: Exception) -> None:
        self.failed += contexts

    def on_fenced(self, error: Exception) -> None:
        raise AssertionError(error)

    async def run(self, topic: ManagedLedger[int]) -> None:
        while self.is_going:
            topic.append(b"%d" % self.count, self.count)
            self.count += 1
            await asyncio.sleep(PERIOD_SECONDS)

    @property
    def longest_gap_seconds(self) -> float:
        return max(
            after - before for before, after in zip(self.times, self.times[1:], strict=False)
        )


class World:
    def __init__(self, cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        self.cluster, self.store = cluster, store
        self.publisher = Publisher()

    async def start(self, *, maximum_rollover_seconds: float = 14_400.0) -> None:
        opener = ManagedLedgerOpener(
            self.store, self.cluster.metadata, self.cluster.clock, chance=random.Random(1)
        )
        settings = ManagedLedgerConfig(
            ledger_options=THREE,
            retention_seconds=-1,
            retention_size_bytes=-1,
            minimum_rollover_seconds=1.0,
            maximum_rollover_seconds=maximum_rollover_seconds,
        )
        self.topic: ManagedLedger[int] = await opener.open(NAME, settings)
        self.topic.listener = self.publisher
        self.publishing = asyncio.get_running_loop().create_task(self.publisher.run(self.topic))

    async def kill(self, bookie: ScriptedBookie) -> None:
        bookie.stop()
        await asyncio.sleep(SESSION_SECONDS)
        await self.cluster.unregister(bookie)

    async def bring_back(self, bookie: ScriptedBookie) -> None:
        await bookie.start()
        await self.cluster.register(bookie)

    async def records(self) -> list[LedgerMetadata]:
        ids = [each async for page in self.store.list_ledgers() for each in page]
        return [await self.cluster.record(ledger_id) for ledger_id in ids]

    async def finish(self) -> None:
        """Stop, and check that everything confirmed is there, once and in order."""
        self.publisher.is_going = False
        await self.publishing
        await asyncio.sleep(1)
        confirmed = self.publisher.confirmed
        numbers = [number for _, number in confirmed]
        assert numbers == sorted(set(numbers))
        assert sorted([*numbers, *self.publisher.failed]) == list(range(self.publisher.count))
        assert [position for position, _ in confirmed] == sorted(p for p, _ in confirmed)
        for position, number in confirmed[:: max(1, len(confirmed) // 50)]:
            entry = await self.topic.read_entry(position)
            assert entry.data == b"%d" % number
        await self.topic.close()


def test_a_topic_goes_on_with_the_bookies_that_are_left_and_returns_to_its_policy() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        await world.start(maximum_rollover_seconds=60.0)
        await asyncio.sleep(1)
        dead = cluster.bookies[0]
        await world.kill(dead)
        await asyncio.sleep(5)
        assert [each.ensemble_size for each in await world.records()] == [3, 2]
        assert store.figures()["open_ledgers_below_policy"] == 1
        await world.bring_back(dead)
        await asyncio.sleep(STEADY_SECONDS + 70)
        sizes = [each.ensemble_size for each in await world.records()]
        assert sizes[-1] == 3
        assert sizes[:2] == [3, 2]
        assert store.figures()["open_ledgers_below_policy"] == 0
        await world.finish()
        assert not world.publisher.failed
        assert world.publisher.longest_gap_seconds < 2

    with_cluster(test)


def test_with_fewer_than_the_ack_quorum_appends_wait_and_no_ledgers_are_made_meanwhile() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        await world.start()
        await asyncio.sleep(1)
        one, other, _ = cluster.bookies
        await asyncio.gather(world.kill(one), world.kill(other))
        await asyncio.sleep(10)
        assert len(await world.records()) == 1
        assert store.figures()["waiting_ledgers"] == 1
        await world.bring_back(one)
        await asyncio.sleep(1)
        assert [each.ensemble_size for each in await world.records()] == [3, 2]
        assert not world.publisher.failed
        await asyncio.sleep(5)
        await world.finish()
        assert not world.publisher.failed
        assert world.publisher.longest_gap_seconds < 2 * SESSION_SECONDS + 2

    with_cluster(test)


def test_where_that_lasts_appends_are_failed_in_time_and_ledgers_are_not_littered() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        world = World(cluster, store)
        await world.start()
        await asyncio.sleep(1)
        dead = cluster.bookies[:2]
        await asyncio.gather(*map(world.kill, dead))
        await asyncio.sleep(300)
        assert world.publisher.failed
        assert len(await world.records()) == 1
        for bookie in dead:
            await world.bring_back(bookie)
        await asyncio.sleep(10)
        before = len(world.publisher.confirmed)
        await asyncio.sleep(10)
        assert len(world.publisher.confirmed) > before + 100
        await world.finish()

    with_cluster(test)
