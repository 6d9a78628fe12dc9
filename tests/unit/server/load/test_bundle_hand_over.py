"""Bundles of a broker that leaves go to others, a few at a time."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import MetadataError, MetadataUnavailableError
from pulsar_py.common.names import NamespaceName
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.bundle_hand_over import (
    BUNDLES_AT_ONCE,
    MAX_REFUSALS,
    TOPICS_AT_ONCE,
    Bundle,
    BundleHandOver,
    groups_of,
)
from pulsar_py.testing.clock import VirtualClock

NAMESPACE = NamespaceName("t", "n")
OTHER = BrokerReport(broker_id="other", start_millis=1)


def bundles(*topics_counts: int) -> dict[Bundle, int]:
    return {(NAMESPACE, str(number)): count for number, count in enumerate(topics_counts)}


class Cluster:
    """Chooses, transfers and unloads; writes down what it did, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.destination: BrokerReport | None = OTHER
        self.takes = True
        self.error: MetadataError | None = None
        self.running_count = self.peak_count = 0
        self.clock = VirtualClock()
        self.loaded_count: int | None = None  # it does not say
        self.opening_seconds = 0.0  # for each bundle

    async def candidate(self, bundle: str) -> BrokerReport | None:
        assert bundle.startswith("t/n/")
        if self.error is not None:
            raise self.error
        return self.destination

    async def transfer(
        self, namespace: NamespaceName, bundle: str, destination: BrokerReport
    ) -> bool:
        self.running_count += 1
        self.peak_count = max(self.peak_count, self.running_count)
        await asyncio.sleep(1)
        self.running_count -= 1
        self.done.append(f"{bundle} to {destination.broker_id}")
        if self.loaded_count is not None:
            self.clock.call_later(self.opening_seconds, self.open)
        if bundle == "fails":
            raise MetadataUnavailableError("no")
        return self.takes

    def open(self) -> None:
        assert self.loaded_count is not None
        self.loaded_count += TOPICS_AT_ONCE
        self.done.append("opened")

    async def count(self, broker: BrokerReport) -> int | None:
        return self.loaded_count

    async def unload(self, namespace: NamespaceName, bundle: str) -> None:
        self.done.append(f"{bundle} given up")

    async def hand_over(self, topics_counts: dict[Bundle, int]) -> list[str]:
        work = BundleHandOver(
            self,
            transfer=self.transfer,
            unload=self.unload,
            loaded_count=self.count,
            clock=self.clock,
        )
        await work.run(topics_counts)
        return self.done


def test_large_bundles_go_alone_and_small_ones_together() -> None:
    half = TOPICS_AT_ONCE // 2
    groups = groups_of(bundles(TOPICS_AT_ONCE + 1, 0, half, half, 1, TOPICS_AT_ONCE))
    assert [[name for _, name in group] for group in groups] == [
        ["1", "4", "2"],
        ["3"],
        ["5"],
        ["0"],
    ]
    empty = groups_of(bundles(*[0] * (BUNDLES_AT_ONCE + 1)))
    assert [len(group) for group in empty] == [BUNDLES_AT_ONCE, 1]
    assert groups_of({}) == []


async def test_each_large_bundle_has_arrived_before_the_next_one_leaves() -> None:
    cluster = Cluster()
    done = await cluster.hand_over(bundles(*[TOPICS_AT_ONCE] * 4))
    assert done == [f"{number} to other" for number in range(4)]
    assert cluster.peak_count == 1


async def test_the_next_bundle_waits_until_the_topics_are_open(virtual_clock: VirtualClock) -> None:
    cluster = Cluster()
    cluster.clock, cluster.loaded_count, cluster.opening_seconds = virtual_clock, 1000, 0.5
    done = await cluster.hand_over(bundles(*[TOPICS_AT_ONCE] * 3))
    assert done == ["0 to other", "opened", "1 to other", "opened", "2 to other"]


async def test_but_not_for_long(virtual_clock: VirtualClock) -> None:
    cluster = Cluster()
    cluster.clock, cluster.loaded_count, cluster.opening_seconds = virtual_clock, 1000, 600.0
    done = await cluster.hand_over(bundles(*[TOPICS_AT_ONCE] * 3))
    assert done == ["0 to other", "1 to other", "2 to other"]
    assert virtual_clock.monotonic_seconds() < 10


async def test_what_nobody_can_take_is_given_up() -> None:
    cluster = Cluster()
    cluster.destination = None
    assert await cluster.hand_over(bundles(1, 1)) == ["0 given up", "1 given up"]


async def test_without_rights_there_bundles_are_given_up() -> None:
    cluster = Cluster()
    cluster.takes = False
    done = await cluster.hand_over(bundles(*[TOPICS_AT_ONCE] * (MAX_REFUSALS + 2)))
    assert done[:MAX_REFUSALS] == [f"{number} to other" for number in range(MAX_REFUSALS)]
    assert done[MAX_REFUSALS:] == [f"{MAX_REFUSALS} given up", f"{MAX_REFUSALS + 1} given up"]


async def test_who_can_t_choose_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.error = MetadataUnavailableError("no")
    assert await cluster.hand_over(bundles(1)) == ["0 given up"]


async def test_a_failure_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    topics_counts: dict[Bundle, int] = {(NAMESPACE, "fails"): 1, (NAMESPACE, "2"): TOPICS_AT_ONCE}
    assert await cluster.hand_over(topics_counts) == ["fails to other", "2 to other"]
    assert "bundle not released" in caplog.text
