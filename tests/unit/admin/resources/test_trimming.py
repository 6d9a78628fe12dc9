"""Deleting what topics store."""

from __future__ import annotations

from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"
KEPT = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}


async def with_messages(admin: Admin, name: str) -> PersistentTopic:
    await admin.call("GET", f"{P}/{name}/stats")  # takes the topic's bundle
    found = await admin.service.topics.get_or_load(
        TopicName.parse(f"persistent://public/default/{name}"), create_if_missing=True
    )
    assert isinstance(found, PersistentTopic)
    for _ in range(3):
        await found.ledger.append_and_wait(b"message")
    return found


async def test_truncating_clears_subscriptions_and_deletes_what_is_retained(admin: Admin) -> None:
    await admin.call("POST", "/admin/v2/namespaces/public/default/retention", KEPT)
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", P + "/a/subscription/s", "earliest")
    topic = await with_messages(admin, "a")
    assert topic.subscriptions["s"].stats().backlog_entries == 3
    assert await admin.status("POST", P + "/a/trim") == 200
    assert topic.ledger.entries_count == 3
    assert await admin.status("DELETE", P + "/a/truncate") == 204
    assert topic.ledger.entries_count == 0
    assert topic.subscriptions["s"].stats().backlog_entries == 0
    await with_messages(admin, "a")
    assert topic.subscriptions["s"].stats().backlog_entries == 3


async def test_trimming_deletes_full_ledgers_that_nobody_needs(admin: Admin) -> None:
    await admin.call("PUT", P + "/a")
    await admin.call("PUT", P + "/a/subscription/s", "latest")
    topic = await with_messages(admin, "a")
    await topic.ledger.roll_ledger()
    await admin.call("POST", P + "/a/trim")
    assert topic.ledger.entries_count == 3  # the subscription needs them
    await admin.call("POST", P + "/a/subscription/s/skip_all")
    assert await admin.status("POST", P + "/a/trim") == 200
    assert topic.ledger.entries_count == 0


async def test_all_partitions_are_truncated(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    topics = [await with_messages(admin, f"p-partition-{index}") for index in range(2)]
    assert await admin.status("DELETE", P + "/p/truncate") == 204
    assert [each.ledger.entries_count for each in topics] == [0, 0]


async def test_a_topic_without_storage_is_refused(admin: Admin) -> None:
    path = P.replace("persistent", "non-persistent") + "/a"
    assert (await admin.reason("DELETE", path + "/truncate"))[0] == 412
    assert (await admin.reason("POST", path + "/trim"))[0] == 412
    assert (await admin.reason("DELETE", P + "/nowhere/truncate"))[0] == 404
