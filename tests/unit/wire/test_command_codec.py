"""Reading any command, framing any command, and what goes out once an entry."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_py.common.errors import RemoteProtocolError
from pulsar_py.common.varint import varint
from pulsar_py.proto import PulsarApi_pb2 as api
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    BrokerEntryMetadata,
    MessageIdData,
    MessageMetadata,
    ServerError,
)
from pulsar_py.wire import command_codec as commands
from pulsar_py.wire.command_codec import (
    MessageEncoder,
    SendReceiptEncoder,
    encode_ack_receipts,
    sequence_id_place,
    serialize,
)
from pulsar_py.wire.commands import ack_response
from pulsar_py.wire.framing import FrameDecoder, encode_command
from pulsar_py.wire.payload import add_broker_entry_metadata, encode_entry

SUB_MESSAGES = [field for field in BaseCommand.DESCRIPTOR.fields if field.message_type is not None]


def read(frame: bytes) -> BaseCommand:
    (only,) = FrameDecoder(10_000_000).decode(frame)
    assert only.headers_and_payload is None
    return commands.read_command(only.command)


def fill(message: Message) -> None:
    """Set every required field to something."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required:
            continue
        if field.message_type is not None:
            fill(getattr(message, field.name))
            getattr(message, field.name).SetInParent()
        elif field.enum_type is not None:
            setattr(message, field.name, field.enum_type.values[0].number)
        elif isinstance(field.default_value, bytes):
            setattr(message, field.name, b"x")
        else:
            setattr(message, field.name, "x" if isinstance(field.default_value, str) else 7)


@pytest.mark.parametrize("field", SUB_MESSAGES, ids=lambda field: field.name)
def test_every_command_is_framed_as_protobuf_does_and_reads_back(field: Any) -> None:
    command = BaseCommand(type=field.number)
    message = getattr(command, field.name)
    message.SetInParent()
    fill(message)

    frame = commands.encode(message)

    assert frame == encode_command(command)
    assert read(frame) == command


@pytest.mark.parametrize("size", [100, 127, 128, 1023, 1024, 20_000])
def test_lengths_of_any_size(size: int) -> None:
    frame = commands.encode(
        api.CommandError(request_id=1, error=ServerError.UnknownError, message="x" * size)
    )

    assert read(frame).error.message == "x" * size


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "unknown type"),
        ("0829", "unknown type"),
        ("0852", "unknown type"),
        ("08e807", "unknown type"),
        ("0812", "PING lacks"),
        ("080632020801", "SEND lacks"),
        ("08029201 00", "CONNECT lacks"),
        ("ffffffffffffffff", "command of 8 bytes"),
        ("08068a", "command of 3 bytes"),
    ],
)
def test_what_is_no_command_is_refused(data: str, text: str) -> None:
    with pytest.raises(RemoteProtocolError, match=text):
        commands.read_command(bytes.fromhex(data))


def test_unknown_fields_are_ignored() -> None:
    command = commands.read_command(bytes.fromhex("0812920100a01f01"))

    assert command.type == BaseCommand.PING


def test_receipts_are_those_of_protobuf() -> None:
    encoder = SendReceiptEncoder()

    def expected(**fields: Any) -> bytes:
        receipt = api.CommandSendReceipt(
            producer_id=3,
            message_id=MessageIdData(ledgerId=fields.pop("ledger"), entryId=fields.pop("entry")),
            **fields,
        )
        return encode_command(BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt))

    assert encoder.encode(3, 1, 7, 9) == expected(sequence_id=1, ledger=7, entry=9)
    assert encoder.encode(3, 2, -1, -1, 5) == expected(
        sequence_id=2, ledger=2**64 - 1, entry=2**64 - 1, highest_sequence_id=5
    )
    assert encoder.encode(3, 2**64 - 1, 0, 0) == expected(sequence_id=2**64 - 1, ledger=0, entry=0)


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**63 - 1),
    st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 300)), min_size=1, max_size=4),
    st.integers(0, 2**40),
)
@example(3, 7, [(2**64 - 2, 2), (5, 1)], 126)
def test_receipts_of_a_run_are_those_of_its_entries(producer_id, ledger_id, rows, first_entry_id):
    encoder = SendReceiptEncoder()
    sequence_ids = [number for first, count in rows for number in range(first, first + count)]
    highest_ids = [None] * len(sequence_ids)
    assert encoder.encode_run(
        producer_id, ledger_id, first_entry_id, sequence_ids, highest_ids
    ) == b"".join(
        encoder.encode(producer_id, sequence_id, ledger_id, first_entry_id + place)
        for place, sequence_id in enumerate(sequence_ids)
    )


