"""Each metadata column, of messages that have its value and of messages that don't."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BrokerEntryMetadata
from pulsar_py.spark.shared.options import EXTRA_COLUMNS, METADATA_COLUMNS
from pulsar_py.spark.values.metadata_columns import COLUMNS, Rows
from tests.unit.spark.message_parts import TOPIC, batch, of_bytes, plain

MESSAGES = [
    plain(b"abc", partition_key="k", properties={"a": "1"}, event_time=5, schema_version=b"\0\1"),
    *batch([b"x", b""], ordering_key=b"o", null_value=True),
]


def at(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


EXPECTED = {
    "__key": [b"k", None, None],
    "__topic": [TOPIC] * 3,
    "__messageId": [
        MessageId(4, 5, partition_index=3).serialize(),
        MessageId(6, 9, partition_index=3, batch_index=0, batch_size=2).serialize(),
        MessageId(6, 9, partition_index=3, batch_index=1, batch_size=2).serialize(),
    ],
    "__publishTime": [at(1000), at(2000), at(2000)],
    "__eventTime": [at(5), None, None],
    "__messageProperties": [[("a", "1")], [], []],
    "__partition": [3, 3, 3],
    "__ledgerId": [4, 6, 6],
    "__entryId": [5, 9, 9],
    "__batchIndex": [None, 0, 1],
    "__sequenceId": [7, 20, 21],
    "__producerName": ["p", "p", "p"],
    "__orderingKey": [None, b"o", b"o"],
    "__hasBinaryKey": [False, False, False],
    "__schemaVersion": [b"\0\1", None, None],
    "__index": [None, 98, 99],
    "__brokerPublishTime": [None, at(2500), at(2500)],
    "__replicatedFrom": [None, None, None],
    "__isTombstone": [False, True, True],
    "__size": [3, 1, 0],
}


@pytest.mark.parametrize("name", list(COLUMNS))
def test_a_column_shows_its_field(name: str) -> None:
    array = COLUMNS[name].build(Rows(MESSAGES))
    assert array.type == COLUMNS[name].arrow_type
    assert array.to_pylist() == EXPECTED[name]


def test_the_table_has_all_columns_that_options_know() -> None:
    assert tuple(COLUMNS) == METADATA_COLUMNS + EXTRA_COLUMNS


def test_messages_of_several_topics_keep_theirs() -> None:
    other = plain(b"")
    other.entry.topic = "persistent://public/default/u"
    topics = COLUMNS["__topic"].build(Rows([MESSAGES[0], other]))
    assert topics.to_pylist() == [TOPIC, "persistent://public/default/u"]


def test_keys_of_bytes_are_decoded_and_null_keys_are_null() -> None:
    messages = [
        plain(b"", partition_key="AAH/", partition_key_b64_encoded=True),
        plain(b"", partition_key="", null_partition_key=True),
        plain(b"", partition_key=""),
    ]
    assert COLUMNS["__key"].build(Rows(messages)).to_pylist() == [b"\0\1\xff", None, b""]


YEAR_9999 = 253_402_300_799_999


@pytest.mark.parametrize("millis", [YEAR_9999 + 1, 1_700_000_000_000_000_000, 2**64 - 1])
def test_times_after_the_year_9999_are_null(millis: int) -> None:
    message = plain(b"", event_time=millis, publish_time=millis)
    message.entry.broker_metadata = BrokerEntryMetadata(broker_timestamp=millis)
    for name in ("__eventTime", "__publishTime", "__brokerPublishTime"):
        assert COLUMNS[name].build(Rows([message])).to_pylist() == [None]


def test_the_last_time_is_shown() -> None:
    array = COLUMNS["__eventTime"].build(Rows([plain(b"", event_time=YEAR_9999)]))
    assert array.to_pylist() == [datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)]


def test_large_unsigned_numbers_are_those_that_java_shows() -> None:
    message = plain(b"", sequence_id=2**64 - 1)
    message.entry.broker_metadata = BrokerEntryMetadata(index=2**63)
    assert COLUMNS["__sequenceId"].build(Rows([message])).to_pylist() == [-1]
    assert COLUMNS["__index"].build(Rows([message])).to_pylist() == [-(2**63)]
    beyond = batch([b"", b""])
    beyond[0].entry.metadata.sequence_id = 2**64 - 1
    assert COLUMNS["__sequenceId"].build(Rows(beyond)).to_pylist() == [-1, 0]


@pytest.mark.parametrize(
    ("name", "wire", "value"),
    [
        ("__key", b"\x32\x02\xff\xfe", b"\xff\xfe"),
        ("__key", b"\x32\x01\xff\x88\x01\x01", b"\xff"),
        ("__key", b"\x32\x01A\x88\x01\x01", b"A"),
        ("__orderingKey", b"\x92\x01\x01\xff", b"\xff"),
        ("__messageProperties", b"\x22\x06\x0a\x01k\x12\x01\xff", [("k", "\ufffd")]),
        ("__messageProperties", b"\x22\x06\x0a\x01\xff\x12\x01v", [("\ufffd", "v")]),
        ("__producerName", b"\x0a\x01\xff", "\ufffd"),
        ("__replicatedFrom", b"\x2a\x01\xff", "\ufffd"),
    ],
)
def test_what_is_no_text_is_shown_all_the_same(name: str, wire: bytes, value: object) -> None:
    message = Message.of(b"", metadata=of_bytes(wire))
    array = COLUMNS[name].build(Rows([plain(b""), message]))
    assert array.to_pylist()[1] == value


def test_ids_of_a_large_batch_are_those_that_a_client_serializes() -> None:
    messages = batch([b""] * 300)
    ids = COLUMNS["__messageId"].build(Rows(messages)).to_pylist()
    assert ids == [message.message_id().serialize() for message in messages]


def test_keys_of_bytes_are_told_from_texts() -> None:
    found = Rows(
        [
            plain(b"a", partition_key="a2V5", partition_key_b64_encoded=True),
            plain(b"b", partition_key="key"),
        ]
    )
    assert COLUMNS["__key"].build(found).to_pylist() == [b"key", b"key"]
    assert COLUMNS["__hasBinaryKey"].build(found).to_pylist() == [True, False]
