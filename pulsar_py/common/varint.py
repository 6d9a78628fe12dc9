"""Protobuf's variable-length numbers, for messages written and read without protobuf (pure)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MORE: Final = 0x80
"""Set in each byte but the last; the other bits are seven of the number, the lowest first."""

_HEADS: Final = tuple(bytes((_MORE | low,)) for low in range(_MORE))
"""The first bytes of numbers that have more than one, by their lowest seven bits."""


def varint(number: int) -> bytes:
    """The encoded bytes of `number`, which must not be negative."""
    encoded = bytearray()
    while number >= _MORE:
        encoded.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@lru_cache(64)
def _later_bytes(number: int) -> bytes:
    """All but the first byte of the numbers that are 128 times this one and up to 127 more."""
    return varint(number)


def rising_varints(one: int, other: int) -> tuple[bytes, bytes]:
    """`varint` of two numbers that rise: most differ in the first byte alone from those before."""
    # Hot path: latency in `make bench-client`.
    if one < _MORE or other < _MORE:
        return varint(one), varint(other)
    low = _MORE - 1
    return (
        _HEADS[one & low] + _later_bytes(one >> 7),
        _HEADS[other & low] + _later_bytes(other >> 7),
    )


def varints_in_row(first: int, count: int) -> list[bytes]:
    """The encoded bytes of `first` and the numbers after it, `count` in all."""
    # Hot path: produce unbatched in `make bench-client`.
    encoded = []
    number, end = first, first + count
    while number < end:
        if number < _MORE:
            encoded.append(varint(number))
            number += 1
            continue
        # Up to the next multiple of 128 they differ in the first byte alone.
        rest = varint(number >> 7)
        low = number & (_MORE - 1)
        high = min(_MORE, low + end - number)
        encoded += [head + rest for head in _HEADS[low:high]]
        number += high - low
    return encoded


def varint_at(data: bytes, place: int, end: int) -> tuple[int, int]:
    """The number that begins at `place`, and the offset after it; -1 if none ends by `end`."""
    # Hot path: benchmarks/micro_acks.
    number = shift = 0
    for byte in data[place:end]:
        place += 1
        if byte < _MORE:
            return number | byte << shift, place
        number |= (byte & (_MORE - 1)) << shift
        shift += 7
    return -1, place


def after_varint(data: bytes, place: int) -> int:
    """The offset after the number whose bytes begin at `place`.

    Raises:
        IndexError: It does not end in `data`.
    """
    while data[place] >= _MORE:
        place += 1
    return place + 1
