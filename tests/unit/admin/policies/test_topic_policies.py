"""Policies of topics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.policies.topic_policy_table import POLICIES
from pulsar_py.common.names import TopicName
from pulsar_py.common.network.http_client import HttpClient, HttpRequest
from pulsar_py.common.policies import BacklogQuotaType
from pulsar_py.server.change_events.namespace_events import events_topic
from pulsar_py.server.policies.policy_events import PolicyEvent
from pulsar_py.standalone import Broker
from tests.policy_levels import CONFIG, LEVELS, ROWS, Row
from tests.policy_levels import TOPIC as OF_LEVELS
from tests.simulation.brokers_world import NAMESPACE
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service
from tests.unit.admin.resources.conftest import Admin
from tests.unit.server.change_events.event_parts import until

P = "/admin/v2/persistent/public/default"


async def test_the_largest_message_is_set_shown_and_unset(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    path = P + "/a/maxMessageSize"
    assert await admin.status("GET", path) == 204
    assert await admin.status("POST", path, 100) == 204
    assert await admin.get(path) == 100
    assert await admin.status("DELETE", path) == 204
    assert await admin.status("GET", path) == 204


async def test_a_policy_of_a_partitioned_topic_is_set_on_its_name(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    assert await admin.status("POST", P + "/p/maxMessageSize", 100) == 204
    assert (await admin.reason("POST", P + "/p-partition-0/maxMessageSize", 100))[0] == 412


@pytest.mark.parametrize(("value", "status"), [(-1, 412), (5 * 1024 * 1024 + 1, 412), ("x", 400)])
async def test_sizes_have_bounds(admin: Admin, value: object, status: int) -> None:
    await admin.call("PUT", P + "/a")
    assert await admin.status("POST", P + "/a/maxMessageSize", value) == status


async def test_a_policy_needs_its_topic(admin: Admin) -> None:
    for method, body in (("GET", ...), ("POST", 1), ("DELETE", ...)):
        assert await admin.status(method, P + "/nowhere/maxMessageSize", body) == 404


RETENTION = {"retentionTimeInMinutes": 5, "retentionSizeInMB": 5}
RATE = {
    "dispatchThrottlingRateInMsg": 1,
    "dispatchThrottlingRateInByte": 2,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 3,
}


async def test_the_policy_of_this_cluster_counts_before_that_of_all(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    path = P + "/a/maxProducers"
    await admin.call("POST", path + "?isGlobal=true", 7)
    assert (await admin.call("GET", path)).body == b""
    assert await admin.get(path + "?isGlobal=true") == 7
    assert await admin.get(path + "?applied=true") == 7
    await admin.call("POST", path, 5)
    assert await admin.get(path + "?applied=true") == 5
    assert await admin.status("DELETE", P + "/a/policies") == 204
    assert await admin.get(path + "?applied=true") == 0
    assert (await admin.call("GET", path + "?isGlobal=true")).body == b""


async def test_what_a_topic_has_not_comes_from_its_namespace(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    path = P + "/a/retention?applied=true"
    assert await admin.get(path) == {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    await admin.call("POST", "/admin/v2/namespaces/public/default/retention", RETENTION)
    assert await admin.get(path) == RETENTION


async def test_a_subscription_has_a_rate_of_its_own(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    path = P + "/a/s/dispatchRate"
    assert (await admin.call("GET", path)).body == b""
    await admin.call("POST", P + "/a/subscriptionDispatchRate", {**RATE, "ratePeriodInSecond": 9})
    assert (await admin.get(path + "?applied=true"))["ratePeriodInSecond"] == 9
    assert await admin.status("POST", path, RATE) == 204
    assert await admin.get(path + "?applied=true") == RATE
    assert (await admin.call("GET", P + "/a/t/dispatchRate")).body == b""
    assert await admin.status("DELETE", path) == 204
    assert (await admin.call("GET", path)).body == b""


async def test_retention_is_above_the_size_quota(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    quota = {"limitSize": 5 * 1024 * 1024, "policy": "producer_exception"}
    assert await admin.status("POST", P + "/a/retention", RETENTION) == 204
    assert (await admin.reason("POST", P + "/a/backlogQuota", quota))[0] == 412
    assert (
        await admin.status("POST", P + "/a/backlogQuota?backlogQuotaType=message_age", quota) == 204
    )
    assert (await admin.call("DELETE", P + "/a/retention")).status == 204
    assert await admin.status("POST", P + "/a/backlogQuota", quota) == 204
    assert (await admin.reason("POST", P + "/a/retention", RETENTION))[0] == 412
    assert (await admin.get(P + "/a/backlogQuotaMap")).keys() == {
        "destination_storage",
        "message_age",
    }


async def test_a_time_to_live_is_a_parameter(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    assert await admin.status("POST", P + "/a/messageTTL?messageTTL=60") == 204
    assert await admin.get(P + "/a/messageTTL") == 60
    assert await admin.status("POST", P + "/a/messageTTL?messageTTL=-1") == 412
    assert await admin.status("POST", P + "/a/messageTTL?messageTTL=soon") == 404


@pytest.mark.parametrize("setting", ["topicLevelPoliciesEnabled", "systemTopicEnabled"])
async def test_a_broker_may_have_no_policies_of_topics(setting: str) -> None:
    async with Broker(config={setting: False}) as broker:
        admin = Admin(broker.service)
        await admin.call("PUT", P + "/a")
        assert await admin.status("GET", P + "/a/retention") == 405
        assert await admin.status("DELETE", P + "/a/policies") == 405


@in_cluster("one", "two")
async def test_any_broker_tells_what_the_owner_of_the_log_has_read(world: ClusterWorld) -> None:
    path = "/admin/v2/persistent/public/default/t"
    assert (await ask_cluster("one", "PUT", path)) is None
    await world.clock.sleep(1)  # until both servers of the metadata know the topic
    await ask_cluster("one", "POST", f"{path}/maxConsumers", 7)
    events = events_topic(NAMESPACE)
    (owner,) = [name for name in world.nodes if service(world, name).namespaces.is_owned(events)]
    # As a broker without copies does: the log has more than they say.
    log = service(world, owner).topic_policies
    namespace_events = log._of(NAMESPACE)
    topic = TopicName.parse("persistent://public/default/t")
    assert namespace_events._log is not None
    await namespace_events._log.append(
        PolicyEvent(topic, is_global=False, document={"maxConsumerPerTopic": 8})
    )
    for host in world.nodes:
        assert await ask_cluster(host, "GET", f"{path}/maxConsumers") == 8


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.word)
async def test_the_level_nearest_to_the_topic_applies_and_is_served(row: Row) -> None:
    """Each policy at four levels: set one after the other, then removed from the nearest on."""
    async with Broker(config=CONFIG) as broker:
        admin = Admin(broker.service)
        for name in ("east", "west"):
            await admin.call("PUT", f"/admin/v2/clusters/{name}", {"serviceUrl": "http://h:1"})
        tenant = {"adminRoles": [], "allowedClusters": ["standalone", "east", "west"]}
        await admin.call("POST", "/admin/v2/tenants/public", tenant)
        await admin.call("PUT", OF_LEVELS)
        topic = await broker.service.topics.get_or_load(
            TopicName.parse("persistent://public/default/levels"), create_if_missing=False
        )

        async def check(level: int) -> None:
            where, wanted = LEVELS[level], row.expected(level)
            if row.has_applied:
                answer = await admin.call("GET", f"{OF_LEVELS}/{row.word}?applied=true")
                applied = json.loads(answer.body) if answer.body else None
                if isinstance(applied, dict) and wanted is not None:
                    applied = {name: applied[name] for name in wanted}  # others are defaults
                assert applied == wanted, where
            if row.served is None:
                return
            served = row.served
            await until(lambda: served(topic.settings) == wanted)

        await check(0)
        for level in row.levels:
            assert (await admin.call(*row.set_at(level))).status in (200, 204)
            await check(level)
        if not row.can_be_deleted:
            return
        below = (0, *row.levels)
        for level, next_level in ((3, 2), (2, below[-3])):
            assert await admin.status(*row.remove_at(level)) == 204
            await check(next_level)


def test_each_policy_has_a_row_of_levels() -> None:
    assert {row.word for row in ROWS} == {each.word for each in POLICIES} - {"shadowTopics"}
    assert {row.word for row in ROWS if row.has_applied} == {
        each.word for each in POLICIES if each.default is not None
    }


async def test_quotas_of_all_levels_apply_type_by_type() -> None:
    config = {"backlogQuotaDefaultLimitBytes": 100, "backlogQuotaDefaultLimitSecond": 10}
    async with Broker(config=config) as broker:
        admin = Admin(broker.service)
        await admin.call("PUT", P + "/a")

        async def applied() -> tuple[int, int]:
            quotas = await admin.get(P + "/a/backlogQuotaMap?applied=true")
            return quotas["destination_storage"]["limitSize"], quotas["message_age"]["limitTime"]

        def size(limit: int) -> dict[str, object]:
            return {"limitSize": limit, "policy": "producer_exception"}

        def age(limit: int) -> dict[str, object]:
            return {"limitTime": limit, "policy": "producer_exception"}

        assert await applied() == (100, 10)
        namespace = "/admin/v2/namespaces/public/default/backlogQuota"
        await admin.call("POST", namespace, size(200))
        assert await applied() == (200, 10)
        by_age = "backlogQuotaType=message_age"
        await admin.call("POST", f"{P}/a/backlogQuota?{by_age}&isGlobal=true", age(30))
        assert await applied() == (200, 30)
        await admin.call("POST", f"{P}/a/backlogQuota", size(400))
        assert (await applied())[0] == 400
        topic = await broker.service.topics.get_or_load(
            TopicName.parse("persistent://public/default/a"), create_if_missing=False
        )

        def served() -> tuple[int, int]:
            quotas = topic.settings.backlog_quotas
            return (
                quotas[BacklogQuotaType.DESTINATION_STORAGE].limit_bytes,
                quotas[BacklogQuotaType.MESSAGE_AGE].limit_seconds,
            )

        await until(lambda: served() == (400, 30))


async def ask_cluster(host: str, method: str, path: str, body: object = None) -> Any:  # Any: JSON
    """What a broker answers, redirects followed."""
    async with HttpClient(timeout_seconds=60, max_redirects=5) as client:
        request = HttpRequest(
            method=method,
            url=f"http://{host}:8080{path}",
            body=b"" if body is None else json.dumps(body).encode(),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        answer = await client.send(request)
    assert answer.status < 300, (answer.status, answer.body)
    return answer.json() if answer.body else None
