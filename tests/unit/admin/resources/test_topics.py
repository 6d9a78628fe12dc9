"""Topics: list, create, delete, unload, compact, terminate."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin, published

P = "/admin/v2/persistent/public/default"
NP = "/admin/v2/non-persistent/public/default"
EXISTS = (409, "This topic already exists")


async def test_a_topic_is_created_listed_and_deleted(admin: Admin) -> None:
    assert await admin.status("PUT", P + "/a") == 204
    assert await admin.reason("PUT", P + "/a") == EXISTS
    assert await admin.get(P) == ["persistent://public/default/a"]
    assert await admin.get(NP) == []
    assert await admin.status("DELETE", P + "/a") == 204
    assert await admin.reason("DELETE", P + "/a") == (
        404,
        "Topic persistent://public/default/a not found",
    )


async def test_counts_that_are_reached_answer_as_apache_pulsar_does(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("POST", P + "/a/maxSubscriptionsPerTopic", 1)
    await admin.service.clock.sleep(1)
    assert await admin.status("PUT", P + "/a/subscription/s") == 204
    reason = (
        "Exceed the maximum number of subscriptions of the topic: persistent://public/default/a"
    )
    assert await admin.reason("PUT", P + "/a/subscription/t") == (409, reason)
    await admin.call("POST", "/admin/v2/namespaces/public/default/maxTopicsPerNamespace", 1)
    reason = "Exceed maximum number of topics in namespace."
    assert await admin.reason("PUT", P + "/b") == (409, reason)
    assert await admin.reason("PUT", P + "/p/partitions", 2) == (412, reason)


async def test_properties_are_kept(admin: Admin) -> None:
    await admin.call("PUT", P + "/a", {"k": "v"})
    assert await admin.get(P + "/a/properties") == {"k": "v"}
    assert (await admin.call("GET", P + "/nowhere/properties")).status == 404


async def test_a_name_like_a_partitions_has_to_be_one(admin: Admin) -> None:
    assert (await admin.reason("PUT", P + "/p-partition-0"))[0] == 412
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.reason("PUT", P + "/p-partition-0") == EXISTS
    assert (await admin.reason("PUT", P + "/p-partition-1"))[0] == 412


async def test_unloading_closes_a_topic_or_all_partitions(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", P + "/p/partitions", 2)
    loaded = admin.service.topics.loaded
    for name in ("a", "p"):
        assert await admin.status("PUT", f"{P}/{name}/unload") == 204
    assert loaded(TopicName.parse("a")) is None
    assert loaded(TopicName.parse("p-partition-1")) is None
    assert (await admin.reason("PUT", P + "/nowhere/unload"))[0] == 404
    assert await admin.reason("PUT", P + "/p-partition-7/unload") == (
        404,
        "Topic partitions were not yet created",
    )


async def test_terminating_says_where_the_end_is(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    topic = await published(admin, "a", 3)
    end = {
        "ledgerId": topic.ledger.last_confirmed_entry.ledger_id,
        "entryId": 2,
        "partitionIndex": -1,
        "batchIndex": -1,
        "batchSize": 0,
    }
    assert await admin.get(P + "/a/lastMessageId") == end
    topic.move_max_read_position(Position(end["ledgerId"], 1))
    assert await admin.get(P + "/a/lastMessageId") == {**end, "entryId": 1}
    topic.move_max_read_position(LATEST)
    response = await admin.call("POST", P + "/a/terminate")
    assert response.status == 200
    assert await admin.get(P + "/a/lastMessageId") == end
    assert topic.ledger.is_terminated


async def test_only_what_stores_can_be_terminated(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    await admin.call("PUT", P + "/a")
    assert (await admin.reason("POST", P + "/p/terminate"))[0] == 405
    assert (await admin.reason("POST", P + "/a/terminate/partitions"))[0] == 405
    assert (await admin.reason("POST", NP + "/q/terminate"))[0] == 406
    response = await admin.call("POST", P + "/p/terminate/partitions")
    assert response.status == 200
    assert b'"1":' in response.body


async def test_policies_can_still_be_set_since_their_topic_is_not_terminated(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    assert await admin.status("POST", P + "/a/maxProducers", 3) == 204  # makes the topic
    refusal = (405, "Termination of a system topic is not allowed")
    assert await admin.reason("POST", P + "/__change_events/terminate") == refusal
    assert await admin.status("POST", P + "/a/maxProducers", 4) == 204


async def test_a_topic_is_compacted(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", P + "/p/partitions", 2)
    assert (await admin.get(P + "/a/compaction")) == {"status": "NOT_RUN", "lastError": ""}
    assert await admin.status("PUT", P + "/a/compaction") == 204
    assert await admin.reason("PUT", P + "/a/compaction") == (409, "Compaction already in progress")
    assert await admin.status("PUT", P + "/p/compaction") == 204
    topic = admin.service.topics.loaded(TopicName.parse("persistent://public/default/a"))
    assert isinstance(topic, PersistentTopic)
    assert topic.compaction is not None
    await topic.compaction.finished()
    assert (await admin.get(P + "/a/compaction")) == {"status": "SUCCESS", "lastError": ""}
    assert await admin.status("PUT", P + "/nowhere/compaction") == 404
