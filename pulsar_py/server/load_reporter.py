"""`LoadReporter`: writes a broker's load report to the cluster's metadata when it changed (edge).

Load is measured every minute, or as often as rates are where that is more often, and at once when
bundles came or went, or the number of topics moved by a tenth: whoever places the bundles of a dead
broker goes by it. A report is written when bundles changed, when a figure moved by a tenth, or
after a quarter of an hour, and never sooner than five seconds after the one before.

The processor's figure is the share of one core that the event loop uses, of at most 100: one loop
is one core, whatever the machine has. See `load.machine` for the other limits.

Source: ModularLoadManagerImpl.writeBrokerDataOnZooKeeper, needBrokerDataUpdate in Pulsar's broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.work import MAX_UNITS, Turns
from pulsar_py.server.load.broker_report import (
    UNKNOWN_LIMIT,
    BrokerReport,
    BundleStats,
    ResourceUsage,
)
from pulsar_py.server.load.cluster_membership import ClusterMembership, with_bundles_of
from pulsar_py.server.load.machine import Machine
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.topics.traffic import traffic_of

_KILOBITS_A_BYTE: Final = 8 / 1000
_CPU_LIMIT: Final = 100.0

TOPIC_UNITS: Final = 5
"""Units of work that a topic's part of a report is, beside one for each consumer."""


class ReportingSettings(Struct, frozen=True, kw_only=True):
    """When a broker reports."""

    look_seconds: float = 5.0
    """Between two looks at the owned bundles: the least time between two reports."""
    measure_seconds: float = 60.0
    max_interval_seconds: float = 15 * 60.0
    worth_share: float = 0.1
    """By which a figure has to move to be told."""
    network_kilobits: float | None = None
    """The speed of the network a second; None: what the machine says, if it does."""


class LoadReporter:
    """The reports of one broker; started after it joined its cluster."""

    def __init__(
        self,
        membership: ClusterMembership,
        *,
        owned_bundles: Callable[[], Iterable[str]],
        topics: Callable[[], Collection[Topic]],
        bundle_of: Callable[[Topic], Awaitable[str]],
        clock: Clock,
        machine: Machine,
        settings: Callable[[], ReportingSettings] = ReportingSettings,
    ) -> None:
        """Bundles are named `tenant/namespace/range`."""
        self._membership = membership
        self._owned_bundles = owned_bundles
        self._topics = topics
        self._bundle_of = bundle_of
        self._clock = clock
        self._machine = machine
        self._settings = settings
        self._cpu: tuple[float, float] | None = None  # processor seconds, and when
        self._measured_at: float | None = None  # None before the first measurement
        self._topics_count = 0  # loaded topics at that time

    async def run(self) -> None:
        """Report until cancelled, or until the broker leaves."""
        while not self._membership.is_leaving:
            await self._clock.sleep(self._settings().look_seconds)
            if self._membership.is_joined and not self._membership.is_leaving:
                await self.look()

    async def look(self) -> None:
        """Measure if it is time, and report what is worth it."""
        told, now = self._membership.own, self._clock.monotonic_seconds()
        has_moved = set(self._owned_bundles()) != set(told.bundles) or self._have_topics_moved
        measured_at, settings = self._measured_at, self._settings()
        if (
            not has_moved
            and measured_at is not None
            and now - measured_at < settings.measure_seconds
        ):
            return
        self._measured_at = now
        self._topics_count = len(self._topics())
        report = await self._measured(told, settings)
        if self._membership.is_leaving or not _is_worth(told, report, settings):
            return
        self._membership.update(with_bundles_of(report, told))

    @property
    def _have_topics_moved(self) -> bool:
        before = self._topics_count
        return abs(len(self._topics()) - before) > self._settings().worth_share * max(before, 10)

    async def _measured(self, told: BrokerReport, settings: ReportingSettings) -> BrokerReport:
        bundles = await self._bundle_stats()
        bytes_in = sum(each.bytes_in_rate for each in bundles.values())
        bytes_out = sum(each.bytes_out_rate for each in bundles.values())
        used = self._machine()
        network = settings.network_kilobits or used.network_kilobits or UNKNOWN_LIMIT
        return replace(
            told,
            bundles=bundles,
            cpu=ResourceUsage(self._cpu_percent(used.cpu_seconds), _CPU_LIMIT),
            memory=ResourceUsage(used.memory_mebibytes, used.memory_limit_mebibytes),
            bandwidth_in=ResourceUsage(bytes_in * _KILOBITS_A_BYTE, network),
            bandwidth_out=ResourceUsage(bytes_out * _KILOBITS_A_BYTE, network),
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
            await turns.take(TOPIC_UNITS + min(topic.consumers_count, MAX_UNITS // 2))
            traffic, sums = traffic_of(topic), found[bundle]
            found[bundle] = BundleStats(
                messages_in_rate=sums.messages_in_rate + traffic.message_in_rate,
                bytes_in_rate=sums.bytes_in_rate + traffic.bytes_in_rate,
                messages_out_rate=sums.messages_out_rate + traffic.message_out_rate,
                bytes_out_rate=sums.bytes_out_rate + traffic.bytes_out_rate,
                consumers_count=sums.consumers_count + traffic.consumers_count,
                producers_count=sums.producers_count + traffic.producers_count,
                topics_count=sums.topics_count + 1,
            )
        return {name: found[name] for name in sorted(owned)}


def _is_worth(told: BrokerReport, report: BrokerReport, settings: ReportingSettings) -> bool:
    """Whether a report says enough that is new."""
    if report.bundles.keys() != told.bundles.keys():
        return True
    if report.update_millis - told.update_millis >= settings.max_interval_seconds * 1000:
        return True
    pairs = zip(_figures(told), _figures(report), strict=True)
    return any(abs(new - old) > settings.worth_share * max(old, 1.0) for old, new in pairs)


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
