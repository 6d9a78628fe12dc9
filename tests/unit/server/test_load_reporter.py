"""What brokers of a cluster tell each other about their load."""

from __future__ import annotations

from typing import Any

from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.machine import ProcessUsage
from pulsar_py.server.load_reporter import LoadReporter, ReportingSettings
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until

LOOK_SECONDS = ReportingSettings().look_seconds
MAX_INTERVAL_SECONDS = ReportingSettings().max_interval_seconds
BUNDLE = "public/default/0x00000000_0xffffffff"


class Membership:
    """Keeps the reports."""

    is_joined = True
    is_leaving = False

    def __init__(self) -> None:
        self.own = BrokerReport(broker_id="b:8080", start_millis=1)
        self.reports: list[BrokerReport] = []

    def update(self, report: BrokerReport) -> None:
        self.own = report
        self.reports.append(report)


class Moved:
    """A clock and a process that tests move."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.cpu_seconds = 5.0
        self.bundles: list[str] = []
        self.topics: list[Any] = []
        self.settings = ReportingSettings()
        self.membership = Membership()
        self.reporter = LoadReporter(
            self.membership,  # type: ignore[arg-type] # the two members that it uses
            owned_bundles=lambda: self.bundles,
            topics=lambda: self.topics,
            bundle_of=self._bundle_of,
            clock=self,  # type: ignore[arg-type] # the two members that it uses
            machine=lambda: ProcessUsage(self.cpu_seconds, 100.0, 1000.0, 8000.0),
            settings=lambda: self.settings,
        )

    async def _bundle_of(self, topic: Any) -> str:
        return "public/default/elsewhere"  # so that nothing is asked of the topic

    def monotonic_seconds(self) -> float:
        return self.seconds

    def wall_time_millis(self) -> int:
        return round(self.seconds * 1000)

    async def after(self, seconds: float, *, cpu_seconds: float = 0.0) -> int:
        """Let time go by and look; how many reports there are then."""
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds
        await self.reporter.look()
        return len(self.membership.reports)


async def test_bundles_that_come_and_go_are_told_at_once() -> None:
    moved = Moved()
    assert await moved.after(0) == 1  # the first measurement
    moved.bundles = [BUNDLE]
    assert await moved.after(LOOK_SECONDS) == 2
    assert moved.membership.own.gains == (BUNDLE,)
    moved.bundles = []
    assert await moved.after(LOOK_SECONDS) == 3
    assert (moved.membership.own.gains, moved.membership.own.losses) == ((), (BUNDLE,))


async def test_load_is_measured_at_once_when_the_number_of_topics_has_moved() -> None:
    moved = Moved()
    await moved.after(0)
    moved.topics = [object()]
    assert await moved.after(LOOK_SECONDS, cpu_seconds=5) == 1, "one topic is not worth it"
    moved.topics = [object()] * 20
    assert await moved.after(LOOK_SECONDS, cpu_seconds=5) == 2
    moved.topics.pop()
    assert await moved.after(LOOK_SECONDS, cpu_seconds=5) == 2, "less than a tenth"
    moved.topics.clear()
    assert await moved.after(LOOK_SECONDS) == 3


async def test_a_tenth_is_told_each_minute_and_less_each_quarter_of_an_hour() -> None:
    moved = Moved()
    await moved.after(0)
    assert moved.membership.own.cpu.usage == 0.0
    assert await moved.after(60, cpu_seconds=30) == 2
    assert moved.membership.own.cpu.usage == 50.0
    assert await moved.after(30, cpu_seconds=30) == 2  # not measured yet
    assert await moved.after(30, cpu_seconds=6) == 3
    assert round(moved.membership.own.cpu.usage) == 60
    assert await moved.after(60, cpu_seconds=39) == 3  # 65 %: too little
    assert await moved.after(MAX_INTERVAL_SECONDS, cpu_seconds=0.6 * MAX_INTERVAL_SECONDS) == 4


async def test_more_than_one_core_is_one_core() -> None:
    moved = Moved()
    await moved.after(0)
    await moved.after(60, cpu_seconds=90)
    assert moved.membership.own.cpu.share == 1.0


async def test_the_speed_of_the_network_is_the_setting_or_the_machines() -> None:
    moved = Moved()
    await moved.after(0)
    assert moved.membership.own.bandwidth_in.limit == 8000.0
    moved.settings = ReportingSettings(network_kilobits=2_000_000.0)
    await moved.after(MAX_INTERVAL_SECONDS)
    assert moved.membership.own.bandwidth_out.limit == 2_000_000.0


@in_cluster("one", "two")
async def test_the_others_learn_what_a_broker_serves(world: ClusterWorld) -> None:
    one, two = (service(world, name) for name in ("one", "two"))
    heartbeat = "pulsar/one:8080/0x00000000_0xffffffff"
    await until(
        lambda: heartbeat in two.membership.directory.brokers["one:8080"].bundles,
        seconds=2 * LOOK_SECONDS,
    )
    assert one.membership.own.cpu.limit == 100.0
