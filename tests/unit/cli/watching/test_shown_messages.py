"""Messages as a command shows them."""

from __future__ import annotations

import json

from pulsar_py.cli.watching.shown_messages import iso_millis, shown
from pulsar_py.client.messages.message import Message
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata


def message(data: bytes, **fields: object) -> Message[bytes]:
    given = {"producer_name": "p", "sequence_id": 4, "publish_time": 1_700_000_000_123, **fields}
    metadata = MessageMetadata(**given)  # type: ignore[arg-type] # fields of the message
    return Message.of(data, key=(7, 3), metadata=metadata)


def test_a_line_has_time_id_key_properties_and_value() -> None:
    metadata = message(b"hello", partition_key="k")
    metadata.entry.metadata.properties.add(key="a", value="1")
    found = shown(metadata)
    line = "2023-11-14T22:13:20.123Z 7:3:-1"
    assert found.as_line(with_topic=False) == f"{line} key=k {{a=1}} hello"
    assert found.as_line(with_topic=True).startswith(f"{line} persistent://public/default/t key=k")


def test_an_object_has_all_fields_and_nulls_of_the_value() -> None:
    found = json.loads(shown(message(b"", null_value=True, event_time=1)).as_json())
    assert found == {
        "messageId": "7:3:-1",
        "topic": "persistent://public/default/t",
        "publishTime": "2023-11-14T22:13:20.123Z",
        "eventTime": "1970-01-01T00:00:00.001Z",
        "producerName": "p",
        "sequenceId": 4,
        "properties": {},
        "sizeBytes": 0,
        "isNull": True,
        "value": None,
    }


def test_nothing_that_a_message_has_moves_a_terminals_cursor() -> None:
    evil = "\x1b[2J\n\u202e"
    hostile = message(evil.encode(), partition_key=evil)
    hostile.entry.metadata.properties.add(key=evil, value=evil)
    for line in (shown(hostile).as_line(with_topic=True), shown(hostile).as_json()):
        assert line.isprintable()
    assert json.loads(shown(hostile).as_json())["key"] == evil


def test_times_beyond_iso_are_numbers() -> None:
    assert iso_millis(253_402_300_800_000) == "253402300800000"
