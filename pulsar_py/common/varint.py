"""Encodes protobuf's variable-length numbers, for messages written without protobuf (pure)."""

from __future__ import annotations

from typing import Final

_MORE: Final = 0x80
"""Set in each byte but the last; the other bits are seven of the number, the lowest first."""


def varint(number: int) -> bytes:
    """The encoded bytes of `number`, which must not be negative."""
    encoded = bytearray()
    while number >= _MORE:
        encoded.append(number & (_MORE - 1) | _MORE)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
