"""Numbers of one unit, read as those of another."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.schema.avro.avro_codec import AvroWriter
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.reading_definition import definition_for_reading
from pulsar_py.spark.values.payload_codecs import codec_of


def decimal(precision: int, scale: int, kind: str = "bytes") -> dict[str, Any]:
    of_fixed = {"name": "F", "size": 8} if kind == "fixed" else {}
    text = {"type": kind, "logicalType": "decimal", "precision": precision, "scale": scale}
    return text | of_fixed


def time(name: str, kind: str = "long") -> dict[str, Any]:
    return {"type": kind, "logicalType": name}


def record(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


def read(writer: Any, reader: Any, plain: Any) -> Any:
    """A number, or bytes, that was written; as Arrow's number where it is a time."""
    of_numbers, _ = definition_for_reading(avro_node(record(writer)))
    payload = AvroWriter(of_numbers).write({"f": plain})
    infos = [
        SchemaInfo(SchemaType.AVRO, "", json.dumps(record(each)).encode())
        for each in (writer, reader)
    ]
    column = codec_of(infos[1]).decode([payload], infos[0]).field("f")
    is_time = str(column.type).startswith("timestamp")
    return (column.cast("int64") if is_time else column).to_pylist()[0]


@pytest.mark.parametrize(
    ("writer", "reader", "plain", "expected"),
    [
        (decimal(6, 2), decimal(8, 4), b"\x7b", Decimal("1.2300")),
        (decimal(6, 2), decimal(8, 0), b"\xff\x38", Decimal(-2)),
        (decimal(6, 2, "fixed"), decimal(6, 3, "fixed"), bytes(7) + b"\x7b", Decimal("1.230")),
        (["null", decimal(6, 2)], ["null", decimal(8, 4)], b"\x7b", Decimal("1.2300")),
        (decimal(6, 2), "bytes", b"\x7b", b"\x7b"),
        ("bytes", decimal(6, 4), b"\x7b", Decimal("0.0123")),
    ],
)
def test_a_decimal_is_the_same_with_another_scale(
    writer: Any, reader: Any, plain: bytes, expected: Any
) -> None:
    assert read(writer, reader, plain) == expected


@pytest.mark.parametrize(
    ("reader", "plain"), [(decimal(6, 1), b"\x7b"), (decimal(4, 4), b"\x03\xe8")]
)
def test_a_decimal_that_has_no_room_is_an_error(reader: Any, plain: bytes) -> None:
    with pytest.raises(SchemaSerializationError, match=r"^f: .*decimal"):
        read(decimal(6, 2), reader, plain)


@pytest.mark.parametrize(
    ("writer", "reader", "plain", "expected_micros"),
    [
        (time("timestamp-millis"), time("timestamp-micros"), -1500, -1_500_000),
        (time("timestamp-micros"), time("timestamp-millis"), -1, -1000),
        (time("timestamp-nanos"), time("timestamp-micros"), -1, -1),
        (time("local-timestamp-millis"), time("local-timestamp-micros"), 2, 2000),
        (["null", time("timestamp-millis")], ["null", time("timestamp-micros")], 2, 2000),
        (time("time-millis", "int"), time("time-micros"), 2, 2000),
        (time("timestamp-millis"), time("timestamp-millis"), 2, 2000),
        (time("timestamp-millis"), "long", 2, 2),
        ("long", time("timestamp-millis"), 2, 2000),
    ],
)
def test_a_time_is_the_same_in_another_unit(
    writer: Any, reader: Any, plain: int, expected_micros: int
) -> None:
    assert read(writer, reader, plain) == expected_micros
