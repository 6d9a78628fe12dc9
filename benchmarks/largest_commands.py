"""The largest form of each command that a client may send: one frame of 5 MiB + 10 KiB, filled.

Each is filled with the parts that its handler looks at one by one: ids, words of ack sets, pairs of
texts, hash ranges, names. They are written as bytes: building a message of so many parts takes
seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

from google.protobuf.message import Message

from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandConnect,
    CommandGetOrCreateSchema,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandProducer,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandWatchTopicList,
    KeySharedMeta,
    Schema,
)
from pulsar_py.wire.framing import FRAME_PADDING

MAX_MESSAGE_BYTES = 5 << 20
ATTACKER_CONSUMER_ID = 1
REQUEST_ID = 7

_SIZES = Struct(">II")
_BYTES_TYPE = 2  # of protobuf: a length, then as many bytes
_SPARE_BYTES = 64  # for the lengths around what is filled
_MINUS_ONE = varint((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class LargestCommand:
    """One row: a frame that a connection with consumer 1 may send."""

    name: str
    frame: bytes
    answer: int | None
    """The type of its answer; None for commands that have none. ERROR is always one, too."""
    subscription_type: int = CommandSubscribe.Shared
    """Of the consumer that the connection has."""


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | _BYTES_TYPE) + varint(len(data)) + data


def _frame(kind: int, part: bytes) -> bytes:
    command = b"\x08" + varint(kind) + _field(kind, part)
    return _SIZES.pack(4 + len(command), len(command)) + command


def _filled(kind: int, head: Message, number: int, item: bytes, room: int) -> bytes:
    """The command with as many of one repeated field as go into a frame."""
    start = head.SerializePartialToString()
    repeated = _field(number, item)
    return _frame(kind, start + repeated * ((room - len(start)) // len(repeated)))


def _different(
    kind: int, head: Message, number: int, make: Callable[[int], bytes], room: int
) -> bytes:
    """The same with items that all differ."""
    parts = [head.SerializePartialToString()]
    size, index = len(parts[0]), 0
    while True:
        part = _field(number, make(index))
        size += len(part)
        if size > room:
            return _frame(kind, b"".join(parts))
        parts.append(part)
        index += 1


def _message_id(ledger_id: int, entry_id: int, words: bytes = b"") -> bytes:
    start = b"\x08" + varint(ledger_id) + b"\x10" + varint(entry_id)
    return start + (_field(5, words) if words else b"")


def _pair(index: int) -> bytes:
    return _field(1, b"%x" % index) + _field(2, b"")


def _number_pair(index: int) -> bytes:
    return _field(1, b"%x" % index) + b"\x10\x01"


def _range(index: int) -> bytes:
    return b"\x08" + varint(2 * index) + b"\x10" + varint(2 * index)


def largest_commands(
    topic: str, ledger_id: int, entries_count: int, *, max_message_bytes: int = MAX_MESSAGE_BYTES
) -> list[LargestCommand]:
    """All of them, for a topic with that many entries in one ledger."""
    room = max_message_bytes + FRAME_PADDING - _SIZES.size - _SPARE_BYTES
    fresh = f"{topic}-fresh"
    return [
        *_acknowledgements(ledger_id, entries_count, room),
        *_subscriptions(fresh, room),
        *_producers_and_schemas(topic, fresh, room),
        *_lookups(topic, room),
        *_transactions(room),
    ]


def _with_field(start: bytes, number: int, data: bytes) -> bytes:
    return start + _field(number, data)


def _acknowledgements(ledger_id: int, entries_count: int, room: int) -> list[LargestCommand]:
    """ACK, REDELIVER and SEEK: many ids, and ids with many words of acknowledged indexes."""
    command = BaseCommand
    ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual, request_id=REQUEST_ID)
    seek = CommandSeek(consumer_id=1, request_id=REQUEST_ID)
    cumulative = CommandAck(consumer_id=1, ack_type=CommandAck.Cumulative, request_id=REQUEST_ID)
    cumulative.message_id.add(ledgerId=ledger_id, entryId=0)
    redeliver = CommandRedeliverUnacknowledgedMessages(consumer_id=1)
    many_words = (room - 40) * b"\x01"
    wide_words = ((room - 40) // len(_MINUS_ONE)) * _MINUS_ONE
    one_set = _message_id(ledger_id, 3, many_words)
    return [
        LargestCommand(
            "ACK, one id over and over",
            _filled(command.ACK, ack, 3, _message_id(ledger_id, 0), room),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, every second entry",
            _different(
                command.ACK, ack, 3,
                lambda index: _message_id(ledger_id, 2 * index % entries_count + 1), room,
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, ids with ack sets",
            _different(
                command.ACK, ack, 3,
                lambda index: _message_id(ledger_id, index % entries_count, b"\x01" * 40), room,
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, one ack set",
            _frame(
                command.ACK,
                _with_field(ack.SerializePartialToString(), 3, one_set),
            ),
            command.ACK_RESPONSE,
        ),
        LargestCommand(
            "ACK, cumulative with properties",
            _different(command.ACK, cumulative, 5, _number_pair, room),
            command.ACK_RESPONSE,
            CommandSubscribe.Exclusive,
        ),
        LargestCommand(
            "REDELIVER, every entry over and over",
            _different(
                command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver, 2,
                lambda index: _message_id(ledger_id, index % entries_count), room,
            ),
            None,
        ),
        LargestCommand(
            "REDELIVER, everything",
            _frame(command.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver.SerializeToString()),
            None,
        ),
        LargestCommand(
            "SEEK, one ack set",
            _frame(
                command.SEEK,
                _with_field(seek.SerializeToString(), 3, _message_id(ledger_id, 3, wide_words)),
            ),
            command.SUCCESS,
        ),
    ]  # fmt: skip


def _schema_with_properties(room: int) -> bytes:
    schema = Schema(name="s", type=Schema.String, schema_data=b"")
    count = room // len(_field(5, _pair(1 << 20)))
    pairs = b"".join(_field(5, _pair(index)) for index in range(count))
    return schema.SerializeToString() + pairs


def _subscriptions(fresh: str, room: int) -> list[LargestCommand]:
    """SUBSCRIBE to a topic that is not there yet."""
    command = BaseCommand
    subscribe = CommandSubscribe(
        topic=fresh, subscription="s", subType=CommandSubscribe.Key_Shared, consumer_id=2,
        request_id=REQUEST_ID, consumer_name="\N{LATIN SMALL LETTER E WITH ACUTE}",
    )  # fmt: skip
    subscribe_bytes = subscribe.SerializeToString()
    ranges = KeySharedMeta(keySharedMode=1).SerializePartialToString()
    count = room // len(_field(3, _range(1 << 20)))
    all_ranges = ranges + b"".join(_field(3, _range(index)) for index in range(count))
    all_properties = _schema_with_properties(room)
    return [
        LargestCommand(
            "SUBSCRIBE, metadata without texts",
            _filled(command.SUBSCRIBE, subscribe, 10, b"\x0a\x00\x12\x00", room),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, subscription properties",
            _different(command.SUBSCRIBE, subscribe, 18, _pair, room),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, hash ranges",
            _frame(command.SUBSCRIBE, _with_field(subscribe_bytes, 17, all_ranges)),
            command.SUCCESS,
        ),
        LargestCommand(
            "SUBSCRIBE, schema properties",
            _frame(command.SUBSCRIBE, _with_field(subscribe_bytes, 12, all_properties)),
            command.SUCCESS,
        ),
    ]  # fmt: skip


def _producers_and_schemas(topic: str, fresh: str, room: int) -> list[LargestCommand]:
    """PRODUCER of a topic that is not there yet, and GET_OR_CREATE_SCHEMA."""
    command = BaseCommand
    producer = CommandProducer(topic=fresh, producer_id=2, request_id=REQUEST_ID)
    producer_bytes = producer.SerializeToString()
    all_properties = _schema_with_properties(room)
    long_union = Schema(
        name="s", type=Schema.Avro, schema_data=b'["null"' + b',"int"' * (room // 6 - 20) + b"]"
    ).SerializeToString()
    return [
        LargestCommand(
            "PRODUCER, metadata",
            _different(command.PRODUCER, producer, 6, _pair, room),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, schema properties",
            _frame(command.PRODUCER, _with_field(producer_bytes, 7, all_properties)),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "PRODUCER, an Avro schema of many types",
            _frame(command.PRODUCER, _with_field(producer_bytes, 7, long_union)),
            command.PRODUCER_SUCCESS,
        ),
        LargestCommand(
            "GET_OR_CREATE_SCHEMA, properties",
            _frame(
                command.GET_OR_CREATE_SCHEMA,
                _with_field(
                    CommandGetOrCreateSchema(request_id=REQUEST_ID, topic=topic)
                    .SerializePartialToString(),
                    3,
                    all_properties,
                ),
            ),
            command.GET_OR_CREATE_SCHEMA_RESPONSE,
        ),
    ]  # fmt: skip


def _lookups(topic: str, room: int) -> list[LargestCommand]:
    """CONNECT, and what is asked about names of topics: long names, long patterns."""
    command = BaseCommand
    lookup = CommandLookupTopic(topic=topic, request_id=REQUEST_ID)
    long_name = "x" * (room - 100)
    return [
        LargestCommand(
            "LOOKUP, properties",
            _different(
                command.LOOKUP, lookup, 8, _pair, room
            ),
            command.LOOKUP_RESPONSE,
        ),
        LargestCommand(
            "LOOKUP, a long name",
            _frame(
                command.LOOKUP,
                CommandLookupTopic(topic=long_name, request_id=REQUEST_ID).SerializeToString(),
            ),
            command.LOOKUP_RESPONSE,
        ),
        LargestCommand(
            "PARTITIONED_METADATA, a name of slashes",
            _frame(
                command.PARTITIONED_METADATA,
                CommandPartitionedTopicMetadata(
                    topic="/" * (room - 100), request_id=REQUEST_ID
                ).SerializeToString(),
            ),
            command.PARTITIONED_METADATA_RESPONSE,
        ),
        LargestCommand(
            "GET_TOPICS_OF_NAMESPACE, properties",
            _different(
                command.GET_TOPICS_OF_NAMESPACE,
                CommandGetTopicsOfNamespace(
                    request_id=REQUEST_ID, namespace="public/default", topics_pattern="public/.*"
                ),
                6, _pair, room,
            ),
            command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        ),
        LargestCommand(
            "GET_TOPICS_OF_NAMESPACE, a long pattern",
            _frame(
                command.GET_TOPICS_OF_NAMESPACE,
                CommandGetTopicsOfNamespace(
                    request_id=REQUEST_ID, namespace="public/default", topics_pattern=long_name
                ).SerializeToString(),
            ),
            command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        ),
        LargestCommand(
            "WATCH_TOPIC_LIST, a long pattern",
            _frame(
                command.WATCH_TOPIC_LIST,
                CommandWatchTopicList(
                    request_id=REQUEST_ID, watcher_id=1, namespace="public/default",
                    topics_pattern=long_name,
                ).SerializeToString(),
            ),
            command.WATCH_TOPIC_LIST_SUCCESS,
        ),
        LargestCommand(
            "CONNECT once more, a long version",
            _frame(command.CONNECT, CommandConnect(client_version=long_name).SerializeToString()),
            command.CONNECTED,
        ),
    ]  # fmt: skip


def _transactions(room: int) -> list[LargestCommand]:
    """Commands of transactions with many partitions or subscriptions."""
    command = BaseCommand
    partitions = CommandAddPartitionToTxn(request_id=REQUEST_ID, txnid_least_bits=1)
    subscriptions = CommandAddSubscriptionToTxn(request_id=REQUEST_ID, txnid_least_bits=1)
    return [
        LargestCommand(
            "ADD_PARTITION_TO_TXN, partitions",
            _filled(
                command.ADD_PARTITION_TO_TXN,
                partitions, 4, b"\xc3\xa9", room,
            ),
            command.ADD_PARTITION_TO_TXN_RESPONSE,
        ),
        LargestCommand(
            "ADD_SUBSCRIPTION_TO_TXN, subscriptions",
            _filled(
                command.ADD_SUBSCRIPTION_TO_TXN,
                subscriptions, 4, _field(1, b"") + _field(2, b""), room,
            ),
            command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        ),
    ]  # fmt: skip
