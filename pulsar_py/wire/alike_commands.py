"""`AlikeCommands`: reads commands that differ from one before in their ids alone (pure).

A message that is sent and received alone brings a SEND_RECEIPT and a MESSAGE, and both are the last
ones with other ids. At 1,000 messages a second, with caches that something else has used meanwhile,
protobuf takes 8 us for each of them, and this 2. So of each kind one that was parsed is kept, cut
where its ids are:

    SEND_RECEIPT   start | sequence id | middle | entry id | end
    MESSAGE        start | entry id | end

What always holds: a command is alike only if its ids are as long and all its other bytes are the
same, and the one that is kept is encoded as protobuf itself does it, each field once and in order:
so parsing would give the same fields with these ids. `find_alone` compares the frames of a whole
read with the two at once, without cutting them first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pulsar_py.common.position import MAX_LONG
from pulsar_py.common.varint import varint
from pulsar_py.wire.framing import SIZES, SIZES_SIZE
from pulsar_py.wire.receipt_runs import ALL_BITS, HIGHEST_TAG, Receipt

if TYPE_CHECKING:
    from pulsar_py.proto.PulsarApi_pb2 import CommandMessage

__all__ = ["NOTHING", "AlikeCommands", "Alone", "Found"]

Found: TypeAlias = "tuple[CommandMessage | Receipt | None, tuple[int, int] | None]"
"""A receipt; or a message and the ledger and entry id to read in place of its own; or neither."""
NOTHING: Final[Found] = (None, None)
Alone: TypeAlias = "tuple[CommandMessage, tuple[int, int], bytes, int]"
"""A message, its ledger and entry id, what follows the command, and where its frame begins."""

_MESSAGE_HEAD: Final = b"\x08\x09\x4a"  # the type, and the tag of the rest, whose size follows
_RECEIPT_HEAD: Final = b"\x08\x07\x3a"  # likewise
_HEAD_SIZE: Final = 4  # one of these, and that size, which is one byte
_OWNER_TAG: Final = b"\x08"  # field 1 of both: the id of the producer or consumer
_SEQUENCE_ID_TAG: Final = b"\x10"  # field 2 of SEND_RECEIPT
_RECEIPT_ID_TAG: Final = b"\x1a"  # field 3 of SEND_RECEIPT: the message id
_MESSAGE_ID_TAG: Final = b"\x12"  # field 2 of MESSAGE: the message id
_LEDGER_ID_TAG: Final = b"\x08"  # within the message id
_ENTRY_ID_TAG: Final = b"\x10"  # likewise
_NO_FRAME: Final = b"\xff" * SIZES_SIZE
"""How no frame begins, and none within it: no frame is that large."""
_new: Final = tuple.__new__
_MORE: Final = 0x80
"""Set in each byte of a number but the last."""


class AlikeCommands:
    """A receipt and a message of one connection that were parsed, to compare others with."""

    __slots__ = (
        "_ledger_id",
        "_message",
        "_message_end",
        "_message_size",
        "_message_start",
        "_middle",
        "_receipt",
        "_receipt_cuts",
        "_receipt_end",
        "_receipt_frame",
        "_receipt_size",
        "_receipt_start",
    )

    def __init__(self) -> None:
        # The message; None before the first one.
        self._message: CommandMessage | None = None
        self._ledger_id = -1
        self._message_start = self._message_end = b""
        self._message_size = -1
        self._receipt = Receipt(-1, -1, -1, -1)
        self._receipt_start = self._middle = self._receipt_end = b""
        # How a frame of a receipt like it begins.
        self._receipt_frame = _NO_FRAME
        self._receipt_size = -1
        # Where the receipt's sequence id begins and ends, and where its entry id does.
        self._receipt_cuts = (0, 0, 0, 0)

    def learn_message(self, data: bytes, message: CommandMessage) -> None:
        """Keep a MESSAGE that was parsed."""
        message_id = message.message_id
        ledger_id, entry_id = message_id.ledgerId, message_id.entryId
        if not _is_short(data) or not ledger_id <= MAX_LONG >= entry_id:
            return
        head = _MESSAGE_HEAD + varint(len(data) - _HEAD_SIZE)
        if not data.startswith(head) or data[_HEAD_SIZE:] != message.SerializeToString():
            return
        start = head + _OWNER_TAG + varint(message.consumer_id) + _MESSAGE_ID_TAG
        start += data[len(start) : len(start) + 1]  # the size of the message id
        start += _LEDGER_ID_TAG + varint(ledger_id) + _ENTRY_ID_TAG
        begin = start + varint(entry_id)
        if data.startswith(begin):
            self._message = message
            self._ledger_id = ledger_id
            self._message_start = start
            self._message_end = data[len(begin) :]
            self._message_size = len(data)

    def learn_receipt(self, data: bytes, receipt: Receipt) -> None:
        """Keep a SEND_RECEIPT that was parsed."""
        producer_id, sequence_id, ledger_id, entry_id, highest = receipt
        is_small = (
            sequence_id <= MAX_LONG and 0 <= ledger_id <= MAX_LONG and 0 <= entry_id <= MAX_LONG
        )
        if not _is_short(data) or not is_small:
            return
        head = _RECEIPT_HEAD + varint(len(data) - _HEAD_SIZE)
        start = head + _OWNER_TAG + varint(producer_id) + _SEQUENCE_ID_TAG
        sequence, entry = varint(sequence_id), varint(entry_id)
        ledger = _LEDGER_ID_TAG + varint(ledger_id) + _ENTRY_ID_TAG
        middle = _RECEIPT_ID_TAG + varint(len(ledger) + len(entry)) + ledger
        begin = start + sequence + middle + entry
        if data in {begin, begin + HIGHEST_TAG + varint(highest & ALL_BITS)}:
            self._receipt = receipt
            self._receipt_start, self._middle = start, middle
            self._receipt_frame = SIZES.pack(len(data) + 4, len(data)) + start
            sequence_end = len(start) + len(sequence)
            entry_at = sequence_end + len(middle)
            self._receipt_cuts = (len(start), sequence_end, entry_at, len(begin))
            self._receipt_end = data[len(begin) :]
            self._receipt_size = len(data)

    def is_receipt(self, data: bytes) -> bool:
        """Whether a command is a SEND_RECEIPT for the same producer as the one it knows."""
        return len(data) == self._receipt_size and data.startswith(self._receipt_start)

    def find_alone(self, data: bytes) -> Alone | None:
        """The message whose frame `data` are, with that of a receipt before it or without one.

        None of anything else. The receipt is of the producer that it knows; `receipt_at` looks
        further.
        """
        # Hot path: latency in `make bench-client`.
        start = 0
        if data.startswith(self._receipt_frame):
            start = SIZES_SIZE + self._receipt_size
        begin = start + SIZES_SIZE
        split = begin + self._message_size
        if (
            len(data) <= split
            or SIZES.unpack_from(data, start) != (len(data) - start - 4, self._message_size)
            or not data.startswith(self._message_start, begin)
            or not data.startswith(self._message_end, end := split - len(self._message_end))
        ):
            return None
        entry_id = _number(data[begin + len(self._message_start) : end])
        if self._message is None or entry_id < 0:
            return None
        return self._message, (self._ledger_id, entry_id), data[split:], start

    def find(self, data: bytes) -> Found:
        """What a command says that is like one of the two; `NOTHING` of any other one."""
        # Hot path: latency in `make bench-client`.
        size = len(data)
        if (
            size == self._message_size
            and data.startswith(start := self._message_start)
            and data.endswith(end := self._message_end)
        ):
            entry_id = _number(data[len(start) : size - len(end)])
            if entry_id >= 0:
                return self._message, (self._ledger_id, entry_id)
        if size == self._receipt_size and (receipt := self.receipt_at(data, 0)) is not None:
            return receipt, None
        return NOTHING

    def receipt_at(self, data: bytes, at: int) -> Receipt | None:
        """What a command that begins `at` says, if it is of the length of the receipt and like it.

        `at` is where the command begins in `data`, which may go on behind it.
        """
        # Hot path: latency in `make bench-client`.
        sequence_at, sequence_end, entry_at, entry_end = self._receipt_cuts
        if not (
            data.startswith(self._receipt_start, at)
            and data.startswith(self._middle, at + sequence_end)
            and data.startswith(self._receipt_end, at + entry_end)
        ):
            return None
        sequence_id = _number(data[at + sequence_at : at + sequence_end])
        entry_id = _number(data[at + entry_at : at + entry_end])
        if sequence_id < 0 or entry_id < 0:
            return None
        producer_id, _, ledger_id, _, highest = self._receipt
        return _new(Receipt, (producer_id, sequence_id, ledger_id, entry_id, highest))

    def is_receipt_frame(self, piece: bytes) -> bool:
        """Whether a read is nothing but the frame of a receipt of the producer that it knows."""
        return len(piece) == SIZES_SIZE + self._receipt_size and piece.startswith(
            self._receipt_frame
        )


def _is_short(data: bytes) -> bool:
    """Whether the sizes in a command are one byte each."""
    return len(data) < _MORE


def _number(data: bytes) -> int:
    """The number that all of `data` encode; -1 where they encode something else."""
    number = data[-1]
    if number >= _MORE:
        return -1
    for byte in data[-2::-1]:
        if byte < _MORE:
            return -1
        number = number << 7 | byte & (_MORE - 1)
    return number
