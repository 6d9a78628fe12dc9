"""The balancer in virtual time, with brokers that only report."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.load.balancer import (
    LEFT_ALONE_SECONDS,
    LOOK_SECONDS,
    Balancer,
    BalancingSettings,
)
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.bundle_averages import BundleAverages
from pulsar_py.server.load.cluster_membership import ClusterMembership
from pulsar_py.testing.clock import VirtualClock

MEGABYTE = 1024.0 * 1024.0
HEARTBEAT = "pulsar/one:1/0x00000000_0xffffffff"


def report(name: str, cpu: float, **bundles: float) -> BrokerReport:
    stats = {
        f"t/{key.replace('_', '/')}": BundleStats(bytes_in_rate=flow * MEGABYTE, topics_count=5)
        for key, flow in bundles.items()
    }
    return BrokerReport(
        broker_id=f"{name}:1", start_millis=1, bundles=stats, cpu=ResourceUsage(cpu, 100.0)
    )


class World:
    """One member that leads, reports of others, and what was asked for."""

    def __init__(self, clock: VirtualClock, **settings: Any) -> None:
        self.clock = clock
        self.store = MemoryMetadataStore(clock)
        self.asked: list[tuple[str, ...]] = []
        self.fails = False
        self.membership = ClusterMembership(self.store, clock, random.Random(1))
        self.membership.is_reachable = self._is_reachable  # type: ignore[method-assign]
        self.settings = BalancingSettings(**settings)
        self.balancer = Balancer(
            self.membership,
            BundleAverages(self.store),
            self,
            settings=lambda: self.settings,
            bundles_count_of=self._bundles_count_of,
            clock=clock,
        )

    async def _is_reachable(self, report: BrokerReport) -> bool:
        return report.broker_id != "dead:1"

    async def _bundles_count_of(self, namespace: str) -> int:
        assert namespace == "t/n"
        return 4

    async def move(self, bundle: str, owner: BrokerReport, destination: BrokerReport) -> None:
        if self.fails:
            raise ServiceNotReadyError("not now")
        self.asked.append(("move", bundle, owner.broker_id, destination.broker_id))

    async def split(self, bundle: str, owner: BrokerReport, *, unloads_parts: bool) -> None:
        if self.fails:
            raise ServiceNotReadyError("not now")
        self.asked.append(("split", bundle, owner.broker_id, str(unloads_parts)))

    async def join(self) -> None:
        await self.membership.join(BrokerReport(broker_id="one:1", start_millis=1))
        await self.balancer.look()

    async def tell(self, *reports: BrokerReport) -> None:
        """These are the newest reports."""
        for each in reports:
            if each.broker_id == "one:1":
                self.membership.update(each)
            else:
                await self.store.put(paths.broker(each.broker_id), each.encode())
        await self.clock.sleep(0.1)

    async def close(self) -> None:
        await self.membership.close()
        await self.store.close()


async def test_a_busy_broker_gives_bundles_up_each_minute(virtual_clock: VirtualClock) -> None:
    world = World(virtual_clock)
    await world.join()
    await world.tell(report("one", 90.0, n_a=60, n_b=30), report("two", 10.0), report("dead", 0.0))
    await world.balancer.look()
    assert not world.asked  # a minute has not passed
    await virtual_clock.sleep(60)
    await world.balancer.look()
    assert world.asked == [("move", "t/n/a", "one:1", "two:1")]
    (event,) = world.balancer.events
    assert (event.kind, event.bundle, event.destination) == ("moved", "t/n/a", "two:1")
    assert event.reason.startswith("usage 90% is above the mean")
    assert event.error is None
    assert world.balancer.moved_from == {"one:1": 1}
    assert world.balancer.usage_of("one:1") == 0.9
    # Until the next report it counts as where it was, but it is left alone.
    await virtual_clock.sleep(60)
    await world.balancer.look()
    assert ("move", "t/n/a", "one:1", "two:1") not in world.asked[1:]
    # A lookup on its way goes where it was sent.
    choice = await world.membership.choose("t/n/a", authoritative=False)
    assert choice is not None
    assert choice.report.broker_id == "two:1"
    await world.close()


async def test_what_fails_is_told_and_left_alone(virtual_clock: VirtualClock) -> None:
    world = World(virtual_clock)
    world.fails = True
    await world.join()
    await world.tell(report("one", 90.0, n_a=60, n_b=30), report("two", 10.0))
    await virtual_clock.sleep(60)
    await world.balancer.look()
    assert [each.error for each in world.balancer.events] == ["not now"]
    assert world.balancer.moved_count == 0
    world.fails = False
    await virtual_clock.sleep(LEFT_ALONE_SECONDS + 1)
    await world.balancer.look()
    assert world.asked == [("move", "t/n/a", "one:1", "two:1")]
    await world.close()


@pytest.mark.parametrize(
    "settings",
    [
        {"is_shedding": False},
        {"excluded_namespaces": frozenset({"t/n"})},
    ],
)
async def test_settings_keep_bundles_where_they_are(
    virtual_clock: VirtualClock, settings: dict[str, Any]
) -> None:
    world = World(virtual_clock, **settings)
    await world.join()
    await world.tell(report("one", 90.0, n_a=60, n_b=30), report("two", 10.0))
    await virtual_clock.sleep(60)
    await world.balancer.look()
    assert not world.asked
    await world.close()


async def test_nobody_but_the_leader_does_anything(virtual_clock: VirtualClock) -> None:
    world = World(virtual_clock)
    await world.store.put(paths.LEADER, b'{"brokerId":"two:1","serviceUrl":"http://two:1"}')
    await world.membership.join(BrokerReport(broker_id="one:1", start_millis=1))
    await world.tell(report("one", 90.0, n_a=60, n_b=30), report("two", 10.0))
    for _ in range(20):
        await virtual_clock.sleep(LOOK_SECONDS)
        await world.balancer.look()
    assert not world.asked
    await world.close()


async def test_a_large_bundle_is_split_as_soon_as_it_is_reported(
    virtual_clock: VirtualClock,
) -> None:
    world = World(virtual_clock)
    await world.join()
    large = report("two", 10.0, n_a=1)
    stats = {"t/n/a": BundleStats(topics_count=1001)}
    large = BrokerReport(broker_id="two:1", start_millis=1, bundles=stats, update_millis=1)
    await world.tell(large)
    await world.balancer.look()
    assert world.asked == [("split", "t/n/a", "two:1", "True")]
    again = BrokerReport(broker_id="two:1", start_millis=1, bundles=stats, update_millis=2)
    await world.tell(again)
    await world.balancer.look()
    assert len(world.asked) == 1  # a report from before the split
    assert world.balancer.split_count == 1
    await world.close()


async def test_means_are_stored_each_quarter_of_an_hour(virtual_clock: VirtualClock) -> None:
    world = World(virtual_clock)
    await world.join()
    await world.tell(report("one", 10.0, n_a=60))
    await world.balancer.look()
    assert world.balancer.stored_count == 0
    await virtual_clock.sleep(15 * 60)
    await world.balancer.look()
    assert world.balancer.stored_count == 2
    assert await world.store.get(paths.bundle_data("t/n/a")) is not None
    assert await world.store.get(paths.broker_average("one:1")) is not None
    await world.close()


async def test_the_heartbeat_never_moves(virtual_clock: VirtualClock) -> None:
    world = World(virtual_clock)
    await world.join()
    stats = {
        HEARTBEAT: BundleStats(bytes_in_rate=90 * MEGABYTE),
        "t/n/a": BundleStats(bytes_in_rate=60 * MEGABYTE),
    }
    busy = BrokerReport(
        broker_id="one:1", start_millis=1, bundles=stats, cpu=ResourceUsage(90.0, 100.0)
    )
    await world.tell(busy, report("two", 10.0))
    await virtual_clock.sleep(60)
    await world.balancer.look()
    assert not world.asked  # the other one is the broker's last
    await world.close()
