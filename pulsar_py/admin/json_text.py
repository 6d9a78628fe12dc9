"""Encodes values as compact JSON, in pieces that are little work each (pure).

Answers grow with what users made: names, partitions, subscriptions. So a value is encoded in
pieces of at most `MAX_PIECE_UNITS` units, and whoever sends it lets others have a turn between
two. A *unit* is a number, a name, an empty container, or a stretch of `TEXT_UNIT` characters.

What comes of joining the pieces is what `json.dumps` gives for the value without nulls. A single
text longer than that is a piece of its own: what clients store in one is limited where it comes in.
Containers larger than a piece must not be changed between two pieces.

Source: ObjectMapperFactory in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

MAX_PIECE_UNITS: Final = 2_000
"""Most units of a piece; it takes a few milliseconds to encode."""

TEXT_UNIT: Final = 256
"""Characters of text that count as one unit more."""

_dumps: Final = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)


class EncodedJson:
    """A value that is encoded already: of an answer with many parts, only text is kept of each.

    A million small objects that wait for the end of an answer make the collector of cyclic garbage
    look at all of them in one go.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: Iterable[str]) -> None:
        """`pieces` are those that `json_pieces` gives for the value."""
        self.pieces = tuple(pieces)


def without_nulls(value: object) -> object:
    """`value` with every None in a mapping left out, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value]
    return value


def units_of(value: object, limit: int) -> int:
    """Units of a value; it stops counting once it is beyond `limit`."""
    units = 1
    if isinstance(value, str):
        return units + len(value) // TEXT_UNIT
    if isinstance(value, EncodedJson):
        return limit + 1  # always pieces of their own
    if isinstance(value, Mapping):
        for name, item in value.items():
            if units > limit:
                break
            units += len(name) // TEXT_UNIT + units_of(item, limit - units)
    elif isinstance(value, list | tuple):
        for item in value:
            if units > limit:
                break
            units += units_of(item, limit - units)
    return units


def json_pieces(value: object, piece_units: int = MAX_PIECE_UNITS) -> Iterator[str]:
    """The text of `value` without nulls, in pieces of at most so many units."""
    if isinstance(value, EncodedJson):
        yield from value.pieces
        return
    if units_of(value, piece_units) <= piece_units:
        yield _dumps(without_nulls(value))
    elif isinstance(value, Mapping):
        members = ((f"{_dumps(name)}:", item) for name, item in value.items() if item is not None)
        yield from _container("{", "}", members, piece_units)
    elif isinstance(value, list | tuple):
        yield from _container("[", "]", (("", item) for item in value), piece_units)
    else:
        yield _dumps(value)


def _container(
    opening: str, closing: str, members: Iterable[tuple[str, object]], piece_units: int
) -> Iterator[str]:
    """A container too large for one piece: its small members together, large ones in pieces."""
    texts: list[str] = []
    units = 1
    separator = opening
    for label, item in members:
        item_units = units_of(item, piece_units) + len(label) // TEXT_UNIT
        if units + item_units > piece_units and texts:
            yield separator + ",".join(texts)
            separator, units = ",", 1
            texts.clear()
        if item_units < piece_units:
            texts.append(label + _dumps(without_nulls(item)))
            units += item_units
            continue
        yield separator + label
        yield from json_pieces(item, piece_units)
        separator = ","
    if texts:
        yield separator + ",".join(texts)
    elif separator == opening:
        yield opening  # all of its members were nulls
    yield closing