def test_receipts_of_a_run_repeat_the_highest_ids() -> None:
    encoder = SendReceiptEncoder()
    sequence_ids, highest_ids = [1, 2, 6, 2**64 - 1], [None, 5, None, None]
    assert encoder.encode_run(3, 7, 126, sequence_ids, highest_ids) == b"".join(
        encoder.encode(3, sequence_id, 7, 126 + place, highest)
        for place, (sequence_id, highest) in enumerate(zip(sequence_ids, highest_ids, strict=True))
    )


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_the_sequence_id_of_a_plain_send_is_found(producer_id, sequence_id):
    send = serialize(api.CommandSend(producer_id=producer_id, sequence_id=sequence_id))
    place = sequence_id_place(send)
    assert send[place - 1] == 0x10
    assert send[place:] == varint(sequence_id)


@pytest.mark.parametrize(
    "send",
    [
        serialize(api.CommandSend(producer_id=1, sequence_id=2, num_messages=3)),
        serialize(api.CommandSend(producer_id=1, sequence_id=2, highest_sequence_id=3)),
        serialize(api.CommandSend(producer_id=1, sequence_id=2, is_chunk=True)),
        # Twice a sequence id: the last one counts.
        bytes.fromhex("080632060801 1005 1006"),
        # Behind the message a field that only looks like a sequence id.
        bytes.fromhex("080632020801 1005"),
        bytes.fromhex("080632061005 0801 1006"),
        bytes.fromhex("080632020801"),
    ],
)
def test_no_place_is_found_where_a_send_has_more(send: bytes) -> None:
    assert not sequence_id_place(send)


def test_messages_precede_their_entry() -> None:
    encoder = MessageEncoder(4, 2)
    entry = b"entry" * 1000

    plain = encoder.encode(7, 9, len(entry)) + entry
    rich = encoder.encode(
        7, 10, len(entry), redelivery_count=2, ack_set=[5, -1] * 300, consumer_epoch=0
    )
    again = encoder.encode(7, 11, 0)

    (frame,) = FrameDecoder(10_000).decode(plain)
    assert frame.headers_and_payload == entry
    assert commands.read_command(frame.command).message == api.CommandMessage(
        consumer_id=4, message_id=MessageIdData(ledgerId=7, entryId=9, partition=2)
    )
    (frame,) = FrameDecoder(100_000).decode(rich + entry)
    assert frame.headers_and_payload == entry
    assert commands.read_command(frame.command).message == api.CommandMessage(
        consumer_id=4,
        message_id=MessageIdData(ledgerId=7, entryId=10, partition=2),
        redelivery_count=2,
        ack_set=[5, -1] * 300,
        consumer_epoch=0,
    )
    assert read(again).message.message_id.entryId == 11
    assert not read(again).message.HasField("redelivery_count")
    assert not read(again).message.HasField("consumer_epoch")


def test_a_message_of_an_unpartitioned_topic_has_no_partition() -> None:
    message = read(MessageEncoder(4).encode(7, 9, 0)).message

    assert not message.message_id.HasField("partition")


@dataclass
class Stored:
    ledger_id: int
    entry_id: int
    data: bytes


@pytest.mark.parametrize("strips", [False, True])
@pytest.mark.parametrize("partition", [-1, 3])
def test_a_run_is_framed_as_its_entries_one_by_one(strips: bool, partition: int) -> None:  # noqa: FBT001
    data = encode_entry(
        MessageMetadata(producer_name="p", sequence_id=1, publish_time=2), b"x" * 300
    )
    block = add_broker_entry_metadata(data, BrokerEntryMetadata(index=1))
    entries = [Stored(2**40, 7, data), Stored(5, 0, block), Stored(5, 2**33, data[6:])]
    sent = [data, data if strips else block, data[6:]]
    encoder = MessageEncoder(9, partition)
    frames = [
        encoder.encode(entry.ledger_id, entry.entry_id, len(payload)) + payload
        for entry, payload in zip(entries, sent, strict=True)
    ]

    buffers, bytes_count = MessageEncoder(9, partition).encode_run(
        entries, strips_broker_entry_metadata=strips
    )
    alone = [
        MessageEncoder(9, partition).encode_run([entry], strips_broker_entry_metadata=strips)
        for entry in entries
    ]

    assert b"".join(buffers) == b"".join(frames)
    assert bytes_count == sum(map(len, sent))
    assert [(b"".join(buffers), count) for buffers, count in alone] == [
        (frame, len(payload)) for frame, payload in zip(frames, sent, strict=True)
    ]


