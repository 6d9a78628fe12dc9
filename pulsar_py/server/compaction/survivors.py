"""`Survivors`: the places of the messages that a compaction keeps (pure).

They are bits, one set of entries a ledger, and one of indexes for its batches: two bytes a message
where few stay, and one bit an entry where many do.
"""

from __future__ import annotations

from itertools import takewhile
from struct import Struct
from typing import Final

from pyroaring import BitMap64

from pulsar_py.common.position import Position
from pulsar_py.server.compaction.keyed_messages import NO_BATCH_INDEX

_PLACE: Final = Struct(">qqi")  # ledger id, entry id, batch index
_INDEX_BITS: Final = 25
_MAX_INDEX: Final = (1 << _INDEX_BITS) - 1


def pack_place(position: Position, batch_index: int) -> bytes:
    """The place of one message; those of a chunked message follow each other."""
    return _PLACE.pack(*position, batch_index)


class Survivors:
    """The entries and messages that stay; made by phase one, asked by phase two."""

    def __init__(self) -> None:
        self._entries: dict[int, BitMap64] = {}  # by ledger; those kept as a whole or in part
        self._messages: dict[
            int, BitMap64
        ] = {}  # by ledger: entry id and index of those in batches

    def add(self, places: bytes) -> None:
        """Keep the messages at these packed places."""
        for ledger_id, entry_id, batch_index in _PLACE.iter_unpack(places):
            self._entries.setdefault(ledger_id, BitMap64()).add(entry_id)
            if batch_index != NO_BATCH_INDEX:
                bits = self._messages.setdefault(ledger_id, BitMap64())
                bits.add(entry_id << _INDEX_BITS | batch_index)

    def has_entry(self, position: Position) -> bool:
        """Whether anything of the entry stays."""
        entries = self._entries.get(position.ledger_id)
        return entries is not None and position.entry_id in entries

    def kept_indexes(self, position: Position) -> frozenset[int]:
        """The indexes that stay of a batch; none of an entry that stays as a whole."""
        messages = self._messages.get(position.ledger_id)
        if messages is None:
            return frozenset()
        first = position.entry_id << _INDEX_BITS
        own = takewhile(lambda bit: bit <= first + _MAX_INDEX, messages.iter_equal_or_larger(first))
        return frozenset(bit - first for bit in own)
