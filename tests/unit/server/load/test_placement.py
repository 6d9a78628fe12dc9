from __future__ import annotations

import random

from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.placement import BundlePlacement

QUIET, BUSY = ResourceUsage(10.0, 100.0), ResourceUsage(90.0, 100.0)


def report(name: str, *, bundles: int = 0, rate: float = 0.0, cpu: ResourceUsage = QUIET):
    stats = {
        f"t/n/{name}-{number}": BundleStats(messages_in_rate=rate) for number in range(bundles)
    }
    return BrokerReport(broker_id=name, start_millis=1, bundles=stats, cpu=cpu)


def choose(*reports: BrokerReport, bundle: str = "t/n/new") -> str | None:
    brokers = {each.broker_id: each for each in reports}
    return BundlePlacement(random.Random(1)).choose(bundle, brokers)


def test_nobody_is_chosen_of_nobody() -> None:
    assert choose() is None


def test_who_has_fewest_bundles_of_the_namespace_is_chosen() -> None:
    assert choose(report("a", bundles=2), report("b", bundles=1, rate=1000)) == "b"


def test_bundles_of_other_namespaces_count_by_their_rate_alone() -> None:
    reports = report("a", bundles=5, rate=1), report("b", bundles=1, rate=100)
    assert choose(*reports, bundle="t/other/new") == "a"


def test_a_busy_broker_gets_nothing_where_there_are_others() -> None:
    assert choose(report("a", cpu=BUSY), report("b", cpu=QUIET)) == "b"
    assert choose(report("a", cpu=BUSY)) == "a"


def test_choices_count_until_the_report_shows_them() -> None:
    placement = BundlePlacement(random.Random(1))
    brokers = {name: report(name) for name in "abc"}
    chosen = [placement.choose(f"t/n/{number}", brokers) for number in range(9)]
    assert sorted(map(str, chosen)) == sorted("abc" * 3)
