"""Decodes flat AVRO records into lists of columns, and encodes them (pure).

fastavro makes a dict of each record, of which columns then have to be made: 2.9 µs for five fields,
and 5.6 µs to write them. A function generated for one definition, which reads bytes where they
stand and appends to a list for each column, takes 1.2 µs, and one that writes 1.9 µs. They are
generated from text, as `dataclasses` does it. Only numbers of the definition get into that text, no
names and no symbols, so a hostile schema can't inject code.

A record is flat if its fields are numbers, text, bytes, fixed values or enumerations, or a union of
one of these with null. `flat_decoder` and `flat_encoder` return None for other records;
`flat_encoder` also for fixed values and enumerations.

Source: the Avro 1.11 specification, binary encoding; benchmarks.micro_spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any, Final, TypeAlias

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro.avro_nodes import AvroNode

__all__ = ["FlatDecoder", "FlatEncoder", "flat_decoder", "flat_encoder"]

Payloads: TypeAlias = Sequence[bytes | None]

MAX_FIELDS: Final = 500
_MAX_SHIFT: Final = 63
_UNION_OF_TWO: Final = 2

_NUMBER: Final = ("b = d[p]; p += 1", "if b > 127: b, p = more(d, p, b)")
_SIGNED: Final = "(b >> 1) ^ -(b & 1)"
_BLOB: Final = (*_NUMBER, "q = p + (b >> 1)", "if b & 1 or q > n: raise ends(p, q, n)")
_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "boolean": ("a{i}(d[p] == 1); p += 1",),
    "int": (*_NUMBER, f"a{{i}}({_SIGNED})"),
    "long": (*_NUMBER, f"a{{i}}({_SIGNED})"),
    "float": ("a{i}(f4(d, p)[0]); p += 4",),
    "double": ("a{i}(f8(d, p)[0]); p += 8",),
    "bytes": (*_BLOB, "a{i}(d[p:q]); p = q"),
    # UTF-8 is checked when the column is made.
    "string": (*_BLOB, "a{i}(d[p:q]); p = q"),
    "fixed": ("q = p + {size}", "if q > n: raise ends(p, q, n)", "a{i}(d[p:q]); p = q"),
    "enum": (*_NUMBER, "if b & 1: raise ends(p, -1, n)", "a{i}(symbols[{i}][b >> 1])"),
}
"""Avro type -> lines of code that read a value at `p` of the payload `d`, which has `n` bytes, and
append it to column `i`."""


class FlatDecoder:
    """Decodes the records of one definition."""

    def __init__(self, lines: Sequence[str], symbols: Sequence[Sequence[str]]) -> None:
        """Compile `lines`, which read one record, with a column for each of `symbols`."""
        self._count = len(symbols)
        self._symbols = symbols
        heads = [f"a{index} = columns[{index}].append" for index in range(self._count)]
        nulls = [f"a{index}(None)" for index in range(self._count)]
        text = "\n".join(
            [
                "def decode(payloads, columns, symbols, more, ends, f4, f8):",
                *(f" {line}" for line in heads),
                " for d in payloads:",
                "  if d is None:",
                *(f"   {line}" for line in nulls),
                "   continue",
                "  n = len(d); p = 0",
                *(f"  {line}" for line in lines),
            ]
        )
        made: dict[str, Callable[..., None]] = {}
        exec(text, {}, made)  # noqa: S102 - no text of a definition is in it, see the module
        self._decode = made["decode"]

    def decode(self, payloads: Payloads) -> Sequence[list[Any]]:  # Any: by column
        """The values of each field; text comes as bytes, None is null in all columns.

        Raises:
            SchemaSerializationError: A payload is not a record of this definition.
        """
        # Hot path: AVRO in benchmarks.micro_spark.
        columns: list[list[Any]] = [[] for _ in range(self._count)]
        try:
            self._decode(payloads, columns, self._symbols, _more, _ends, _FLOAT, _DOUBLE)
        except (IndexError, ValueError, struct_error) as error:
            raise SchemaSerializationError(f"bytes do not fit their schema: {error}") from error
        return columns


_FLOAT: Final = Struct("<f").unpack_from
_DOUBLE: Final = Struct("<d").unpack_from


def _more(data: bytes, place: int, value: int) -> tuple[int, int]:
    """The value of a number of several bytes, and the position behind it."""
    value &= 127
    shift = 7
    while shift <= _MAX_SHIFT:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte <= 127:  # noqa: PLR2004 - the last of them
            return value, place
        shift += 7
    raise ValueError(f"a number has more than 64 bits at byte {place}")


def _ends(place: int, end: int, size_bytes: int) -> ValueError:
    return ValueError(f"a value goes from byte {place} to {end}, of {size_bytes} bytes")


def flat_decoder(node: AvroNode) -> FlatDecoder | None:
    """The decoder for records of a definition, logical types as numbers and bytes.

    None where the definition is not a flat record.
    """
    if node.kind != "record" or not 0 < len(node.children) <= MAX_FIELDS:
        return None
    lines: list[str] = []
    symbols: list[Sequence[str]] = []
    for index, child in enumerate(node.children):
        kind, null_index = _described(child)
        if kind is None or kind.kind not in _KINDS:
            return None
        lines += _read_lines(index, kind, null_index)
        symbols.append(tuple(kind.text["symbols"]) if kind.kind == "enum" else ())
    return FlatDecoder(lines, symbols)


def _read_lines(index: int, kind: AvroNode, null_index: int | None) -> Sequence[str]:
    """The code that reads a field."""
    size = int(kind.text["size"]) if kind.kind == "fixed" else 0
    lines = [line.format(i=index, size=size) for line in _KINDS[kind.kind]]
    if null_index is None:
        return lines
    return [
        "u = d[p]; p += 1",
        f"if u == {2 * null_index}: a{index}(None)",
        f"elif u == {2 - 2 * null_index}:",
        *(f" {line}" for line in lines),
        "else: raise ends(p, -1, n)",
    ]


def _described(node: AvroNode) -> tuple[AvroNode | None, int | None]:
    """The type of a field beside null, and where null stands in a union with it.

    The type is None for any other union.
    """
    if node.kind != "union":
        return node, None
    if len(node.children) != _UNION_OF_TWO or len(node.others) != 1:
        return None, None
    null_index = [each.kind for each in node.children].index("null")
    return node.children[1 - null_index], null_index


# --- writing -------------------------------------------------------------------------------------

_REST_OF_NUMBER: Final = ("while z > 127: o(z & 127 | 128); z >>= 7", "o(z)")
_WRITTEN_NUMBER: Final = ("z = v{i} * 2 if v{i} >= 0 else -v{i} * 2 - 1", *_REST_OF_NUMBER)
_WRITTEN_BLOB: Final = ("z = len(v{i}) * 2", *_REST_OF_NUMBER, "r += v{i}")
_WRITTEN: Final[Mapping[str, Sequence[str]]] = {
    "boolean": ("o(1 if v{i} else 0)",),
    "int": _WRITTEN_NUMBER,
    "long": _WRITTEN_NUMBER,
    "float": ("r += f4(v{i})",),
    "double": ("r += f8(v{i})",),
    "bytes": _WRITTEN_BLOB,
    "string": _WRITTEN_BLOB,
}
"""Avro type -> lines of code that append the value `v{i}` to the record `r`; `o` appends a byte."""


class FlatEncoder:
    """Encodes the records of one definition."""

    def __init__(self, lines: Sequence[str], count: int) -> None:
        """Compile `lines`, which write one record of `count` columns."""
        values = "".join(f"v{index}, " for index in range(count))
        text = "\n".join(
            [
                "def encode(columns, append, f4, f8):",
                f" for {values}in zip(*columns, strict=True):",
                "  r = bytearray(); o = r.append",
                *(f"  {line}" for line in lines),
                "  append(bytes(r))",
            ]
        )
        made: dict[str, Callable[..., None]] = {}
        exec(text, {}, made)  # noqa: S102 - no text of a definition is in it, see the module
        self._encode = made["encode"]

    def encode(self, columns: Sequence[Sequence[Any]]) -> list[bytes]:
        """The payload of each row. Text comes as bytes; null only where the field takes it.

        Raises:
            SchemaSerializationError: A value does not fit.
        """
        # Hot path: writing AVRO in benchmarks.micro_spark.
        payloads: list[bytes] = []
        try:
            self._encode(columns, payloads.append, _PACK_FLOAT, _PACK_DOUBLE)
        except (TypeError, ValueError, OverflowError, struct_error) as error:
            raise SchemaSerializationError(f"a value does not fit its schema: {error}") from error
        return payloads


_PACK_FLOAT: Final = Struct("<f").pack
_PACK_DOUBLE: Final = Struct("<d").pack


def flat_encoder(node: AvroNode) -> FlatEncoder | None:
    """The encoder for records of a definition, logical types as numbers and bytes.

    None where the definition is not a flat record, or has fixed values or enumerations.
    """
    if node.kind != "record" or not 0 < len(node.children) <= MAX_FIELDS:
        return None
    lines: list[str] = []
    for index, child in enumerate(node.children):
        kind, null_index = _described(child)
        if kind is None or kind.kind not in _WRITTEN:
            return None
        write = [line.format(i=index) for line in _WRITTEN[kind.kind]]
        if null_index is None:
            lines += write
            continue
        lines += [
            f"if v{index} is None: o({2 * null_index})",
            "else:",
            f" o({2 - 2 * null_index})",
            *(f" {line}" for line in write),
        ]
    return FlatEncoder(lines, len(node.children))
