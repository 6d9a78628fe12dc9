"""Policies of namespaces, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin.policies.namespace_policy_table import POLICIES, Policy
from pulsar_py.metadata.documents import NamespacePolicies
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS
from tests.unit.admin.resources.conftest import Admin

N = "/admin/v2/namespaces/public/default"
RATE = {
    "dispatchThrottlingRateInMsg": 1,
    "dispatchThrottlingRateInByte": 2**40,
    "relativeToPublishRate": True,
    "ratePeriodInSecond": 3,
}
EXAMPLES: dict[str, Any] = {
    "allowedTopicPropertyKeysForMetrics": ["a", "b"],
    "autoTopicCreation": {"allowAutoTopicCreation": False, "topicType": "non-partitioned"},
    "autoSubscriptionCreation": {"allowAutoSubscriptionCreation": False},
    "compactionThreshold": 2**40,
    "deduplicationSnapshotInterval": 7,
    "delayedDelivery": {"tickTime": 5, "active": True, "maxDeliveryDelayInMillis": 7},
    "dispatchRate": RATE,
    "subscriptionDispatchRate": RATE,
    "replicatorDispatchRate": RATE,
    "publishRate": {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": 2},
    "subscribeRate": {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 2},
    "inactiveTopicPolicies": {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 5,
        "deleteWhileInactive": True,
    },
    "retention": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    "schemaAutoUpdateCompatibilityStrategy": "Forward",
    "schemaCompatibilityStrategy": "BACKWARD",
    "subscriptionExpirationTime": 9,
    "subscriptionTypesEnabled": ["Failover", "Shared"],
}
STORABLE = [each for each in POLICIES if each.word != "entryFilters"]


def example(policy: Policy) -> Any:
    if policy.word in EXAMPLES:
        return EXAMPLES[policy.word]
    return 5 if "max" in policy.word.lower() or policy.word == "messageTTL" else True


async def is_set(admin: Admin, policy: Policy) -> bool:
    return await admin.status(policy.set_method, f"{N}/{policy.word}", example(policy)) == 204


@pytest.mark.parametrize("policy", STORABLE, ids=lambda policy: policy.word)
async def test_a_policy_is_set_shown_and_unset(admin: Admin, policy: Policy) -> None:
    path = f"{N}/{policy.word}"
    unset = await admin.call("GET", path)
    assert await is_set(admin, policy), f"put a value that {policy.word} takes into EXAMPLES"
    assert await admin.get(path) == example(policy)
    stored = (await admin.get(N))[policy.key.json_name]
    assert (stored["standalone"] if policy.is_per_cluster else stored) == example(policy)
    removed = await admin.status("DELETE", path)
    if policy.can_be_deleted:
        assert removed == 204
        assert (await admin.call("GET", path)).body == unset.body
    else:
        assert removed == 412


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.word)
def test_the_broker_understands_the_key(policy: Policy) -> None:
    names = {
        NamespacePolicies.__dict__[name].json_name
        for name in NamespacePolicies.names()
        if name in NamespacePolicies.__dict__
    }
    assert policy.key.json_name in names


@pytest.mark.parametrize("policy", STORABLE, ids=lambda policy: policy.word)
async def test_a_policy_needs_its_namespace(admin: Admin, policy: Policy) -> None:
    path = f"/admin/v2/namespaces/public/nowhere/{policy.word}"
    assert await admin.status("GET", path) == 404
    assert await admin.status(policy.set_method, path, example(policy)) == 404


async def test_a_filter_that_is_not_there_is_refused(admin: Admin) -> None:
    path = N + "/entryFilters"
    assert await admin.status("POST", path, {"entryFilterNames": "f"}) == 400
    assert await admin.status("POST", path, None) == 204


async def test_rates_of_other_clusters_stay(admin: Admin) -> None:
    other = {"publishRate": {"publishThrottlingRateInMsg": 3, "publishThrottlingRateInByte": -1}}
    await admin.call("PUT", N[:-7] + "two", {"publishMaxMessageRate": {"far": other}})
    path = N[:-7] + "two/publishRate"
    assert (await admin.call("GET", path)).body == b""
    await admin.call("POST", path, {"publishThrottlingRateInMsg": 5})
    await admin.call("DELETE", path)
    assert (await admin.get(N[:-7] + "two"))["publishMaxMessageRate"].keys() == {"far"}


async def test_retention_is_above_the_size_quota(admin: Admin) -> None:
    quota = {"limitSize": 10 * 1024 * 1024, "policy": "producer_exception"}
    path = N + "/retention"
    assert await admin.status("POST", N + "/backlogQuota", quota) == 204
    for size, status in ((10, 412), (11, 204), (-1, 204)):
        body = {"retentionTimeInMinutes": 5, "retentionSizeInMB": size}
        assert await admin.status("POST", path, body) == status
    small = {"retentionTimeInMinutes": 5, "retentionSizeInMB": 11}
    assert await admin.status("POST", path, small) == 204
    larger = {**quota, "limitSize": 11 * 1024 * 1024}
    assert await admin.status("POST", N + "/backlogQuota", larger) == 412


async def test_changing_one_policy_leaves_the_others(admin: Admin) -> None:
    await admin.call("POST", N + "/messageTTL", 5)
    await admin.call("POST", N + "/deduplication", True)
    assert await admin.get(N + "/messageTTL") == 5


async def test_schemas_update_themselves_unless_forbidden(admin: Admin) -> None:
    path = N + "/isAllowAutoUpdateSchema"
    assert await admin.get(path) is True
    assert await admin.status("POST", path, False) == 204
    assert await admin.get(path) is False


async def test_quotas_are_set_by_type(admin: Admin) -> None:
    size = {"limitSize": 1000, "policy": "producer_exception"}
    age = {"limitTime": 60, "policy": "consumer_backlog_eviction"}
    assert await admin.get(N + "/backlogQuotaMap") == {}
    assert await admin.status("POST", N + "/backlogQuota", size) == 204
    path = N + "/backlogQuota?backlogQuotaType=message_age"
    assert await admin.status("POST", path, age) == 204
    quotas = await admin.get(N + "/backlogQuotaMap")
    assert quotas["destination_storage"]["limit"] == 1000
    assert quotas["message_age"]["limitTime"] == 60
    assert await admin.status("DELETE", N + "/backlogQuota") == 204
    assert (await admin.get(N + "/backlogQuotaMap")).keys() == {"message_age"}


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", {"limitSize": 1}, 400),
        ("", None, 400),
        ("?backlogQuotaType=weight", {"limitSize": 1, "policy": "producer_exception"}, 404),
    ],
)
async def test_quotas_that_make_no_sense_are_refused(
    admin: Admin, query: str, body: object, status: int
) -> None:
    assert await admin.status("POST", f"{N}/backlogQuota{query}", body) == status


async def test_replication_shows_the_clusters(admin: Admin) -> None:
    assert await admin.get(N + "/replication") == ["standalone"]


async def test_a_kind_of_topic_that_nobody_knows_means_nothing_where_clients_make_none(
    admin: Admin,
) -> None:
    topic = "/admin/v2/persistent/public/default/a"
    body = {"allowAutoTopicCreation": False, "topicType": "x", "defaultNumPartitions": -2}
    assert await admin.status("POST", f"{N}/autoTopicCreation", body) == 204
    assert await admin.status("GET", topic + "/internalStats") == 404
    assert await admin.status("PUT", topic) == 204
    assert await admin.status("POST", topic + "/maxProducers", 3) == 204  # makes a topic


async def test_topics_can_not_be_created_with_more_partitions_than_one_may_have(
    admin: Admin,
) -> None:
    def creation(count: int) -> dict[str, Any]:
        kind = {"allowAutoTopicCreation": True, "topicType": "partitioned"}
        return {**kind, "defaultNumPartitions": count}

    path = N + "/autoTopicCreation"
    assert await admin.status("POST", path, creation(MAX_PARTITIONS)) == 204
    assert (await admin.reason("POST", path, creation(MAX_PARTITIONS + 1)))[0] == 406
    assert await admin.status("POST", path, creation(2**31)) == 400
    assert (await admin.get(path))["defaultNumPartitions"] == MAX_PARTITIONS


@pytest.mark.parametrize(
    ("word", "body"),
    [
        ("messageTTL", 2**31),
        ("maxProducersPerTopic", 2**31),
        ("delayedDelivery", {"active": True, "tickTime": 2**63}),
        ("delayedDelivery", {"active": True, "maxDeliveryDelayInMillis": 1e300}),
        ("backlogQuota", {"policy": "producer_exception", "limitSize": 2**63}),
        ("backlogQuota", {"policy": "producer_exception", "limitTime": 2**31}),
    ],
)
async def test_a_number_that_its_field_can_not_hold_is_refused(
    admin: Admin, word: str, body: Any
) -> None:
    assert await admin.status("POST", f"{N}/{word}", body) == 400
