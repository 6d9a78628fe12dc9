"""What is read without protobuf is what protobuf reads, and everything else is left to it."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from pulsar_py.client.brokers.client_cnx import _receipt_of
from pulsar_py.common.errors import ProtocolError
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandMessage,
    CommandSendReceipt,
    MessageIdData,
)
from pulsar_py.wire import commands, framing
from pulsar_py.wire.alike_commands import NOTHING, AlikeCommands
from pulsar_py.wire.receipt_runs import Receipt

IDS = st.integers(0, 2**63 - 1) | st.integers(0, 300)


def message(
    consumer_id: int, ledger_id: int, entry_id: int, ack_set: tuple[int, ...] = (), **fields: int
) -> tuple[bytes, CommandMessage]:
    message_id = MessageIdData(ledgerId=ledger_id, entryId=entry_id, partition=3)
    command = CommandMessage(consumer_id=consumer_id, message_id=message_id, **fields)
    command.ack_set.extend(ack_set)
    whole = BaseCommand(type=BaseCommand.MESSAGE, message=command)
    return whole.SerializeToString(), command


def receipt(values: Receipt, **message_id: int) -> bytes:
    command = CommandSendReceipt(
        producer_id=values.producer_id,
        sequence_id=values.sequence_id,
        message_id=MessageIdData(ledgerId=values.ledger_id, entryId=values.entry_id, **message_id),
    )
    if values.highest_sequence_id:
        command.highest_sequence_id = values.highest_sequence_id
    whole = BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=command)
    return whole.SerializeToString()


@given(IDS, IDS, IDS, IDS, st.integers(0, 5), st.lists(st.integers(0, 2**40), max_size=3))
def test_a_message_like_the_last_one_has_its_own_entry_id(  # noqa: PLR0917 - values of hypothesis
    consumer_id: int, ledger_id: int, entry_id: int, other_id: int, count: int, ack_set: list[int]
) -> None:
    fields = {"ack_set": tuple(ack_set), "redelivery_count": count}
    data, command = message(consumer_id, ledger_id, entry_id, **fields)
    other, _ = message(consumer_id, ledger_id, other_id, **fields)
    alike = AlikeCommands()
    alike.learn_message(data, command)
    assert alike.find(data) == (command, (ledger_id, entry_id))
    if len(other) == len(data):
        assert alike.find(other) == (command, (ledger_id, other_id))
    else:
        assert alike.find(other) is NOTHING


@given(IDS, IDS, IDS, IDS, IDS, IDS, st.integers(0, 2))
def test_a_receipt_like_the_last_one_has_its_own_ids(  # noqa: PLR0917 - as above
    producer_id: int,
    sequence_id: int,
    ledger_id: int,
    entry_id: int,
    other_sequence_id: int,
    other_entry_id: int,
    highest: int,
) -> None:
    last = Receipt(producer_id, sequence_id, ledger_id, entry_id, highest)
    other = Receipt(producer_id, other_sequence_id, ledger_id, other_entry_id, highest)
    data = receipt(last)
    alike = AlikeCommands()
    alike.learn_receipt(data, last)
    assert alike.find(data) == (last, None)
    assert alike.is_receipt(data)
    found = alike.find(receipt(other))
    piece = framed(receipt(other))
    if sizes(last) == sizes(other):
        assert found == (other, None)
        assert alike.is_receipt_frame(piece)
        assert alike.receipt_at(piece + b"more", framing.SIZES_SIZE) == other
    else:
        assert found is NOTHING
        is_as_long = alike.is_receipt_frame(piece)
        assert not is_as_long or alike.receipt_at(piece, framing.SIZES_SIZE) is None


def sizes(values: Receipt) -> list[int]:
    """Of its two ids, in bytes."""
    return [max(each.bit_length() - 1, 0) // 7 for each in values[1:4:2]]


def test_what_differs_in_anything_else_is_left_to_the_parser() -> None:
    alike = AlikeCommands()
    assert alike.find(b"") is NOTHING
    data, command = message(1, 7, 200)
    alike.learn_message(data, command)
    alike.learn_receipt(receipt(Receipt(1, 200, 7, 200)), Receipt(1, 200, 7, 200))
    for other in (
        message(2, 7, 200)[0],
        message(1, 8, 200)[0],
        message(1, 7, 20)[0],
        message(1, 7, 20000)[0],
        message(1, 7, 200, redelivery_count=1)[0],
        message(1, 7, 200, ack_set=(5,))[0],
        data[:-1] + b"\x02",
        receipt(Receipt(1, 200, 8, 200)),
        receipt(Receipt(1, 200, 7, 200, 300)),
        receipt(Receipt(1, 20, 7, 20000)),
        receipt(Receipt(1, 20000, 7, 20)),
    ):
        assert alike.find(other) is NOTHING
    assert alike.find(receipt(Receipt(2, 200, 7, 200))) is NOTHING
    assert not alike.is_receipt(receipt(Receipt(2, 200, 7, 200)))
    assert not alike.is_receipt(data)


def framed(command: bytes, payload: bytes = b"") -> bytes:
    return framing.encode_message_header(command, len(payload)) + payload


def test_a_message_that_comes_alone_is_found_in_its_frame_behind_a_receipt_or_without_one() -> None:
    alike = AlikeCommands()
    first, command = message(1, 7, 200)
    told = framed(receipt(Receipt(1, 200, 7, 200)))
    assert alike.find_alone(told + framed(first, b"entry")) is None
    alike.learn_message(first, command)
    assert alike.find_alone(told + framed(first, b"entry")) is None
    alike.learn_receipt(receipt(Receipt(1, 200, 7, 200)), Receipt(1, 200, 7, 200))
    other = framed(message(1, 7, 300)[0], b"entry")
    told = framed(receipt(Receipt(1, 300, 7, 300)))
    assert alike.find_alone(other) == (command, (7, 300), b"entry", 0)
    assert alike.find_alone(told + other) == (command, (7, 300), b"entry", len(told))
    assert alike.is_receipt_frame(told)
    for piece in (b"", other, told[:-1], told + b"x", told + other):
        assert not alike.is_receipt_frame(piece)
    for size in range(len(told + other)):
        assert alike.find_alone((told + other)[:size]) is None
    for piece in (
        told + told + other,
        told + other + b"x",
        other + other,
        other + told,
        framed(message(1, 7, 300)[0]),  # without an entry
        framed(message(2, 7, 300)[0], b"entry"),
        framed(message(1, 7, 20000)[0], b"entry"),
        framed(receipt(Receipt(2, 300, 7, 300))) + other,  # of another producer
        bytes(len(other)),
    ):
        assert alike.find_alone(piece) is None


@given(IDS, IDS, st.binary(min_size=1, max_size=300), st.booleans(), st.data())
def test_what_is_found_alone_is_what_is_found_in_frames(
    entry_id: int,
    sequence_id: int,
    entry: bytes,
    has_receipt: bool,  # noqa: FBT001 - a value of hypothesis
    data: st.DataObject,
) -> None:
    alike = AlikeCommands()
    command, values = message(1, 7, entry_id)[0], Receipt(1, sequence_id, 7, entry_id)
    learn(alike, command)
    learn(alike, receipt(values))
    piece = framed(receipt(values)) * has_receipt + framed(command, entry)
    at = data.draw(st.integers(0, len(piece) - 1))
    piece = piece[:at] + data.draw(st.binary(min_size=1, max_size=1)) + piece[at + 1 :]
    found = alike.find_alone(piece)
    if found is not None:
        *before, (data_found, payload) = framing.FrameDecoder(1 << 20).decode(piece)
        assert len(before) == (found[3] > 0)
        assert all(alike.is_receipt(each) and rest is None for each, rest in before)
        assert (*alike.find(data_found), payload) == found[:3]


def test_bytes_that_are_no_number_where_an_id_should_be_are_left_to_the_parser() -> None:
    data, command = message(1, 7, 200)
    at = data.index(b"\xc8\x01")
    alike = AlikeCommands()
    alike.learn_message(data, command)
    for wrong in (b"\x48\x01", b"\xc8\x81", b"\x48\x81"):
        assert alike.find(data[:at] + wrong + data[at + 2 :]) is NOTHING


def test_other_layouts_are_not_learned() -> None:
    alike = AlikeCommands()
    data, command = message(1, 7, 200, ack_set=tuple(range(2**60, 2**60 + 20)))
    assert len(data) > 128  # whose sizes take two bytes
    alike.learn_message(data, command)
    assert alike.find(data) is NOTHING
    values = Receipt(1, 200, 7, 200)
    alike.learn_receipt(receipt(values, partition=2), values)
    assert alike.find(receipt(values, partition=2)) is NOTHING


@pytest.mark.parametrize("ids", [(2**64 - 1, 5), (7, 2**64 - 1)])
def test_ids_that_are_negative_are_left_to_the_parser(ids: tuple[int, int]) -> None:
    alike = AlikeCommands()
    data, command = message(1, *ids)
    alike.learn_message(data, command)
    assert alike.find(data) is NOTHING


def number(field: int, value: int, spare_bytes: int = 0) -> bytes:
    """A field that is a number, which may be longer than it has to be."""
    encoded = bytearray(varint(value))
    for _ in range(min(spare_bytes, 10 - len(encoded))):
        encoded[-1] |= 0x80
        encoded.append(0)
    return varint(field << 3) + bytes(encoded)


def nested(field: int, inner: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(inner)) + inner


LAST = 2**64 - 1
VALUES = st.sampled_from((0, 1, 5, 127, 128, 200, 300, 2**31, 2**63 - 1, 2**63, LAST))
SPARE = st.sampled_from((0, 0, 0, 0, 1, 9))
UNKNOWN = st.builds(number, st.sampled_from((15, 100)), VALUES) | st.builds(
    nested, st.sampled_from((15, 100)), st.binary(max_size=5)
)


def message_of(draw: st.DrawFn, required: list[bytes], optional: list[bytes]) -> bytes:
    """Usually its fields once and in order; or in any order, repeated, and with unknown ones."""
    parts = required + draw(st.lists(st.sampled_from(optional), max_size=2))
    if draw(st.booleans()):
        parts += draw(st.lists(st.sampled_from(parts) | UNKNOWN, max_size=2))
        parts = draw(st.permutations(parts))
    return b"".join(parts)


@st.composite
def any_encoding(draw: st.DrawFn) -> bytes:
    """A MESSAGE or SEND_RECEIPT, encoded as a parser has to accept it."""

    def drawn(field: int) -> bytes:
        return number(field, draw(VALUES), draw(SPARE))

    message_id = message_of(draw, [drawn(1), drawn(2)], [drawn(2), drawn(3), drawn(6)])
    if draw(st.booleans()):
        kind, ids = 9, [drawn(1), nested(2, message_id)]
        optional = [drawn(3), drawn(4), drawn(5), nested(2, message_id)]
    else:
        kind, ids = 7, [drawn(1), drawn(2), nested(3, message_id)]
        optional = [drawn(2), drawn(4), nested(3, message_id)]
    inner = message_of(draw, ids, optional)
    return message_of(draw, [number(1, kind), nested(kind, inner)], [nested(kind, inner)])


def parsed(data: bytes) -> tuple[CommandMessage | Receipt | None, tuple[int, int] | None]:
    """What protobuf makes of it, in the form of `AlikeCommands.find`."""
    try:
        whole = commands.read_command(data)
    except (DecodeError, ProtocolError):
        return NOTHING
    if whole.type == BaseCommand.MESSAGE:
        message_id = whole.message.message_id
        return whole.message, (message_id.ledgerId, message_id.entryId)
    return (
        _receipt_of(whole.send_receipt) if whole.type == BaseCommand.SEND_RECEIPT else None
    ), None


def learn(alike: AlikeCommands, data: bytes) -> None:
    command, _ = parsed(data)
    if isinstance(command, Receipt):
        alike.learn_receipt(data, command)
    elif command is not None:
        alike.learn_message(data, command)


# Fields that come twice, of which the last one counts: found by comparing random encodings.
@example(bytes.fromhex("08073a11080910c8011a040804100020ac0210c801"))
@example(bytes.fromhex("08094a0d0807120908ac0210c80110c801"))
@example(bytes.fromhex("08073a0b08091092011a04080410053a0b08091092011a0408041005"))
@example(bytes.fromhex("08073a15080910c8011a05080410860120001a050804108601"))
# A negative entry in a ledger that is none.
@example(
    bytes.fromhex("08073a31080910c8011a1508041080808080808080808001180020ffffffffffffffffff01")
)
@given(any_encoding())
def test_whatever_was_learned_what_is_found_is_what_the_parser_reads(data: bytes) -> None:
    alike = AlikeCommands()
    learn(alike, data)
    for at, old in enumerate(data):
        for new in {old, old ^ 0x80, old ^ 1, old ^ 0x40, 0, 0x7F}:
            other = data[:at] + bytes((new,)) + data[at + 1 :]
            command, key = alike.find(other)
            if isinstance(command, CommandMessage):
                expected, expected_key = parsed(other)
                assert key == expected_key
                assert isinstance(expected, CommandMessage)
                expected.message_id.CopyFrom(command.message_id)
                assert command == expected
            elif command is not None:
                assert (command, None) == parsed(other)


@pytest.mark.parametrize("nothing", [bytes(7), bytes(8), b"\xff" * 7, b"\xff" * 8])
def test_what_is_before_a_message_is_a_receipt_that_is_known(nothing: bytes) -> None:
    data, command = message(1, 5, 300)
    frame = framing.SIZES.pack(4 + len(data) + 1, len(data)) + data + b"x"
    alike = AlikeCommands()
    assert alike.find_alone(nothing + frame) is None
    alike.learn_message(data, command)
    assert alike.find_alone(frame) == (command, (5, 300), b"x", 0)
    assert alike.find_alone(nothing + frame) is None
    assert not alike.is_receipt_frame(nothing)
