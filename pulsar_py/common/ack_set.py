"""Converts sets of batch indexes to and from `ack_set` fields (pure).

An ack set has a bit for each message of a batch, *set* while the message is not acknowledged.

Index `64 * w + b` is bit `b` (least significant first) of word `w`; words are signed, and zero
words at the end are left out. A batch of which nothing is acknowledged has one bit set for each
message, one that is acknowledged has no words at all. Two forms are used: `words`, a list of signed
64-bit integers as in `ack_set` fields, and `bits`, one Python integer, which is better to count and
to combine.

Source: java.util.BitSet.toLongArray, which the protocol's ack_set fields carry.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_WORD_BITS = 64
_WORD_BYTES = 8
_WORD_MASK = (1 << _WORD_BITS) - 1

MAX_WORDS: Final = 4096
"""The most words of one batch's ack set, which is 262,144 messages. The stored form of a cursor has
no room for longer ones."""


def to_bits(words: Sequence[int]) -> int:
    """The words as one integer; they may be signed or unsigned."""
    if len(words) == 1:
        return words[0] & _WORD_MASK
    packed = array("Q", [word & _WORD_MASK for word in words])
    if sys.byteorder == "big":
        packed.byteswap()
    return int.from_bytes(packed.tobytes(), "little")


def to_words(bits: int) -> list[int]:
    """One integer as signed words, without zero words at the end; empty for 0."""
    if not bits:
        return []
    count = (bits.bit_length() + _WORD_BITS - 1) // _WORD_BITS
    data = bits.to_bytes(count * _WORD_BYTES, "little")
    return list(memoryview(data).cast("q"))


def full_bits(batch_size: int) -> int:
    """A batch of which nothing is acknowledged."""
    return (1 << batch_size) - 1


def full_words(batch_size: int) -> list[int]:
    """The words of a batch of which nothing is acknowledged."""
    return to_words(full_bits(batch_size))


def intersect(words: Sequence[int], other: Sequence[int]) -> list[int]:
    """Messages that are unacknowledged in both, as the broker combines acknowledgements."""
    return to_words(to_bits(words) & to_bits(other))


def count(words: Sequence[int]) -> int:
    """The number of messages that are not acknowledged."""
    return to_bits(words).bit_count()


def is_empty(words: Iterable[int]) -> bool:
    """Whether everything is acknowledged."""
    return not any(words)


def indexes(words: Sequence[int]) -> Iterator[int]:
    """The batch indexes that are not acknowledged, ascending."""
    bits = to_bits(words)
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def from_indexes(batch_indexes: Iterable[int]) -> list[int]:
    """Words in which exactly those indexes are not acknowledged."""
    bits = 0
    for index in batch_indexes:
        bits |= 1 << index
    return to_words(bits)


def after_acknowledging(batch_index: int, batch_size: int) -> list[int]:
    """The ack set that acknowledges one message of a fresh batch: all other bits are set."""
    return to_words(full_bits(batch_size) & ~(1 << batch_index))


def from_index_on(batch_index: int, batch_size: int) -> list[int]:
    """Words in which everything before `batch_index` is acknowledged, and nothing from there on.

    A cumulative acknowledgement of the index before has this form, and so has a seek to the index.
    """
    return to_words(full_bits(batch_size) >> batch_index << batch_index)
