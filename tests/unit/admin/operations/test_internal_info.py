"""What is stored about a topic's ledgers and cursors."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"


async def test_ledgers_and_cursors_are_shown_as_stored(admin: Admin) -> None:
    await admin.call("PUT", P + "/a/subscription/s", "earliest")
    topic = await admin.service.topics.get_or_load(
        TopicName.parse("persistent://public/default/a"), create_if_missing=False
    )
    assert isinstance(topic, PersistentTopic)
    for _ in range(4):
        await topic.ledger.append_and_wait(b"message")
    first = topic.ledger.first_position
    topic.ledger.cursors["s"].acknowledge([first._replace(entry_id=each) for each in (0, 2)])
    await admin.call("PUT", P + "/a/unload")
    found = await admin.get(P + "/a/internal-info")
    (ledger,) = found["ledgers"]
    assert (ledger["ledgerId"], ledger["entries"], ledger["size"]) == (first.ledger_id, 4, 28)
    cursor = found["cursors"]["s"]
    position = {"ledgerId": first.ledger_id}
    assert cursor["markDelete"] == {**position, "entryId": 0}
    assert cursor["individualDeletedMessages"] == [
        {"from": {**position, "entryId": 1}, "to": {**position, "entryId": 2}}
    ]
    assert admin.service.topics.loaded(topic.name) is None  # looking loaded nothing


async def test_each_partition_has_its_own(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    found = await admin.get(P + "/p/internal-info")
    assert list(found["partitions"]) == [
        f"persistent://public/default/p-partition-{index}" for index in range(2)
    ]
    assert await admin.status("GET", P + "/none/internal-info") == 404
    path = P.replace("persistent", "non-persistent") + "/a/internal-info"
    assert await admin.status("GET", path) == 405


async def test_the_backlog_of_a_topic_is_what_its_cursors_are_behind(admin: Admin) -> None:
    path = "/admin/v2/persistent/public/default/behind"
    await admin.call("PUT", path)
    await admin.call("PUT", path + "/subscription/s", "earliest")
    topic = await admin.service.topics.get_or_load(
        TopicName.parse("persistent://public/default/behind"), create_if_missing=False
    )
    assert isinstance(topic, PersistentTopic)
    for _ in range(3):
        await topic.ledger.append_and_wait(b"1234567890")
    found = await admin.get(path + "/backlog")
    assert (found["totalMessages"], found["messageBacklog"], found["storageSize"]) == (3, 3, 30)
    assert found["cursorDetails"]["s"]["cursorBacklog"] == 3
    assert [each["entries"] for each in found["dataLedgerDetails"]] == [3]


async def test_the_backlog_of_no_topic_is_nothing(admin: Admin) -> None:
    found = await admin.get("/admin/v2/persistent/public/default/none/backlog")
    assert (found["topicName"], found["storageSize"]) == ("public/default/persistent/none", 0)
    assert await admin.status("GET", "/admin/v2/persistent/public/none/none/backlog") == 404
