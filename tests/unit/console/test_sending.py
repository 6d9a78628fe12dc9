"""Test messages, and dead letters that go back: in order, none lost, with the caller's rights."""

from __future__ import annotations

import base64
import json

from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.schema import AvroSchema, GenericRecord
from tests.unit.console.conftest import TOPIC, ConsoleCalls, console_of
from tests.unit.test_web import GUARDED

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}],
    }
)


def schema() -> AvroSchema:
    return AvroSchema(schema_definition=AVRO, records_as=GenericRecord)


async def test_a_text_is_sent_with_key_and_properties(console: ConsoleCalls) -> None:
    consumer = await console.client.subscribe("t", "s")
    body = {"text": "héllo", "key": "k", "properties": {"a": "<b>"}, "eventTime": 1234}
    answer = await console.call("POST", f"{TOPIC}/t/message", body)
    assert answer.status == 200, answer.body
    message = await consumer.receive(30_000)
    assert message.data() == "héllo".encode()
    assert (message.partition_key(), message.properties()) == ("k", {"a": "<b>"})
    assert message.event_timestamp() == 1234


async def test_bytes_are_sent_in_base64(console: ConsoleCalls) -> None:
    consumer = await console.client.subscribe("t", "s")
    body = {"base64": base64.b64encode(b"\x00\xff").decode()}
    assert await console.status("POST", f"{TOPIC}/t/message", body) == 200
    assert (await consumer.receive(30_000)).data() == b"\x00\xff"


async def test_a_value_is_encoded_by_the_topics_schema(console: ConsoleCalls) -> None:
    consumer = await console.client.subscribe("t", "s", schema=schema())
    body = {"value": {"id": 7, "note": "seven"}}
    answer = await console.call("POST", f"{TOPIC}/t/message", body)
    assert answer.status == 200, answer.body
    message = await consumer.receive(30_000)
    assert message.value()["note"] == "seven"
    assert message.schema_version() is not None
    status, reason = await console.reason("POST", f"{TOPIC}/t/message", {"value": {"id": "x"}})
    assert status == 400
    assert reason


async def test_what_is_no_message_is_refused(console: ConsoleCalls) -> None:
    await console.client.create_producer("t")
    for body in (
        {},
        {"base64": "*"},
        {"text": []},
        {"value": 1},
        [],
        {"text": "a", "properties": []},
    ):
        assert await console.status("POST", f"{TOPIC}/t/message", body) == 400, body


async def test_a_message_needs_the_right_to_produce() -> None:
    async with console_of(**GUARDED) as console:
        for path, body in (
            ("/admin/v2/clusters/standalone", {"serviceUrl": "http://127.0.0.1:1"}),
            ("/admin/v2/tenants/public", {"adminRoles": [], "allowedClusters": ["standalone"]}),
            ("/admin/v2/namespaces/public/default", {}),
            ("/admin/v2/persistent/public/default/t", ...),
        ):
            assert await console.status("PUT", path, body, role="admin") in {204, 409}
        path, body = f"{TOPIC}/t/message", {"text": "x"}
        assert await console.status("POST", path, body, role="friend") == 401
        assert await console.status("POST", path, body, role="admin") == 200
        grant = "/admin/v2/persistent/public/default/t/permissions/friend"
        assert await console.status("POST", grant, ["produce"], role="admin") == 204
        assert await console.status("POST", path, body, role="friend") == 200


async def letters(console: ConsoleCalls, count: int, **properties: str) -> None:
    dead = await console.client.create_producer("t-s-DLQ")
    for number in range(count):
        await dead.send(
            b"%d" % number,
            {"REAL_TOPIC": "persistent://public/default/t", "own": "kept", **properties},
            partition_key=f"k{number}",
            event_timestamp=100 + number,
        )


PATH = f"{TOPIC}/t-s-DLQ/subscription/back/send-back"


async def test_dead_letters_go_back_as_they_were(console: ConsoleCalls) -> None:
    consumer = await console.client.subscribe("t", "s")
    await letters(console, 5, RECONSUMETIMES="3", ORIGIN_MESSAGE_ID="1:2:3")
    answer = json.loads((await console.call("POST", PATH, {"limit": 3})).body)
    assert answer == {"sent": 3, "toTopics": {"persistent://public/default/t": 3}, "more": True}
    answer = json.loads((await console.call("POST", PATH, {})).body)
    assert (answer["sent"], answer["more"]) == (2, False)
    for number in range(5):
        message = await consumer.receive(30_000)
        assert message.data() == b"%d" % number
        assert message.properties() == {"own": "kept"}
        assert message.partition_key() == f"k{number}"
        assert message.event_timestamp() == 100 + number
    assert console.topic("t-s-DLQ").subscriptions["back"].cursor.backlog_count() == 0
    assert json.loads((await console.call("POST", PATH, {})).body)["sent"] == 0


async def test_dead_letters_keep_their_schema(console: ConsoleCalls) -> None:
    consumer = await console.client.subscribe("t", "s", schema=schema())
    dead = await console.client.create_producer("t-s-DLQ", schema=schema())
    origin = {"REAL_TOPIC": "persistent://public/default/t"}
    await dead.send(GenericRecord({"id": 1, "note": "one"}), origin)
    answer = await console.call("POST", PATH, {})
    assert json.loads(answer.body)["sent"] == 1
    message = await consumer.receive(30_000)
    assert message.value()["id"] == 1
    assert message.schema_version() is not None


async def test_a_letter_without_an_origin_stays_and_says_so(console: ConsoleCalls) -> None:
    dead = await console.client.create_producer("t-s-DLQ")
    await dead.send(b"x")
    answer = json.loads((await console.call("POST", PATH, {})).body)
    assert answer["sent"] == 0
    assert "name one" in answer["skipped"]
    assert console.topic("t-s-DLQ").subscriptions["back"].cursor.backlog_count() == 1
    reader = await console.client.subscribe(
        "elsewhere", "s", initial_position=InitialPosition.Earliest
    )
    answer = json.loads((await console.call("POST", PATH, {"to": "elsewhere"})).body)
    assert answer["sent"] == 1
    assert (await reader.receive(30_000)).data() == b"x"


async def test_nobody_is_robbed_of_letters_that_he_reads(console: ConsoleCalls) -> None:
    await letters(console, 1)
    await console.client.subscribe("t-s-DLQ", "back", initial_position=InitialPosition.Earliest)
    status, _ = await console.reason("POST", PATH, {})
    assert status == 412


async def test_what_makes_no_sense_is_refused(console: ConsoleCalls) -> None:
    await letters(console, 1)
    for body in ({"limit": 0}, {"limit": 1001}, {"to": "persistent://a"}, {"to": "t-s-DLQ"}):
        assert (await console.reason("POST", PATH, body))[0] == 400, body
