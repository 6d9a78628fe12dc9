"""Receipts that continue the one before them are found by their bytes, and nothing else is."""

from __future__ import annotations

import pytest

from pulsar_py.common.message_id import to_signed
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSendReceipt, MessageIdData
from pulsar_py.wire.frame_receiver import ReceivedFrame
from pulsar_py.wire.receipt_runs import Receipt, count_following

FIRST = Receipt(producer_id=3, sequence_id=100, ledger_id=5000, entry_id=60)


def frame(
    number: int, first: Receipt = FIRST, highest: int | None = None, **message_id: int
) -> ReceivedFrame:
    """The receipt that comes so many behind `first`."""
    receipt = CommandSendReceipt(
        producer_id=first.producer_id,
        sequence_id=first.sequence_id + number,
        message_id=MessageIdData(
            ledgerId=first.ledger_id, entryId=first.entry_id + number, **message_id
        ),
    )
    if highest is not None:
        receipt.highest_sequence_id = highest
    command = BaseCommand(type=BaseCommand.SEND_RECEIPT, send_receipt=receipt)
    return (command.SerializeToString(), None)


@pytest.mark.parametrize("highest", [None, 0, 2**64 - 1, 2**63])
def test_a_run_is_counted_whatever_else_its_receipts_say(highest: int | None) -> None:
    first = FIRST._replace(highest_sequence_id=to_signed(highest or 0))
    for count in range(20):
        frames = [frame(number, highest=highest) for number in range(count + 1)]
        assert count_following(frames, 0, first) == count


@pytest.mark.parametrize(
    "again",
    [
        CommandSendReceipt(sequence_id=100),
        CommandSendReceipt(message_id=MessageIdData(ledgerId=5000, entryId=60)),
        CommandSendReceipt(message_id=MessageIdData(entryId=60)),
        CommandSendReceipt(producer_id=3),
        CommandSendReceipt(highest_sequence_id=5),
    ],
    ids=str,
)
def test_receipts_that_say_something_twice_are_parsed(again: CommandSendReceipt) -> None:
    """The last one counts, which is the same in all."""
    frames: list[ReceivedFrame] = []
    for number in range(9):
        inner = frame(number)[0][4:] + again.SerializePartialToString()
        frames.append((b"\x08\x07\x3a" + varint(len(inner)) + inner, None))
    assert count_following(frames, 0, FIRST) == 0


def test_a_run_ends_with_the_largest_number() -> None:
    first = FIRST._replace(sequence_id=2**64 - 3)
    inner = [
        b"\x08\x03\x10" + varint(first.sequence_id + number) + frame(number)[0][8:]
        for number in range(6)
    ]
    frames: list[ReceivedFrame] = [
        (b"\x08\x07\x3a" + varint(len(each)) + each, None) for each in inner
    ]
    BaseCommand.FromString(frames[5][0])
    assert count_following(frames, 0, first) == 0


def test_it_begins_where_it_is_told() -> None:
    frames = [frame(number) for number in (7, 8, 0, 1, 2)]
    assert count_following(frames, 2, FIRST) == 2
    assert count_following(frames, 4, FIRST._replace(sequence_id=102, entry_id=62)) == 0


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize(
    "other",
    [
        frame(90),
        frame(0, FIRST._replace(producer_id=4)),
        frame(0, FIRST._replace(ledger_id=5001)),
        (b"\x08\x12\x92\x01\x00", None),
    ],
)
def test_the_first_that_differs_ends_it(at: int, other: ReceivedFrame) -> None:
    frames = [frame(number) for number in range(12)]
    frames[at] = other
    assert count_following(frames, 0, FIRST) == at - 1


def test_a_receipt_with_something_behind_it_is_none() -> None:
    frames = [frame(0), (frame(1)[0], b"entry")]
    assert count_following(frames, 0, FIRST) == 0


@pytest.mark.parametrize("field", ["sequence_id", "entry_id"])
@pytest.mark.parametrize("size", range(1, 9))
def test_it_ends_where_an_id_needs_one_byte_more(field: str, size: int) -> None:
    first = FIRST._replace(**{field: (1 << 7 * size) - 3})
    frames = [frame(number, first) for number in range(10)]
    assert count_following(frames, 0, first) == 2
    longer = first._replace(sequence_id=first.sequence_id + 3, entry_id=first.entry_id + 3)
    assert count_following(frames, 3, longer) == 6  # and goes on behind that


def test_other_layouts_are_left_to_the_parser() -> None:
    frames = [frame(number, partition=2) for number in range(3)]
    assert count_following(frames, 0, FIRST) == 0
