"""`LoadReporter`: keeps what a broker of a cluster tells the others about its load current (edge).

Load is measured every minute, and at once when bundles came or went. A report is written when
bundles changed, when a figure moved by a tenth, or after a quarter of an hour, and never sooner
than five seconds after the one before.

The processor's figure is the share of one core that this process uses, of at most 100: one event
loop is one core, whatever the machine has. Memory's limit is that of the control group, if there is
one. Of the network no limit is known.

Source: ModularLoadManagerImpl.writeBrokerDataOnZooKeeper, needBrokerDataUpdate in Pulsar's broker.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.work import Turns
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.cluster_membership import ClusterMembership, with_bundles_of
from pulsar_py.server.topics.topic import Topic

__all__ = ["LoadReporter", "Machine", "ProcessUsage"]

LOOK_SECONDS: Final = 5.0
"""Between two looks at the owned bundles: the least time between two reports."""
MEASURE_SECONDS: Final = 60.0
MAX_INTERVAL_SECONDS: Final = 15 * 60.0
WORTH_SHARE: Final = 0.1
"""By which a figure has to move to be told."""

_MEBIBYTE: Final = 1 << 20
_KILOBITS_A_BYTE: Final = 8 / 1000
_CPU_LIMIT: Final = 100.0
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


class ProcessUsage(Struct, frozen=True):
    """What a process has used: processor time since its start, and memory now."""

    cpu_seconds: float
    memory_mebibytes: float
    memory_limit_mebibytes: float


Machine = Callable[[], ProcessUsage]
"""Measures this process; in virtual time nothing is used."""


def this_process() -> ProcessUsage:
    """Of the process that calls."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _MEBIBYTE
    with suppress(OSError, ValueError):  # no control group, or one without a limit: "max"
        physical = min(int(_CGROUP_LIMIT.read_text()) / _MEBIBYTE, physical)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return ProcessUsage(time.process_time(), largest, physical)


def no_process() -> ProcessUsage:
    """Of a broker in virtual time."""
    return ProcessUsage(0.0, 0.0, 1.0)


class LoadReporter:
    """The reports of one broker; started after it joined its cluster."""

    def __init__(
        self,
        membership: ClusterMembership,
        *,
        owned_bundles: Callable[[], Iterable[str]],
        topics: Callable[[], Iterable[Topic]],
        bundle_of: Callable[[Topic], Awaitable[str]],
        clock: Clock,
        machine: Machine,
    ) -> None:
        """Bundles are named `tenant/namespace/range`."""
        self._membership = membership
        self._owned_bundles = owned_bundles
        self._topics = topics
        self._bundle_of = bundle_of
        self._clock = clock
        self._machine = machine
        self._cpu: tuple[float, float] | None = None  # processor seconds, and when
        self._measured_at = -MEASURE_SECONDS

    async def run(self) -> None:
        """Report until cancelled, or until the broker leaves."""
        while not self._membership.is_leaving:
            await self._clock.sleep(LOOK_SECONDS)
            if self._membership.is_joined and not self._membership.is_leaving:
                await self.look()

    async def look(self) -> None:
        """Measure if it is time, and report what is worth it."""
        told, now = self._membership.own, self._clock.monotonic_seconds()
        has_moved = set(self._owned_bundles()) != set(told.bundles)
        if not has_moved and now - self._measured_at < MEASURE_SECONDS:
            return
        self._measured_at = now
        report = await self._measured(told)
        if self._membership.is_leaving or not self._is_worth(told, report):
            return
        self._membership.update(with_bundles_of(report, told))

    async def _measured(self, told: BrokerReport) -> BrokerReport:
        bundles = await self._bundle_stats()
        bytes_in = sum(each.bytes_in_rate for each in bundles.values())
        bytes_out = sum(each.bytes_out_rate for each in bundles.values())
        used = self._machine()
        return replace(
            told,
            bundles=bundles,
            cpu=ResourceUsage(self._cpu_percent(used.cpu_seconds), _CPU_LIMIT),
            memory=ResourceUsage(used.memory_mebibytes, used.memory_limit_mebibytes),
            bandwidth_in=ResourceUsage(bytes_in * _KILOBITS_A_BYTE),
            bandwidth_out=ResourceUsage(bytes_out * _KILOBITS_A_BYTE),
            update_millis=self._clock.wall_time_millis(),
        )

    def _cpu_percent(self, cpu_seconds: float) -> float:
        """Of one core since the last measurement; 0 at the first."""
        now, before = self._clock.monotonic_seconds(), self._cpu
        self._cpu = cpu_seconds, now
        if before is None or now <= before[1]:
            return 0.0
        return min(100.0 * (cpu_seconds - before[0]) / (now - before[1]), _CPU_LIMIT)

    async def _bundle_stats(self) -> Mapping[str, BundleStats]:
        """All owned bundles, with the sums of their loaded topics."""
        turns = Turns()
        found: defaultdict[str, BundleStats] = defaultdict(BundleStats)
        owned = set(self._owned_bundles())
        for topic in list(self._topics()):
            bundle = await self._bundle_of(topic)
            if bundle not in owned:
                continue
            stats, sums = await topic.stats_in_turns(turns), found[bundle]
            found[bundle] = BundleStats(
                messages_in_rate=sums.messages_in_rate + stats.message_in_rate,
                bytes_in_rate=sums.bytes_in_rate + stats.bytes_in_rate,
                messages_out_rate=sums.messages_out_rate + stats.message_out_rate,
                bytes_out_rate=sums.bytes_out_rate + stats.bytes_out_rate,
                consumers_count=sums.consumers_count + topic.consumers_count,
                producers_count=sums.producers_count + len(topic.producers),
                topics_count=sums.topics_count + 1,
            )
        return {name: found[name] for name in sorted(owned)}

    def _is_worth(self, told: BrokerReport, report: BrokerReport) -> bool:
        if report.bundles.keys() != told.bundles.keys():
            return True
        if report.update_millis - told.update_millis >= MAX_INTERVAL_SECONDS * 1000:
            return True
        pairs = zip(_figures(told), _figures(report), strict=True)
        return any(abs(new - old) > WORTH_SHARE * max(old, 1.0) for old, new in pairs)


def _figures(report: BrokerReport) -> tuple[float, ...]:
    """What is compared; a move of less than a tenth of 1 is none."""
    stats = report.bundles.values()
    return (
        report.cpu.usage,
        report.memory.share * 100,
        report.bandwidth_in.usage,
        report.bandwidth_out.usage,
        report.messages_rate,
        float(sum(each.topics_count for each in stats)),
        float(sum(each.producers_count + each.consumers_count for each in stats)),
    )
