"""Topics: create, list, partitions, delete, unload, terminate, statistics."""

from __future__ import annotations

import json

import pytest

from pulsar_py.admin.resources.topic_access import require_topic
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.server.broker_settings import registry_settings
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS
from tests.unit.admin.resources.conftest import Admin

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


async def test_properties_are_kept(admin: Admin) -> None:
    await admin.call("PUT", P + "/a", {"k": "v"})
    assert await admin.get(P + "/a/properties") == {"k": "v"}
    assert (await admin.call("GET", P + "/nowhere/properties")).status == 404


async def test_partitions_are_created_grown_and_deleted(admin: Admin) -> None:
    path = P + "/p/partitions"
    assert await admin.status("PUT", path, 2) == 204
    assert await admin.reason("PUT", path, 2) == EXISTS
    assert await admin.reason("PUT", P + "/p") == EXISTS
    assert await admin.get(path) == {"partitions": 2, "deleted": False}
    assert await admin.get(P + "/partitioned") == ["persistent://public/default/p"]
    assert await admin.status("POST", path, 3) == 204
    assert await admin.status("POST", path, 3) == 204
    assert (await admin.reason("POST", path, 1))[0] == 422
    assert len(await admin.get(P)) == 3
    assert (await admin.reason("DELETE", P + "/p"))[0] == 409
    assert await admin.status("DELETE", path) == 204
    assert await admin.get(P) == []
    assert (await admin.reason("DELETE", path))[0] == 404


async def test_the_vendor_type_carries_properties(admin: Admin) -> None:
    response = await admin.call(
        "PUT",
        P + "/p/partitions",
        {"partitions": 1, "properties": {"a": "b"}},
        content_type="application/vnd.partitioned-topic-metadata+json",
    )
    assert response.status == 204
    assert (await admin.get(P + "/p/partitions"))["properties"] == {"a": "b"}
    assert await admin.get(P + "/p/properties") == {"a": "b"}


@pytest.mark.parametrize(
    ("topic", "body", "status"),
    [("z", 0, 406), ("z", -1, 406), ("p-partition-1", 2, 412), ("z", "x", 400), ("z", ..., 400)],
)
async def test_partitions_that_make_no_sense_are_refused(
    admin: Admin, topic: str, body: object, status: int
) -> None:
    assert await admin.status("PUT", f"{P}/{topic}/partitions", body) == status


async def test_the_number_of_partitions_is_limited(admin: Admin) -> None:
    config = admin.service.config.replace(maxNumPartitionsPerPartitionedTopic=2)
    admin.service.topics.apply_settings(registry_settings(config))
    assert (await admin.reason("PUT", P + "/p/partitions", 3))[0] == 406
    await admin.call("PUT", P + "/p/partitions", 2)
    assert (await admin.reason("POST", P + "/p/partitions", 3))[0] == 422


async def test_without_a_setting_the_number_of_partitions_is_limited_too(admin: Admin) -> None:
    beyond = MAX_PARTITIONS + 1
    words = f"Number of partitions should be less than or equal to {MAX_PARTITIONS}"
    assert await admin.reason("PUT", P + "/p/partitions", beyond) == (406, words)
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.reason("POST", P + "/p/partitions", beyond) == (422, words)
    assert (await admin.get(P + "/p/partitions"))["partitions"] == 1


@pytest.mark.parametrize("number", [2**31, 2**63, 10**400, 1e300, str(2**31)])
async def test_a_number_of_partitions_has_32_bits(admin: Admin, number: object) -> None:
    assert await admin.status("PUT", P + "/p/partitions", number) == 400
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.status("POST", P + "/p/partitions", number) == 400
    assert (await admin.get(P + "/p/partitions"))["partitions"] == 1


async def test_a_name_like_a_partitions_has_to_be_one(admin: Admin) -> None:
    assert (await admin.reason("PUT", P + "/p-partition-0"))[0] == 412
    await admin.call("PUT", P + "/p/partitions", 1)
    assert await admin.reason("PUT", P + "/p-partition-0") == EXISTS
    assert (await admin.reason("PUT", P + "/p-partition-1"))[0] == 412


async def test_partitions_of_other_names(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    none = {"partitions": 0, "deleted": False}
    assert await admin.get(P + "/a/partitions") == none
    assert await admin.status("GET", P + "/nowhere/partitions") == 404
    assert await admin.get(P + "/nowhere/partitions?checkAllowAutoCreation=true") == none
    assert (await admin.reason("POST", P + "/a/partitions", 2))[0] == 409
    assert (await admin.reason("DELETE", P + "/a/partitions"))[0] == 409


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


async def published(admin: Admin, name: str, count: int) -> PersistentTopic:
    topic = await require_topic(admin.service, TopicName.parse(name))
    assert isinstance(topic, PersistentTopic)
    for _ in range(count):
        await topic.ledger.append_and_wait(b"entry")
    return topic


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


async def test_statistics_count_what_is_stored(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await published(admin, "a", 2)
    assert (await admin.get(P + "/a/stats"))["storageSize"] == 10
    internal = await admin.get(P + "/a/internalStats")
    assert internal["numberOfEntries"] == 2
    assert internal["lastConfirmedEntry"].endswith(":1")
    assert internal["schemaLedgers"] == []
    for fields in ([], [{"name": "a", "type": ["null", "int"], "default": None}]):
        record = {"type": "record", "name": "R", "fields": fields}
        schema = {"type": "AVRO", "schema": json.dumps(record), "properties": {}}
        await admin.call("POST", "/admin/v2/schemas/public/default/a/schema", schema)
    ledgers = (await admin.get(P + "/a/internalStats"))["schemaLedgers"]
    assert [each["entries"] for each in ledgers] == [1, 1]
    assert len({each["ledgerId"] for each in ledgers}) == 2
    assert ledgers[1]["size"] > ledgers[0]["size"] > 0
    assert (await admin.reason("GET", P + "/nowhere/stats"))[0] == 404


async def test_statistics_of_partitions_are_added_up(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    for index in range(2):
        await published(admin, f"p-partition-{index}", index + 1)
    stats = await admin.get(P + "/p/partitioned-stats")
    assert stats["storageSize"] == 15
    assert len(stats["partitions"]) == 2
    assert stats["metadata"]["partitions"] == 2
    assert (await admin.get(P + "/p/partitioned-stats?perPartition=false"))["partitions"] == {}
    assert len((await admin.get(P + "/p/partitioned-internalStats"))["partitions"]) == 2
    assert (await admin.reason("GET", P + "/p/stats"))[0] == 404
    assert (await admin.reason("GET", P + "/nowhere/partitioned-stats"))[0] == 404


async def test_topics_in_memory_have_statistics_too(admin: Admin) -> None:
    await admin.call("PUT", NP + "/q")
    assert (await admin.get(NP + "/q/stats"))["storageSize"] == 0
    assert (await admin.get(NP + "/q/internalStats"))["numberOfEntries"] == 0
    assert (await admin.reason("GET", NP + "/q/lastMessageId"))[0] == 405
    assert await admin.status("DELETE", NP + "/nowhere") == 204


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


async def test_ledgers_are_described_on_request(admin: Admin) -> None:
    path = "/admin/v2/persistent/public/default/a"
    await admin.call("PUT", path)
    (plain,) = (await admin.get(path + "/internalStats"))["ledgers"]
    assert "metadata" not in plain
    (described,) = (await admin.get(path + "/internalStats?metadata=true"))["ledgers"]
    assert described["metadata"].startswith("LedgerMetadata{state=OPEN")
    assert "public/default/persistent/a" in described["metadata"]
