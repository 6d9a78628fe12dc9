"""Subscriptions: list, create, delete, skip, expire, reset."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from pulsar_py.admin.http_messages import Request, Response, UnreadableBodyError
from pulsar_py.admin.resources.subscriptions import read_reset_cursor
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest, SubscriptionType
from pulsar_py.server.subscriptions.persistent_subscription import (
    PersistentSubscription,
    SubscriptionState,
)
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.dispatch_parts import FakeConnection
from tests.unit.admin.resources.conftest import Admin

P = "/admin/v2/persistent/public/default"
A = P + "/a"
PUBLISHED_MILLIS = 1_700_000_000_000


def entry(publish_time: int) -> bytes:
    metadata = MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=publish_time
    ).SerializeToString()
    return len(metadata).to_bytes(4, "big") + metadata + b"payload"


async def with_entries(admin: Admin, count: int, name: str = "a") -> PersistentTopic:
    await admin.call("PUT", f"{P}/{name}")
    topic = admin.service.topics.loaded(TopicName.parse(name))
    assert isinstance(topic, PersistentTopic)
    for index in range(count):
        await topic.ledger.append_and_wait(entry(PUBLISHED_MILLIS + 1000 * index))
    return topic


async def backlog(admin: Admin, subscription: str, topic: str = "a") -> int:
    stats = await admin.get(f"{P}/{topic}/stats")
    return int(stats["subscriptions"][subscription]["msgBacklog"])


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (..., 0),
        (None, 0),
        ("latest", 0),
        ("earliest", 5),
        ({"ledgerId": -1, "entryId": -1}, 5),
        ({"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}, 0),
    ],
)
async def test_a_subscription_starts_where_it_is_told(admin: Admin, body: Any, count: int) -> None:
    await with_entries(admin, 5)
    assert await admin.status("PUT", A + "/subscription/s", body) == 204
    assert await backlog(admin, "s") == count
    assert (await admin.reason("PUT", A + "/subscription/s", body))[0] == 409


async def test_a_subscription_can_start_at_a_message(admin: Admin) -> None:
    topic = await with_entries(admin, 5)
    ledger_id = topic.ledger.last_confirmed_entry.ledger_id
    body = {"ledgerId": ledger_id, "entryId": 2, "properties": {"a": "b"}}
    await admin.call("PUT", A + "/subscription/s", body)
    assert await backlog(admin, "s") == 3
    stats = await admin.get(A + "/stats")
    assert stats["subscriptions"]["s"]["subscriptionProperties"] == {"a": "b"}


async def test_names_may_be_odd(admin: Admin) -> None:
    await with_entries(admin, 0)
    assert await admin.status("PUT", A + "/subscription/a%2Fb%20c") == 204
    assert await admin.get(A + "/subscriptions") == ["a/b c"]
    assert await admin.status("DELETE", A + "/subscription/a%2Fb%20c") == 204
    assert (await admin.reason("DELETE", A + "/subscription/a%2Fb%20c"))[0] == 404


async def test_a_missing_topic_is_created_with_its_subscription(admin: Admin) -> None:
    assert await admin.status("PUT", P + "/fresh/subscription/s") == 204
    assert await admin.get(P + "/fresh/subscriptions") == ["s"]
    assert await admin.status("GET", P + "/nowhere/subscriptions") == 404


async def test_on_a_partitioned_topic_all_partitions_get_it(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    assert await admin.status("PUT", P + "/p/subscription/s", "earliest") == 204
    assert await admin.get(P + "/p-partition-1/subscriptions") == ["s"]
    await admin.call("PUT", P + "/p-partition-0/subscription/only")
    assert await admin.get(P + "/p/subscriptions") == ["only", "s"]
    assert await admin.status("PUT", P + "/p/subscription/only") == 204
    assert await admin.status("DELETE", P + "/p/subscription/s") == 204
    assert await admin.reason("DELETE", P + "/p/subscription/s") == (404, "Subscription not found")
    assert (await admin.reason("POST", P + "/p/subscription/only/skip/1"))[0] == 405
    assert (await admin.reason("POST", P + "/p/subscription/only/resetcursor", "latest"))[0] == 405
    assert (await admin.reason("POST", P + "/p/subscription/only/expireMessages", "latest"))[
        0
    ] == 405
    assert (await admin.reason("PUT", P + "/p-partition-5/subscription/s"))[0] == 412


async def test_skipping_acknowledges(admin: Admin) -> None:
    await with_entries(admin, 5)
    await admin.call("PUT", A + "/subscription/s", "earliest")
    assert await admin.status("POST", A + "/subscription/s/skip/2") == 204
    assert await backlog(admin, "s") == 3
    assert await admin.status("POST", A + "/subscription/s/skip/-1") == 204
    assert await backlog(admin, "s") == 3
    assert await admin.status("POST", A + "/subscription/s/skip_all") == 204
    assert await backlog(admin, "s") == 0
    assert await admin.status("POST", A + "/subscription/s/skip/few") == 404
    assert await admin.status("POST", A + "/subscription/nobody/skip_all") == 404


async def test_dispatch_is_paused_and_resumed_also_over_an_unload(admin: Admin) -> None:
    topic = await with_entries(admin, 1)
    await admin.call("PUT", A + "/subscription/s", "earliest")
    assert await admin.status("PUT", A + "/subscription/s/pause") == 204
    assert cast("PersistentSubscription", topic.subscriptions["s"]).is_dispatch_paused
    await admin.call("PUT", A + "/unload")
    await admin.get(A + "/stats")
    again = admin.service.topics.loaded(TopicName.parse("a"))
    assert isinstance(again, PersistentTopic)
    assert again is not topic
    topic = again
    assert cast("PersistentSubscription", topic.subscriptions["s"]).is_dispatch_paused
    assert topic.subscriptions["s"].properties() == {}
    assert await admin.status("DELETE", A + "/subscription/s/pause") == 204
    assert not cast("PersistentSubscription", topic.subscriptions["s"]).is_dispatch_paused
    assert await admin.status("PUT", A + "/subscription/nobody/pause") == 404


async def test_a_standstill_is_explained_for_each_partition(admin: Admin) -> None:
    await with_entries(admin, 2)
    await admin.call("PUT", A + "/subscription/s", "earliest")
    assert await admin.status("PUT", A + "/subscription/s/pause") == 204
    (answer,) = await admin.get(A + "/subscription/s/standstill")
    assert answer["topic"] == "persistent://public/default/a"
    assert answer["subscription"] == "s"
    assert answer["reasons"][0] == {
        "code": "PAUSED",
        "message": "Dispatch is paused while 2 entries wait; resume it with DELETE of "
        "…/subscription/<name>/pause.",
        "fields": {"backlogEntries": 2},
    }
    stats = await admin.get(A + "/stats")
    assert stats["subscriptions"]["s"]["standstill"] == ["PAUSED", "NO_CONSUMERS"]

    await admin.call("PUT", P + "/p/partitions", 2)
    await admin.call("PUT", P + "/p/subscription/s", "earliest")
    assert await admin.status("PUT", P + "/p-partition-1/subscription/s/pause") == 204
    answers = await admin.get(P + "/p/subscription/s/standstill")
    assert [[each["code"] for each in one["reasons"]] for one in answers] == [
        ["NO_CONSUMERS", "NOTHING_THERE"],
        ["PAUSED", "NO_CONSUMERS", "NOTHING_THERE"],
    ]
    stats = await admin.get(P + "/p/partitioned-stats")
    expected = ["NO_CONSUMERS", "NOTHING_THERE", "PAUSED"]
    assert stats["subscriptions"]["s"]["standstill"] == expected

    assert await admin.status("GET", A + "/subscription/nobody/standstill") == 404
    unkept = "/admin/v2/non-persistent/public/default/n"
    await admin.call("PUT", unkept)
    assert await admin.status("GET", unkept + "/subscription/s/standstill") == 404


async def test_expiring_by_age(admin: Admin) -> None:
    await with_entries(admin, 3)
    for name in ("s", "r"):
        await admin.call("PUT", f"{A}/subscription/{name}", "earliest")
    assert await admin.status("POST", A + "/subscription/s/expireMessages/1000000000") == 204
    assert await backlog(admin, "s") == 3
    assert await admin.status("POST", A + "/subscription/s/expireMessages/1") == 204
    assert await backlog(admin, "s") == 0
    assert (await admin.reason("POST", A + "/subscription/s/expireMessages/1"))[0] == 409
    assert await admin.status("POST", A + "/all_subscription/expireMessages/1") == 204
    assert await backlog(admin, "r") == 0


async def test_a_small_backlog_of_connected_consumers_expires_once_its_oldest_has(
    admin: Admin,
) -> None:
    topic = await with_entries(admin, 3)
    await admin.call("PUT", A + "/subscription/s", "earliest")
    consumer = await topic.subscribe(
        SubscribeRequest(
            connection=FakeConnection(),
            subscription_name="s",
            subscription_type=SubscriptionType.SHARED,
            consumer_id=1,
        )
    )
    status, reason = await admin.reason("POST", A + "/subscription/s/expireMessages/1000000000")
    assert (status, "subscription almost catch up" in reason) == (409, True)
    assert await backlog(admin, "s") == 3
    assert await admin.status("POST", A + "/subscription/s/expireMessages/1") == 204
    assert await backlog(admin, "s") == 0
    consumer.close()


async def test_a_partition_that_has_nothing_to_expire_is_named(admin: Admin) -> None:
    await admin.call("PUT", P + "/p/partitions", 2)
    await admin.call("PUT", P + "/p/subscription/s", "earliest")
    status, reason = await admin.reason("POST", P + "/p/subscription/s/expireMessages/1")
    assert (status, "topic persistent://public/default/p-partition-0 " in reason) == (409, True)


async def test_expiring_on_all_leaves_what_a_compaction_has_not_read(admin: Admin) -> None:
    topic = await with_entries(admin, 3)
    await admin.call("PUT", f"{A}/subscription/s", "earliest")
    await topic.open_compaction_cursor()
    assert await admin.status("POST", A + "/all_subscription/expireMessages/1") == 204
    assert (await backlog(admin, "s"), await backlog(admin, "__compaction")) == (0, 3)
    assert (await admin.reason("POST", A + "/all_subscription/expireMessages/1"))[0] == 409


async def test_expiring_to_a_position(admin: Admin) -> None:
    topic = await with_entries(admin, 5)
    await admin.call("PUT", A + "/subscription/s", "earliest")
    ledger_id = topic.ledger.last_confirmed_entry.ledger_id
    path = A + "/subscription/s/expireMessages"
    assert await admin.status("POST", path, {"ledgerId": ledger_id, "entryId": 1}) == 204
    assert await backlog(admin, "s") == 3
    body = {"ledgerId": ledger_id, "entryId": 2, "excluded": True}
    assert await admin.status("POST", path, body) == 204
    assert await backlog(admin, "s") == 1
    assert await admin.status("POST", path) == 400
    last = {"ledgerId": ledger_id, "entryId": 4}
    for _ in range(2):  # what has expired expires again, and nothing comes of it
        assert await admin.status("POST", path, last) == 204
    for beyond in ({"ledgerId": ledger_id, "entryId": 5}, {"ledgerId": 10**9, "entryId": 0}):
        status, reason = await admin.reason("POST", path, beyond)
        assert (status, "invalid message position provided" in reason) == (409, True)


async def test_resetting_by_time_and_position(admin: Admin) -> None:
    topic = await with_entries(admin, 5)
    await admin.call("PUT", A + "/subscription/s", "latest")
    path = A + "/subscription/s/resetcursor"
    assert await admin.status("POST", f"{path}/{PUBLISHED_MILLIS + 3000}") == 204
    assert await backlog(admin, "s") == 2
    ledger_id = topic.ledger.last_confirmed_entry.ledger_id
    assert await admin.status("POST", path, {"ledgerId": ledger_id, "entryId": 1}) == 204
    assert await backlog(admin, "s") == 4
    assert await admin.status("POST", path, "latest") == 204
    assert await backlog(admin, "s") == 0
    assert await admin.status("POST", path) == 400
    assert await admin.status("POST", A + "/subscription/nobody/resetcursor/0") == 404


async def test_topics_in_memory_refuse_what_needs_storage(admin: Admin) -> None:
    q = "/admin/v2/non-persistent/public/default/q"
    await admin.call("PUT", q)
    assert (await admin.reason("PUT", q + "/subscription/s"))[0] == 400
    topic = admin.service.topics.loaded(TopicName.parse("non-persistent://public/default/q"))
    assert topic is not None
    await topic.create_subscription("s", starts_at_earliest=False)
    assert (await admin.reason("POST", q + "/subscription/s/skip_all"))[0] == 405
    assert await admin.status("POST", q + "/subscription/s/resetcursor/0") == 204


def request(body: bytes) -> Request:
    return Request(method="PUT", raw_path="/", body=body)


@pytest.mark.parametrize(
    ("body", "position", "is_excluded"),
    [
        (b'"latest"', LATEST, False),
        (b'"earliest"', EARLIEST, False),
        (b'{"ledgerId":"3","entryId":4,"excluded":true}', Position(3, 4), True),
        (b'{"ledgerId":3,"entryId":4,"isExcluded":true}', Position(3, 4), False),
    ],
)
def test_positions_are_read_in_all_forms(
    body: bytes, position: Position, *, is_excluded: bool
) -> None:
    data = read_reset_cursor(request(body))
    assert data is not None
    assert (data.position, data.is_excluded) == (position, is_excluded)


@pytest.mark.parametrize("body", [b'"somewhere"', b"5", b'{"ledgerId":"x"}', b"{["])
def test_positions_that_can_not_be_meant_are_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        read_reset_cursor(request(body))


S = A + "/subscription/s"
MOVES: dict[str, tuple[str, str, Any]] = {
    "reset to a time": ("POST", f"{S}/resetcursor/{PUBLISHED_MILLIS + 2000}", ...),
    "reset to a position": ("POST", S + "/resetcursor", "earliest"),
    "skip": ("POST", S + "/skip/1", ...),
    "skip all": ("POST", S + "/skip_all", ...),
    "pause": ("PUT", S + "/pause", ...),
    "expire": ("POST", S + "/expireMessages/10", ...),
    "expire to a position": ("POST", S + "/expireMessages", "latest"),
    "create": ("PUT", A + "/subscription/another", "earliest"),
    "delete": ("DELETE", S, ...),
}
DISTURBANCES: dict[str, tuple[str, str, Any]] = {
    "unload": ("PUT", A + "/unload", ...),
    "delete topic": ("DELETE", A + "?force=true", ...),
    "delete subscription": ("DELETE", S + "?force=true", ...),
    "reset": ("POST", f"{S}/resetcursor/{PUBLISHED_MILLIS + 3000}", ...),
}
PASSING = {404, 409, 412, 503}


@pytest.mark.parametrize("disturbance", DISTURBANCES)
@pytest.mark.parametrize("move", MOVES)
async def test_what_another_call_prevents_is_no_fault_of_the_broker(
    admin: Admin, move: str, disturbance: str
) -> None:
    for turns in range(12):
        await with_entries(admin, 5)
        await admin.call("PUT", S, "earliest")

        async def later(turns: int = turns) -> Response:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await admin.call(*MOVES[move])

        disturbed, moved = await asyncio.gather(admin.call(*DISTURBANCES[disturbance]), later())
        for answer in (disturbed, moved):
            assert answer.status == 204 or answer.status in PASSING, (turns, answer.body)
            if answer.status != 204:
                assert json.loads(answer.body)["reason"]
        await admin.call("DELETE", A + "?force=true")


async def test_a_subscription_that_is_reset_is_not_deleted_meanwhile(admin: Admin) -> None:
    topic = await with_entries(admin, 5)
    await admin.call("PUT", S, "earliest")
    with cast("PersistentSubscription", topic.subscriptions["s"])._reset_under_way():
        topic.subscriptions["s"].state = SubscriptionState.RESETTING
        status, reason = await admin.reason("DELETE", S)
    assert (status, "is being reset" in reason) == (412, True)


@pytest.mark.parametrize("move", ["expire", "expire to a position", "expire all"])
async def test_what_can_not_expire_while_a_cursor_is_reset_says_so(admin: Admin, move: str) -> None:
    """Nobody is told that messages are acknowledged which then come again."""
    topic = await with_entries(admin, 5)
    for name in ("another", "s"):
        await admin.call("PUT", f"{A}/subscription/{name}", "earliest")
    cursor = cast("PersistentSubscription", topic.subscriptions["another"]).cursor
    there = cast("PersistentSubscription", topic.subscriptions["s"]).cursor
    moves = {**MOVES, "expire all": ("POST", A + "/all_subscription/expireMessages/10", ...)}
    call = tuple(each.replace("/s/", "/another/") for each in moves[move][:2])
    cursor._is_resetting = True
    status, reason = await admin.reason(*call, moves[move][2])
    assert (status, "a reset is under way" in reason) == (503, True)
    assert cursor.backlog_count() == 5
    assert there.backlog_count() == (0 if move == "expire all" else 5)
    cursor._is_resetting = False
    assert await admin.status(*call, moves[move][2]) == 204
    assert cursor.backlog_count() == 0


@pytest.mark.parametrize(
    ("move", "status"),
    [
        ("reset to a time", 503),
        ("reset to a position", 503),
        ("skip", 503),
        ("skip all", 503),
        ("expire", 503),
        ("expire to a position", 503),
        ("create", 503),
    ],
)
async def test_a_topic_that_is_closing_asks_to_come_again(
    admin: Admin, move: str, status: int
) -> None:
    """A call that found its topic before the topic was closed: the ledger and its cursors are."""
    topic = await with_entries(admin, 5)
    await admin.call("PUT", S, "earliest")
    if move.startswith("reset"):
        topic.subscriptions["s"].state = SubscriptionState.CLOSED
    await topic.ledger.close()
    assert (await admin.reason(*MOVES[move]))[0] == status
