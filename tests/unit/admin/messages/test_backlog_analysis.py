"""Counting a backlog by looking at it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.common.ack_set import to_words
from pulsar_py.standalone import Broker
from tests.unit.admin.messages.conftest import T, entry_of, messages, topic_with
from tests.unit.admin.resources.conftest import Admin

ANALYZE = T + "/subscription/s/analyzeBacklog"


async def analyzed(admin: Admin, body: Any = ...) -> dict[str, Any]:
    answer = await admin.call("POST", ANALYZE, body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def test_messages_and_markers_are_counted_apart(admin: Admin) -> None:
    topic = await topic_with(
        admin,
        entry_of(0, b"one"),
        entry_of(1, b"batch", num_messages_in_batch=5),
        entry_of(2, b"marker", marker_type=10),
        entry_of(3, b"acknowledged"),
        entry_of(4, b"one"),
    )
    first = topic.ledger.first_position
    topic.ledger.cursors["s"].acknowledge([first._replace(entry_id=3)])
    found = await analyzed(admin)
    assert (found["entries"], found["messages"], found["markerMessages"]) == (4, 7, 1)
    assert found["firstMessageId"] == f"{first.ledger_id}:0"
    assert found["lastMessageId"] == f"{first.ledger_id}:4"
    assert found["aborted"] is False
    start = {"ledgerId": first.ledger_id, "entryId": 1}
    assert (await analyzed(admin, start))["entries"] == 3
    assert list(topic.ledger.cursors) == ["s"]  # nothing is left behind


async def test_an_empty_backlog_has_no_ids(admin: Admin) -> None:
    await topic_with(admin)
    found = await analyzed(admin)
    assert found["entries"] == 0
    assert "firstMessageId" not in found


@pytest.mark.setting("subscriptionBacklogScanMaxEntries", "subscriptionBacklogScanMaxTimeMs")
async def test_a_scan_ends_at_its_limits() -> None:
    for name, value, entries in (
        ("subscriptionBacklogScanMaxEntries", 2, 2),
        ("subscriptionBacklogScanMaxTimeMs", 0, 0),
    ):
        async with Broker(config={name: value}) as broker:
            admin = Admin(broker.service)
            await topic_with(admin, *messages(3))
            found = await analyzed(admin)
            assert (found["entries"], found["aborted"]) == (entries, True)


async def test_what_has_no_backlog_is_refused(admin: Admin) -> None:
    await topic_with(admin)
    assert await admin.status("POST", T + "/subscription/x/analyzeBacklog") == 404
    await admin.call("PUT", T.removesuffix("a") + "p/partitions", 2)
    path = T.removesuffix("a") + "p/subscription/s/analyzeBacklog"
    assert await admin.status("POST", path) == 405


async def test_acknowledged_messages_of_a_batch_do_not_count(admin: Admin) -> None:
    topic = await topic_with(
        admin,
        entry_of(0, b"batch", num_messages_in_batch=70),
        entry_of(70, b"batch", num_messages_in_batch=3),
        entry_of(73, b"one"),
    )
    first = topic.ledger.first_position
    second = first._replace(entry_id=1)
    # Of the first batch messages 0 and 65 are acknowledged, of the second the middle one; the
    # client of the second leaves all bits behind its messages set.
    words = [to_words((1 << 70) - 1 - 1 - (1 << 65)), [-3]]
    topic.ledger.cursors["s"].acknowledge([first, second], words)
    found = await analyzed(admin)
    assert (found["entries"], found["messages"]) == (3, 68 + 2 + 1)
    assert found["filterAcceptedMessages"] == 71
    topic.ledger.cursors["s"].acknowledge([second], [[0]])
    found = await analyzed(admin)
    assert (found["entries"], found["messages"]) == (2, 68 + 1)


async def test_what_filters_say_is_counted() -> None:
    async with Broker(config={"entryFilterNames": "tests.hook_classes.ByPayload"}) as broker:
        admin = Admin(broker.service)
        topic = await topic_with(
            admin,
            entry_of(0, b"yes"),
            entry_of(1, b"no", num_messages_in_batch=4),
            entry_of(2, b"later"),
            entry_of(3, b"no marker", marker_type=10),
            entry_of(4, b"bad"),
        )
        batch = topic.ledger.first_position._replace(entry_id=1)
        topic.ledger.cursors["s"].acknowledge([batch], [to_words(0b0111)])
        found = await analyzed(admin)
        assert (found["entries"], found["messages"], found["markerMessages"]) == (5, 6, 1)
        assert (found["filterAcceptedEntries"], found["filterAcceptedMessages"]) == (2, 2)
        assert (found["filterRejectedEntries"], found["filterRejectedMessages"]) == (1, 3)
        assert (found["filterRescheduledEntries"], found["filterRescheduledMessages"]) == (1, 1)
        assert topic.subscriptions["s"].filter_counts.processed == 0  # nothing was dispatched