@pytest.mark.parametrize("partition", [-1, 0, 200])
@pytest.mark.parametrize("sizes", [[300] * 9, [0, 300, 300, 5, 5, 5, 70_000, 1, 2]])
def test_a_run_across_lengths_of_entry_ids_is_framed_the_same(
    partition: int, sizes: list[int]
) -> None:
    ids = [0, 126, 127, 128, 255, 256, 2**14 - 1, 2**14, 2**35]
    entries = [Stored(3, *each) for each in zip(ids, map(bytes, sizes), strict=True)]

    buffers, _ = MessageEncoder(9, partition).encode_run(
        entries, strips_broker_entry_metadata=False
    )

    encode = MessageEncoder(9, partition).encode
    assert b"".join(buffers) == b"".join(
        encode(3, each.entry_id, len(each.data)) + each.data for each in entries
    )


def test_small_entries_are_joined_and_large_ones_are_not_copied() -> None:
    small, large = (
        [Stored(3, entry_id, bytes(size)) for entry_id in range(5)] for size in (9, 9999)
    )
    encode_run = MessageEncoder(9).encode_run

    assert len(encode_run(small, strips_broker_entry_metadata=False)[0]) == 1
    buffers, _ = encode_run(large, strips_broker_entry_metadata=False)
    assert all(buffers[2 * place + 1] is each.data for place, each in enumerate(large))
    assert len(encode_run(small[:1], strips_broker_entry_metadata=False)[0]) == 1
    (_, alone), _ = encode_run(large[:1], strips_broker_entry_metadata=False)
    assert alone is large[0].data


@pytest.mark.parametrize("partition", [-1, 0, 200])
@pytest.mark.parametrize("first", [0, 100, 127, 128, 2**14 - 3, 2**35 + 77])
@pytest.mark.parametrize("sizes", [[300] * 300, [0, 300, 300, 5, 70_000, 1], []])
def test_neighbours_are_framed_as_one_by_one(partition: int, first: int, sizes: list[int]) -> None:
    entries = [bytes(size) for size in sizes]

    buffers, bytes_count = MessageEncoder(9, partition).encode_neighbours(3, first, entries)

    encode = MessageEncoder(9, partition).encode
    assert b"".join(buffers) == b"".join(
        encode(3, entry_id, len(entry)) + entry for entry_id, entry in enumerate(entries, first)
    )
    assert bytes_count == sum(sizes)


@pytest.mark.parametrize("consumer_id", [0, 1, 127, 128, 2**64 - 1])
@pytest.mark.parametrize("request_ids", [[0], [1, 2, 300], [2**64 - 1, 127, 128], []])
def test_receipts_of_acknowledgements_are_those_of_the_general_encoder(consumer_id, request_ids):
    expected = [ack_response(consumer_id, each) for each in request_ids]
    assert encode_ack_receipts(consumer_id, request_ids) == b"".join(expected)


@pytest.mark.parametrize("implementation", ["python", "upb"])
def test_a_text_that_is_not_utf8_is_refused_on_both_builds_of_protobuf(
    implementation: str,
) -> None:
    """The compiled part gives bytes for it, protobuf's own Python an error of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", BROKEN_TEXTS],
        env=os.environ
        | {
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": implementation,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.split() == [
        implementation,
        "RemoteProtocolError",
        "FullSummary",
        "ValueError",
    ]


BROKEN_TEXTS = """
from google.protobuf.internal import api_implementation
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageMetadata
from pulsar_py.wire.command_codec import read_command
from pulsar_py.wire.entry_summary import summarize_parsed
from pulsar_py.wire.payload import encode_entry

def outcome(call, data):
    try:
        return call(data)
    except Exception as error:
        return type(error).__name__

lookup = BaseCommand(type=BaseCommand.LOOKUP)
lookup.lookupTopic.topic, lookup.lookupTopic.request_id = "text", 1
command = lookup.SerializeToString().replace(b"text", b"te\\xfft")
metadata = MessageMetadata(producer_name="text", sequence_id=1, publish_time=1)
entry = encode_entry(metadata, b"body").replace(b"text", b"te\\xfft")
print(api_implementation.Type())
print(outcome(read_command, command))
print(type(outcome(summarize_parsed, entry)).__name__)
print(outcome(MessageId.parse, b"\\xff"))
"""
