"""More of it stands in tests/playbooks/balancing/placement.txt."""

from __future__ import annotations

import time

from pulsar_py.server.load.isolation import (
    allowed_brokers,
    host_of,
    kept_apart,
    policy_of,
    read_policies,
    unreadable_patterns,
)

# As Apache Pulsar stores it.
RECORDED = {
    "iso1": {
        "namespaces": ["iso/.*"],
        "primary": ["127.0.0.1.*"],
        "secondary": [],
        "auto_failover_policy": {
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
            "policy_type": "min_available",
        },
    }
}
BROKERS = ["127.0.0.1:8080", "127.0.0.1:8081"]


def test_with_all_brokers_primary_no_other_namespace_is_served() -> None:
    """Recorded: every other namespace answers ServiceNotReady."""
    policies = read_policies(RECORDED)
    assert allowed_brokers("iso/a", BROKERS, policies) == BROKERS
    assert allowed_brokers("public/default", BROKERS, policies) == []
    assert allowed_brokers("public/default", BROKERS, ()) == BROKERS


def test_patterns_are_of_whole_hosts_and_namespaces() -> None:
    policies = read_policies(
        {"p": {"namespaces": ["a/b"], "primary": ["one"], "secondary": ["two"]}}
    )
    ids = ["one:1", "one-more:1", "two:1"]
    assert host_of("one:1") == "one"
    assert allowed_brokers("a/b", ids, policies) == ["one:1"]
    assert allowed_brokers("a/bc", ids, policies) == ["one-more:1", "two:1"]
    assert policy_of("a/bc", policies) is None


def test_what_can_not_be_read_is_left_out() -> None:
    assert read_policies([1]) == ()
    policies = read_policies(
        {"p": 1, "q": {"namespaces": "x", "primary": ["(", "a"], "auto_failover_policy": 3}}
    )
    assert [each.name for each in policies] == ["q"]
    assert not policies[0].concerns("x")
    assert policies[0].is_primary("a:1")
    assert policies[0].min_limit == 0


def test_brokers_without_a_domain_are_one() -> None:
    counts = {"a": 2, "b": 0, "c": 1}
    assert kept_apart(["a", "b", "c"], counts, {"east": ["a"]}) == ["b"]
    assert kept_apart(["a", "c"], counts, {}) == ["c"]
    assert kept_apart([], counts, {"east": ["a"]}) == []


def test_a_pattern_that_backtracks_does_not_hold_a_lookup_up() -> None:
    slow = "(a+)+c"  # minutes, for Python's own
    policies = read_policies({"p": {"namespaces": [slow], "primary": [slow], "secondary": [slow]}})
    host = "a" * 60
    begin = time.process_time()
    assert allowed_brokers(host, [f"{host}:80"], policies) == [f"{host}:80"]
    assert time.process_time() - begin < 5


def test_what_only_a_backtracking_matcher_knows_is_named() -> None:
    """Apache Pulsar's brokers store policies as well, and match with Java's own."""
    stored = {
        "p": {"namespaces": ["(?!a).*", "b/.*"], "primary": [r"(a)\1"], "secondary": "x"},
        "q": 1,
    }
    assert unreadable_patterns(stored) == [("p", "(?!a).*"), ("p", r"(a)\1")]
    assert unreadable_patterns([1]) == []
    (policy,) = read_policies(stored)
    assert (policy.concerns("b/c"), policy.concerns("c/d")) == (True, False)
