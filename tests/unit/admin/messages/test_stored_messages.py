"""Reading stored messages as they are."""

from __future__ import annotations

import json

from pulsar_py.common.position import LATEST
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata
from pulsar_py.standalone import Broker
from pulsar_py.wire.payload import add_broker_entry_metadata
from tests.unit.admin.messages.conftest import T, entry_of, messages, topic_with
from tests.unit.admin.resources.conftest import Admin

S = T + "/subscription/s"


async def test_peeking_steps_over_what_is_acknowledged(admin: Admin) -> None:
    topic = await topic_with(admin, *messages(4))
    cursor = topic.ledger.cursors["s"]
    first = topic.ledger.first_position
    cursor.acknowledge([first._replace(entry_id=each) for each in (0, 2)])
    bodies = [(await admin.call("GET", f"{S}/position/{number}")).body for number in (1, 2)]
    assert bodies == [b"m1", b"m3"]
    assert await admin.reason("GET", S + "/position/3") == (404, "Message not found")
    assert cursor.backlog_count() == 2  # nothing was acknowledged by looking


async def test_impossible_positions_are_refused(admin: Admin) -> None:
    await topic_with(admin, *messages(1))
    assert await admin.status("GET", S + "/position/0") == 412
    assert await admin.status("GET", S + "/position/-1") == 412
    assert await admin.status("GET", S + "/position/first") == 404
    assert await admin.status("GET", T + "/subscription/other/position/1") == 404
    assert await admin.status("GET", T + "/ledger/999/entry/0") == 404
    assert await admin.status("GET", T + "/ledger/x/entry/0") == 404


async def test_messages_are_examined_from_both_ends(admin: Admin) -> None:
    topic = await topic_with(admin, *messages(2))
    await topic.ledger.roll_ledger()
    await topic_with(admin, *messages(5)[2:])

    async def body(query: str) -> bytes:
        return (await admin.call("GET", f"{T}/examinemessage?{query}")).body

    assert await body("initialPosition=earliest&messagePosition=1") == b"m0"
    assert await body("initialPosition=earliest&messagePosition=4") == b"m3"
    assert await body("initialPosition=earliest&messagePosition=99") == b"m4"
    assert await body("messagePosition=0") == b"m4"
    assert await body("initialPosition=latest&messagePosition=5") == b"m0"
    assert await admin.status("GET", T + "/examinemessage?messagePosition=6") == 412
    assert await admin.status("GET", T + "/examinemessage?messagePosition=x") == 404


async def test_an_empty_topic_has_nothing_to_examine(admin: Admin) -> None:
    await topic_with(admin)
    assert await admin.status("GET", T + "/examinemessage") == 412


async def test_an_empty_topic_has_the_id_of_its_first_message_to_come(admin: Admin) -> None:
    first = (await topic_with(admin)).ledger.first_position
    for time in (0, 1800000000000):
        found = await admin.get(T + f"/messageid/{time}")
        assert (found["ledgerId"], found["entryId"]) == (first.ledger_id, first.entry_id)


async def test_ids_are_found_by_time(admin: Admin) -> None:
    topic = await topic_with(admin, *messages(3))
    ledger_id = topic.ledger.first_position.ledger_id
    found = await admin.get(T + "/messageid/1700000000001")
    assert (found["ledgerId"], found["entryId"]) == (ledger_id, 1)
    found = await admin.get(T + "/messageid/1800000000000")
    assert found["entryId"] == 3
    found = await admin.get(T + "/messageid/0")
    assert (found["ledgerId"], found["entryId"]) == (ledger_id, 0)
    assert await admin.status("GET", T + "/messageid/noon") == 404


async def test_ids_are_found_by_index(admin: Admin) -> None:
    await topic_with(admin, *messages(1))
    assert await admin.status("GET", T + "/getMessageIdByIndex?index=0") == 412
    stamped = [
        add_broker_entry_metadata(entry_of(number, b"m"), BrokerEntryMetadata(index=index))
        for number, index in enumerate((4, 9, 12))  # batches of five, five and three
    ]
    await topic_with(admin, *stamped, name="b")
    path = T.removesuffix("a") + "b/getMessageIdByIndex"
    found = [(await admin.get(f"{path}?index={each}"))["entryId"] for each in (0, 4, 5, 12)]
    assert found == [0, 0, 1, 2]
    assert (await admin.get(path))["entryId"] == (await admin.get(path + "?index="))["entryId"] == 0


async def test_an_index_that_nothing_has_is_told(admin: Admin) -> None:
    async def reason(path: str) -> tuple[int, str]:
        answer = await admin.call("GET", path)
        return answer.status, json.loads(answer.body)["reason"]

    stamped = add_broker_entry_metadata(entry_of(1, b"m"), BrokerEntryMetadata(index=4))
    await topic_with(admin, stamped)
    path = T + "/getMessageIdByIndex?index="
    assert await reason(path + "9") == (404, "Message not found for index 9")
    assert await reason(path + "-1") == (404, "Invalid message index: -1")
    await topic_with(admin, name="empty")
    await admin.call("PUT", T.removesuffix("a") + "p/partitions", 2)
    for name in ("empty", "p", "missing"):  # as long as the setting adds no index
        path = T.removesuffix("a") + name + "/getMessageIdByIndex"
        assert (await reason(path))[0] == 412


async def test_the_backlog_after_a_position_has_a_size(admin: Admin) -> None:
    topic = await topic_with(admin, *messages(3))
    first, total = topic.ledger.first_position, topic.ledger.size_bytes

    async def size(ledger_id: int, entry_id: int) -> int:
        position = {"ledgerId": ledger_id, "entryId": entry_id}
        answer = await admin.call("PUT", T + "/backlogSize", position)
        assert answer.status == 200
        return int(json.loads(answer.body))

    assert await size(first.ledger_id, 2) == 0
    assert await size(first.ledger_id, 0) == total - len(messages(1)[0])
    assert await size(*LATEST) == total
    assert await size(-1, -1) == total
    assert await admin.status("PUT", T + "/backlogSize") == 400


async def test_topics_that_store_nothing_themselves_are_refused(admin: Admin) -> None:
    await admin.call("PUT", T.removesuffix("a") + "p/partitions", 2)
    await admin.call("PUT", T.replace("persistent", "non-persistent"))
    for path in ("/subscription/s/position/1", "/examinemessage", "/ledger/0/entry/0"):
        assert await admin.status("GET", T.removesuffix("a") + "p" + path) == 405
        assert await admin.status("GET", T.replace("persistent", "non-persistent") + path) == 405
        assert await admin.status("GET", T.removesuffix("a") + "missing" + path) == 404


async def test_a_damaged_entry_is_no_fault_of_the_server() -> None:
    async with Broker() as broker:
        admin = Admin(broker.service)
        await topic_with(admin, b"no entry of a producer")
        assert await admin.status("GET", S + "/position/1") == 422
