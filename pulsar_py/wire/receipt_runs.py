"""Finds SEND_RECEIPTs that continue the one before them, without parsing each (pure).

A broker confirms what a producer sent in a row with receipts whose sequence ids and entry ids count
up by one. After the first, which is parsed, the bytes of those to come are known: they are compared
with what arrived, a few at first and then more and more. The first one that differs ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsar_py.common.position import MAX_LONG
from pulsar_py.common.varint import varint, varints_in_row

if TYPE_CHECKING:
    from pulsar_py.wire.frame_receiver import ReceivedFrame

__all__ = ["ALL_BITS", "HIGHEST_TAG", "Receipt", "count_following"]

_HEAD_SIZE: Final = 4  # the command's type, the tag of its message, and the size, which is one byte
_PRODUCER_ID_TAG: Final = b"\x08"
_SEQUENCE_ID_TAG: Final = b"\x10"
_MESSAGE_ID_TAG: Final = b"\x1a"
_LEDGER_ID_TAG: Final = b"\x08"  # within the message id
_ENTRY_ID_TAG: Final = b"\x10"  # likewise
HIGHEST_TAG: Final = b"\x20"
"""Of the highest sequence id: field 4 of SEND_RECEIPT."""
ALL_BITS: Final = (1 << 64) - 1
"""Of a number below zero, too."""
_FIRST_LOOK: Final = 4
"""So many receipts are compared first, and twice as many each time that all were as expected."""


class Receipt(NamedTuple):
    """What a SEND_RECEIPT says; no number is negative."""

    producer_id: int
    sequence_id: int
    ledger_id: int
    entry_id: int
    highest_sequence_id: int = 0
    """0 where the SEND had none."""


def count_following(frames: Sequence[ReceivedFrame], at: int, receipt: Receipt) -> int:
    """How many frames behind `frames[at]`, which says `receipt`, continue it without a gap."""
    # Hot path: produce unbatched in `make bench-client`.
    if at + 1 == len(frames) or frames[at + 1][1] is not None:  # something with a payload
        return 0
    first = frames[at][0]
    start = first[:_HEAD_SIZE] + _PRODUCER_ID_TAG + varint(receipt.producer_id) + _SEQUENCE_ID_TAG
    if not frames[at + 1][0].startswith(start):
        return 0
    _, sequence_id, ledger_id, entry_id, highest = receipt
    sequence, entry = varint(sequence_id), varint(entry_id)
    ledger = _LEDGER_ID_TAG + varint(ledger_id) + _ENTRY_ID_TAG
    middle = _MESSAGE_ID_TAG + varint(len(ledger) + len(entry)) + ledger
    begin = start + sequence + middle + entry
    end = first[len(begin) :]  # the highest id, which is the same for all, or nothing
    if not first.startswith(begin) or (end and end != HIGHEST_TAG + varint(highest & ALL_BITS)):
        return 0  # in another layout, or an id comes twice, and the last one counts
    # Up to where one of the ids needs one byte more, and the sizes change with it.
    most = min(
        len(frames) - at - 1,
        _largest_of(len(sequence)) - sequence_id,
        _largest_of(len(entry)) - entry_id,
    )
    count, look = 0, _FIRST_LOOK
    while count < most:
        size = min(look, most - count)
        look *= 2
        expected: list[ReceivedFrame] = [
            (start + sequence + middle + entry + end, None)
            for sequence, entry in zip(
                varints_in_row(sequence_id + count + 1, size),
                varints_in_row(entry_id + count + 1, size),
                strict=True,
            )
        ]
        begun = at + 1 + count
        received = frames[begun : begun + size]
        if received != expected:
            return count + _equal_at_start(received, expected)
        count += size
    return count


def _largest_of(size: int) -> int:
    """The largest number whose varint has `size` bytes, and that no parser cuts."""
    return min((1 << 7 * size) - 1, MAX_LONG)


def _equal_at_start(left: Sequence[ReceivedFrame], right: Sequence[ReceivedFrame]) -> int:
    count = 0
    for one, other in zip(left, right, strict=True):
        if one != other:
            break
        count += 1
    return count
