from __future__ import annotations

import random

from pulsar_py.server.load.broker_report import BrokerReport, BundleStats, ResourceUsage
from pulsar_py.server.load.placement import TAKEOVER_SECONDS, BundlePlacement, KnownLoads

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


def test_who_asks_for_one_bundle_at_the_same_time_is_sent_to_the_same_broker() -> None:
    placement = BundlePlacement(random.Random(1))
    brokers = {name: report(name) for name in "abc"}
    first = placement.choose("t/n/1", brokers)
    assert {placement.choose("t/n/1", brokers) for _ in range(20)} == {first}
    others = [name for name in brokers if name != first]
    second = placement.choose("t/n/1", brokers, allowed=others)
    assert second in others, "who can't be reached is left out"
    assert {placement.choose("t/n/1", brokers) for _ in range(20)} == {second}


def test_a_broker_that_is_gone_is_chosen_no_more() -> None:
    placement = BundlePlacement(random.Random(1))
    brokers = {name: report(name) for name in "abc"}
    first = str(placement.choose("t/n/1", brokers))
    del brokers[first]
    assert placement.choose("t/n/1", brokers) in brokers


def test_a_bundle_that_was_reported_is_placed_anew() -> None:
    placement = BundlePlacement(random.Random(1))
    first = str(placement.choose("t/n/a-0", {name: report(name) for name in "ab"}))
    now = {"a": report("a", bundles=1), "b": report("b")}
    assert placement.choose("t/n/a-0", {**now, first: now[first]}) is not None
    busy = {"a": report("a", bundles=1, cpu=BUSY), "b": report("b", bundles=3)}
    assert placement.choose("t/n/a-0", busy) == "b"


def with_topics(name: str, *counts: int) -> BrokerReport:
    """A report of a broker that has bundles with so many topics."""
    stats = {
        f"t/n/{name}-{number}": BundleStats(topics_count=count)
        for number, count in enumerate(counts)
    }
    return BrokerReport(broker_id=name, start_millis=1, bundles=stats, cpu=QUIET)


def test_topics_count_not_bundles() -> None:
    assert choose(with_topics("a", 10, 10, 10), with_topics("b", 100)) == "a"


def test_a_bundle_weighs_what_its_last_owner_had() -> None:
    placement, brokers = BundlePlacement(random.Random(1)), {name: report(name) for name in "ab"}
    counts = {"t/n/0": 90, "t/n/1": 10, "t/n/2": 10, "t/n/3": 70}
    loads = KnownLoads(topics_of=counts.get)
    chosen = [placement.choose(bundle, brokers, loads=loads) for bundle in counts]
    assert chosen[1] == chosen[2] == chosen[3] != chosen[0]


def test_an_empty_broker_does_not_take_over_everything_alone() -> None:
    placement = BundlePlacement(random.Random(1))
    brokers = {"empty": report("empty"), "full": with_topics("full", *[60] * 8)}
    loads = KnownLoads(topics_of=lambda _: 60)
    chosen = [placement.choose(f"t/n/{number}", brokers, loads=loads) for number in range(8)]
    assert chosen.count("empty") == 5, "more, because it has none; not all, because that takes time"
    later = placement.choose("t/n/8", brokers, loads=loads, now=TAKEOVER_SECONDS)
    assert later == "empty", "what was taken over a minute ago is no work any more"


def test_a_bundle_of_nobodys_report_weighs_like_the_others() -> None:
    placement = BundlePlacement(random.Random(1))
    brokers = {"a": with_topics("a", 40), "b": with_topics("b", 50)}
    assert placement.choose("t/n/0", brokers, now=0.0) == "a", "45 of them make more than 50"
    assert placement.choose("t/n/1", brokers, now=0.0) == "b"
