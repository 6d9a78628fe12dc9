"""More of it stands in tests/playbooks/balancing/splits.txt."""

from __future__ import annotations

from pulsar_py.server.load.broker_report import BrokerReport, BundleStats
from pulsar_py.server.load.large_bundles import SplitRules, large_bundles


def test_a_namespace_without_a_known_number_of_bundles_is_left_alone() -> None:
    brokers = {
        "a": BrokerReport(
            broker_id="a", start_millis=1, bundles={"t/n/x": BundleStats(topics_count=11)}
        )
    }
    rules = SplitRules(max_topics=10)
    assert large_bundles(rules, brokers, {}, {}) == []
    (found,) = large_bundles(rules, brokers, {}, {"t/n": 4})
    assert (found.broker_id, found.bundle) == ("a", "t/n/x")
    assert large_bundles(SplitRules(max_topics=10, max_bundles=4), brokers, {}, {"t/n": 4}) == []
