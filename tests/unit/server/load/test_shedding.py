"""More of it stands in tests/playbooks/balancing/shedding.txt."""

from __future__ import annotations

from pulsar_py.server.load.averages import BundleData
from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.shedding import (
    Loads,
    Shed,
    Shedder,
    SheddingRules,
    Situation,
    UsageWeights,
    idler_than,
    load_of_bundle,
    note_move,
    throughput_of,
)

MEGABYTE = 1024.0 * 1024.0


def report(name: str, cpu: float, **bundles: float) -> BrokerReport:
    stats = {f"t/n/{key}": BundleStats(bytes_in_rate=flow) for key, flow in bundles.items()}
    return BrokerReport(
        broker_id=name,
        start_millis=1,
        bundles=stats,
        cpu=ResourceUsage(cpu, 100.0),
        memory=ResourceUsage(99.0, 100.0),
    )


def situation(*reports: BrokerReport) -> Situation:
    data = {
        name: BundleData().with_sample(stats)
        for each in reports
        for name, stats in each.bundles.items()
    }
    return Situation({each.broker_id: each for each in reports}, data)


def test_usage_is_that_of_the_busiest_resource_by_weight() -> None:
    busy = report("a", 40.0)
    assert UsageWeights().usage_of(busy) == 0.4  # memory says nothing
    assert UsageWeights(memory=0.5).usage_of(busy) == 0.495
    assert UsageWeights(cpu=0.0).usage_of(busy) == 0.0


def test_equal_bundles_go_in_the_order_of_their_names() -> None:
    now = situation(report("a", 90.0, x=60 * MEGABYTE, b=60 * MEGABYTE), report("b", 0.0))
    assert [each.bundle for each in Shedder().choose(SheddingRules(), now)] == ["t/n/b"]
    assert throughput_of(now.brokers["a"]) == 120 * MEGABYTE


def test_the_number_of_bundles_of_a_round_is_bounded_where_a_setting_says_so() -> None:
    flows = {f"b{number}": 10 * MEGABYTE for number in range(9)}
    now = situation(report("a", 0.0, **flows), report("b", 0.0))
    rules = SheddingRules(strategy="UniformLoadShedder", max_moved_share=0.5)
    assert len(Shedder().choose(rules, now)) == 5
    bounded = SheddingRules(strategy="UniformLoadShedder", max_moved_share=0.5, max_bundles=2)
    assert len(Shedder().choose(bounded, now)) == 2


def test_messages_and_bytes_count_where_their_settings_are_not_zero() -> None:
    now = situation(report("a", 0.0, x=30 * MEGABYTE, y=30 * MEGABYTE), report("b", 0.0))
    both = SheddingRules(strategy="UniformLoadShedder", min_messages=0)
    assert len(Shedder().choose(both, now)) == 1
    not_bytes = SheddingRules(strategy="UniformLoadShedder", max_throughput_factor=0.0)
    assert not Shedder().choose(not_bytes, now)
    stats = BundleStats(messages_in_rate=2000.0)
    brokers = {
        "a": BrokerReport(broker_id="a", start_millis=1, bundles={"t/n/x": stats, "t/n/y": stats}),
        "b": BrokerReport(broker_id="b", start_millis=1),
    }
    data = {name: BundleData().with_sample(stats) for name in ("t/n/x", "t/n/y")}
    by_messages = SheddingRules(strategy="UniformLoadShedder", min_messages=10)
    assert len(Shedder().choose(by_messages, Situation(brokers, data))) == 1
    not_messages = SheddingRules(
        strategy="UniformLoadShedder", min_messages=10, max_rate_difference_share=0.0
    )
    assert not Shedder().choose(not_messages, Situation(brokers, data))


def test_smoothed_usage_is_known_of_who_was_seen() -> None:
    shedder = Shedder()
    assert shedder.usage_of("a") is None
    shedder.choose(SheddingRules(), situation(report("a", 50.0), report("b", 0.0)))
    shedder.choose(SheddingRules(), situation(report("a", 100.0)))
    assert shedder.usage_of("a") == 0.55
    assert shedder.usage_of("b") is None


def test_bundles_that_came_a_moment_ago_do_not_all_go() -> None:
    """Their means are of reports from before they had any load."""
    stats = {f"t/n/{number:02}": BundleStats(messages_in_rate=20.0) for number in range(12)}
    busy = BrokerReport(broker_id="a", start_millis=1, bundles=stats)
    data = {name: BundleData().with_sample(BundleStats()) for name in stats}
    for _ in range(4):
        data = {name: each.with_sample(BundleStats()) for name, each in data.items()}
    data = {name: each.with_sample(stats[name]) for name, each in data.items()}
    now = Situation({"a": busy, "b": report("b", 0.0)}, data)
    rules = SheddingRules(strategy="UniformLoadShedder", max_moved_share=0.5, min_messages=10)
    assert len(Shedder().choose(rules, now)) == 6


def test_who_is_better_off_depends_on_what_is_evened_out() -> None:
    owner = BrokerReport(
        broker_id="a", start_millis=1, bundles={"t/n/1": BundleStats(messages_in_rate=100.0)}
    )
    busy, idle = report("busy", 90.0), report("idle", 0.0)
    brokers = {each.broker_id: each for each in (owner, busy, idle)}
    rules = SheddingRules(strategy="UniformLoadShedder")
    shed = Shed("a", "t/n/1", "far more")
    assert idler_than(rules, shed, brokers, {}) == [busy, idle], "by messages"
    brokers["a"] = report("a", 50.0)
    assert idler_than(SheddingRules(), shed, brokers, {}) == [idle], "by usage"


def test_who_is_second_does_not_get_it_all_where_the_idlest_may_take_nothing() -> None:
    stats = {f"t/n/{number:02}": BundleStats(messages_in_rate=10.0) for number in range(12)}
    owner = BrokerReport(broker_id="a", start_millis=1, bundles=stats)
    brokers = {"a": owner, "b": report("b", 0.0)}
    rules, moved, count = SheddingRules(strategy="UniformLoadShedder"), Loads(), 0
    for bundle in stats:
        if idler_than(rules, Shed("a", bundle, "far more"), brokers, moved):
            note_move(moved, owner, bundle, "b")
            count += 1
    assert count == 6
    assert load_of_bundle(owner, "t/n/00") == (10.0, 0.0)
    assert load_of_bundle(owner, "t/n/none") == (0.0, 0.0)
