"""One broker's load, and the statistics of all its topics."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin

STATS = "/admin/v2/broker-stats"
TOPIC = "persistent://public/default/a"


async def with_backlog(admin: Admin) -> PersistentTopic:
    await admin.call("PUT", "/admin/v2/persistent/public/default/a/subscription/s", "earliest")
    topic = admin.service.topics.loaded(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    for _ in range(3):
        await topic.ledger.append_and_wait(b"message")
    return topic


async def test_the_report_counts_what_is_loaded(admin: Admin) -> None:
    before = await admin.get(STATS + "/load-report")
    await with_backlog(admin)
    after = await admin.get(STATS + "/load-report")
    assert after["numTopics"] - before["numTopics"] == 1
    assert len(after["bundles"]) == after["numBundles"] == before["numBundles"] + 1
    assert 0 < after["memory"]["usage"] < after["memory"]["limit"]
    assert after["cpu"]["usage"] >= 0
    assert after["startTimestamp"] <= after["lastUpdate"]


async def test_all_topics_are_shown_by_namespace_and_bundle(admin: Admin) -> None:
    topic = await with_backlog(admin)
    bundle = await admin.service.namespaces.bundle_of(topic.name)
    found = (await admin.get(STATS + "/topics"))["public/default"][bundle]["persistent"][TOPIC]
    assert found["storageSize"] == topic.ledger.size_bytes
    assert found["subscriptions"]["s"]["msgBacklog"] == 3
    assert (found["producerCount"], found["msgInCount"]) == (0, 0)


async def test_metrics_are_of_the_cache_and_of_each_namespace(admin: Admin) -> None:
    topic = await with_backlog(admin)
    cache, space = await admin.get(STATS + "/metrics")
    assert cache["metrics"]["brk_ml_count"] == 1
    assert space["dimensions"] == {"namespace": "public/default"}
    assert space["metrics"]["brk_msg_backlog"] == 3
    assert space["metrics"]["brk_storage_size"] == topic.ledger.size_bytes
    assert space["metrics"]["brk_no_of_subscriptions"] == 1


async def test_what_is_javas_is_empty(admin: Admin) -> None:
    assert await admin.get(STATS + "/mbeans") == []
    assert await admin.get(STATS + "/bookieops") == {}
    assert (await admin.get(STATS + "/allocator-stats/ml-cache"))["directArenas"] == []
    assert (await admin.reason("GET", STATS + "/allocator-stats/other"))[0] == 406
    path = STATS + "/broker-resource-availability/public/"
    assert (await admin.reason("GET", path + "default"))[0] == 409
    assert (await admin.reason("GET", path + "none"))[0] == 404
