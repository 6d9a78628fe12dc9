"""Each policy is read, set and removed as pulsar-admin does."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin.policies.namespace_policy_table import POLICIES
from pulsar_py.admin_client.call import NO_BODY, Call, Reply
from pulsar_py.admin_client.policies import (
    NAMESPACE,
    TOPIC,
    PolicyCalls,
    namespace_place,
    remove_all,
    topic_place,
)
from pulsar_py.admin_client.records import BacklogQuota, RetentionPolicies
from tests.unit.admin_client import (
    test_brokers,
    test_clusters,
    test_namespaces,
    test_subscriptions,
    test_topics,
)
from tests.unit.admin_client.recorded_calls import TOPIC as TOPIC_NAME
from tests.unit.admin_client.recorded_calls import recorded, sent, was_recorded

AT_NAMESPACE = namespace_place("t/n")
AT_TOPIC = topic_place(TOPIC_NAME)
AT_SUBSCRIPTION = topic_place(TOPIC_NAME, "s/1")
RETENTION = RetentionPolicies(retention_time_in_minutes=180, retention_size_in_mb=5120)
QUOTA = BacklogQuota(limit=-1, limit_size=-1, limit_time=7200, policy="producer_exception")

OTHER_PATHS = {
    ("GET", "/admin/namespaces/c1/antiAffinity/g1"),  # the older API; ours asks the newer
    ("GET", "/admin/v2/namespaces/a"),  # of `clusters delete --all`, other names
    ("POST", "/admin/v2/persistent/t/n/a b/subscription/s/1/resetcursor/"),  # with the time
}
"""Recorded requests that no declared call has to send."""


WITHOUT_CALL = {"allowedTopicPropertyKeysForMetrics"}
"""Policies for which pulsar-admin has no word, either."""


def policies(holder: object) -> dict[str, PolicyCalls[Any]]:
    return {
        name: value
        for name in dir(holder)
        if isinstance(value := getattr(holder, name), PolicyCalls)
    }


def declared(place: str, holder: object) -> list[Call[Any]]:
    found: list[Call[Any]] = []
    for policy in policies(holder).values():
        found += [policy.get(place), policy.set(place, 1), policy.remove(place)]
    return found


POLICY_CALLS = [
    *declared(AT_NAMESPACE, NAMESPACE),
    *declared(AT_TOPIC, TOPIC),
    TOPIC.dispatch_rate.get(AT_SUBSCRIPTION),
    TOPIC.dispatch_rate.set(AT_SUBSCRIPTION, 1),
    TOPIC.dispatch_rate.remove(AT_SUBSCRIPTION),
    remove_all(TOPIC_NAME),
]


@pytest.mark.parametrize("place", ["namespaces/t/n", "persistent/t/n/a b"])
def test_every_request_of_pulsar_admin_has_a_declared_call(place: str) -> None:
    """Whatever the tool asks of a namespace or a topic, our client can ask, too."""
    calls = [
        *POLICY_CALLS,
        *test_namespaces.CALLS,
        *test_topics.CALLS,
        *test_subscriptions.CALLS,
    ]
    known = {sent(call)[:2] for call in calls}
    wanted = {each[:2] for each in recorded() if each[1].startswith(f"/admin/v2/{place}")}
    missing = {
        (method, path)
        for method, path in wanted - known - OTHER_PATHS
        if "/position/" not in path and "/resetcursor/" not in path
    }
    assert len(wanted) > 100
    assert not missing


def test_so_has_every_other_request() -> None:
    calls = [*test_clusters.CALLS, *test_brokers.CALLS, *test_brokers.OTHERS, *test_topics.CALLS]
    kinds = {(method, path.split("/")[3]) for method, path, _, _ in map(sent, calls)}
    wanted = {
        (method, path.split("/")[3])
        for method, path, _, _ in recorded()
        if not path.startswith(("/admin/v2/namespaces", "/admin/v2/persistent", "/admin/v2/non-"))
        and (method, path) not in OTHER_PATHS
    }
    assert not wanted - kinds


@pytest.mark.parametrize(
    "call",
    [
        NAMESPACE.retention.set(AT_NAMESPACE, RETENTION),
        TOPIC.retention.set(AT_TOPIC, RETENTION, isGlobal=True),
        TOPIC.retention.get(AT_TOPIC, applied=True),
        TOPIC.message_ttl.set(AT_TOPIC, 600),
        NAMESPACE.message_ttl.set(AT_NAMESPACE, 600),
        NAMESPACE.compaction_threshold.set(AT_NAMESPACE, 104_857_600),
        NAMESPACE.backlog_quotas.set(AT_NAMESPACE, QUOTA, backlogQuotaType="message_age"),
        NAMESPACE.backlog_quotas.remove(AT_NAMESPACE, backlogQuotaType="message_age"),
        NAMESPACE.offload_policies.remove(AT_NAMESPACE),
        NAMESPACE.dispatcher_pause_on_ack_state.set(AT_NAMESPACE, NO_BODY),
        NAMESPACE.schema_compatibility_strategy.set(AT_NAMESPACE, "FULL"),
        TOPIC.subscription_types_enabled.set(AT_TOPIC, ["Shared", "Failover"]),
    ],
    ids=lambda call: f"{call.method} {call.path}",
)
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)


def test_a_policy_that_is_not_set_is_none() -> None:
    call = NAMESPACE.retention.get(AT_NAMESPACE)
    assert call.answer(Reply(204, {}, b"", lambda: None)) is None
    value = {"retentionTimeInMinutes": 180, "retentionSizeInMB": 5120}
    assert call.answer(Reply(200, {}, b"", lambda: value)) == RETENTION


def test_quotas_are_read_by_kind() -> None:
    value = {
        "message_age": {
            "limit": -1,
            "limitSize": -1,
            "limitTime": 7200,
            "policy": "producer_exception",
        }
    }
    answer = NAMESPACE.backlog_quotas.get(AT_NAMESPACE).answer(Reply(200, {}, b"", lambda: value))
    assert answer == {"message_age": QUOTA}


def test_each_policy_of_a_namespace_has_a_call() -> None:
    paths = {each.set_path or each.path for each in policies(NAMESPACE).values()}
    missing = {each.word for each in POLICIES} - paths - WITHOUT_CALL
    assert not missing, f"{missing}: a line in admin_client/policies.py, and one in cli/admin"
