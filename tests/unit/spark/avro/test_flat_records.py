"""Flat AVRO records: columns have the values that fastavro reads, payloads its bytes."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema.avro.avro_nodes import avro_node
from pulsar_py.spark.avro.flat_records import MAX_FIELDS, flat_decoder, flat_encoder

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
FIXED = {"type": "fixed", "name": "F", "size": 3}
KINDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ({"type": "long"}, st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=200)),
    ({"type": "string", "avro.java.string": "String"}, st.text(max_size=100)),
    (ENUM, st.sampled_from(ENUM["symbols"])),
    (FIXED, st.binary(min_size=3, max_size=3)),
    (["null", "long"], st.none() | st.integers(-100, 100)),
    (["string", "null"], st.none() | st.text(max_size=10)),
    (["null", {**ENUM, "name": "E2"}], st.none() | st.sampled_from(ENUM["symbols"])),
    (["null", {**FIXED, "name": "F2"}], st.none() | st.binary(min_size=3, max_size=3)),
]
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(KINDS)],
}
PARSED = fastavro.parse_schema(RECORD)
rows_of_values = st.tuples(*(values for _, values in KINDS))


def written(row: tuple[Any, ...]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, PARSED, {f"f{i}": value for i, value in enumerate(row)})
    return buffer.getvalue()


def as_read(value: Any) -> Any:
    """Text comes as bytes; symbols do not."""
    is_symbol = value in ENUM["symbols"]
    return value.encode() if isinstance(value, str) and not is_symbol else value


def decoder() -> Any:
    found = flat_decoder(avro_node(RECORD))
    assert found is not None
    return found


@given(
    st.lists(
        st.none()
        | rows_of_values.filter(lambda row: row[7] not in "ABC" and row[11] not in ("A", "B", "C")),
        max_size=5,
    )
)
def test_what_was_written_is_read(rows: list[tuple[Any, ...] | None]) -> None:
    columns = decoder().decode([None if row is None else written(row) for row in rows])
    expected = [
        [None if row is None else as_read(row[i]) for row in rows] for i in range(len(KINDS))
    ]
    assert columns == expected


@given(rows_of_values, st.data())
def test_what_is_cut_is_an_error(row: tuple[Any, ...], data: st.DataObject) -> None:
    payload = written(row)
    size = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(SchemaSerializationError):
        decoder().decode([payload[:size]])


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        columns = decoder().decode([payload])
    except SchemaSerializationError:
        return
    assert [len(column) for column in columns] == [1] * len(KINDS)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("long", b"\xff" * 10),
        ("bytes", b"\x01"),
        ("bytes", b"\x04a"),
        (["null", "int"], b"\x04"),
        (ENUM, b"\x01"),
        (ENUM, b"\x06"),
    ],
)
def test_numbers_that_nothing_has_are_refused(kind: Any, payload: bytes) -> None:
    found = flat_decoder(avro_node({**RECORD, "fields": [{"name": "a", "type": kind}]}))
    assert found is not None
    with pytest.raises(SchemaSerializationError):
        found.decode([payload])


def test_names_of_a_definition_are_only_names() -> None:
    name = "a'); raise SystemExit #\n{i}"
    kind = {"type": "enum", "name": name, "symbols": [name, "{size}"]}
    found = flat_decoder(avro_node({**RECORD, "fields": [{"name": name, "type": kind}]}))
    assert found is not None
    assert found.decode([b"\x00", b"\x02"]) == [[name, "{size}"]]


@pytest.mark.parametrize(
    "kind",
    [
        "null",
        ["int", "string"],
        ["null", "int", "string"],
        ["null"],
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        ["null", {"type": "record", "name": "I", "fields": []}],
    ],
)
def test_what_is_not_flat_is_left_to_others(kind: Any) -> None:
    assert flat_decoder(avro_node({**RECORD, "fields": [{"name": "a", "type": kind}]})) is None


def test_a_type_that_is_used_again_is_read_as_where_it_is_defined() -> None:
    kinds = [ENUM, ["null", "E"], {"type": ["int", "null"]}]
    fields = [{"name": f"f{index}", "type": kind} for index, kind in enumerate(kinds)]
    found = flat_decoder(avro_node({**RECORD, "fields": fields}))
    assert found is not None
    assert found.decode([b"\x02\x02\x04\x00\x06"]) == [["B"], ["C"], [3]]


def test_what_is_no_record_or_very_wide_is_left_to_others() -> None:
    assert flat_decoder(avro_node("string")) is None
    assert flat_decoder(avro_node({"type": "array", "items": "int"})) is None
    fields = [{"name": f"f{index}", "type": "int"} for index in range(MAX_FIELDS + 1)]
    assert flat_decoder(avro_node({**RECORD, "fields": fields})) is None


SIMPLE = [
    (kind, values) for kind, values in KINDS if "enum" not in str(kind) and "fixed" not in str(kind)
]
SIMPLE_RECORD = {
    "type": "record",
    "name": "S",
    "fields": [{"name": f"f{index}", "type": kind} for index, (kind, _) in enumerate(SIMPLE)],
}


@given(st.lists(st.tuples(*(values for _, values in SIMPLE)), max_size=5))
def test_what_is_written_is_what_fastavro_writes(rows: list[tuple[Any, ...]]) -> None:
    parsed = fastavro.parse_schema(SIMPLE_RECORD)
    expected = []
    for row in rows:
        buffer = io.BytesIO()
        record = {f"f{index}": value for index, value in enumerate(row)}
        fastavro.schemaless_writer(buffer, parsed, record)
        expected.append(buffer.getvalue())
    found = flat_encoder(avro_node(SIMPLE_RECORD))
    assert found is not None
    plain = [tuple(v.encode() if isinstance(v, str) else v for v in row) for row in rows]
    columns = list(zip(*plain, strict=True)) or [()] * len(SIMPLE)
    assert found.encode(columns) == expected


def test_values_that_are_not_there_are_refused() -> None:
    for kind in ("long", "string", "double"):
        found = flat_encoder(avro_node({**RECORD, "fields": [{"name": "a", "type": kind}]}))
        assert found is not None
        with pytest.raises(SchemaSerializationError, match="does not fit"):
            found.encode([[None]])


@pytest.mark.parametrize(
    "kind", [ENUM, FIXED, ["int", "string"], {"type": "array", "items": "int"}]
)
def test_what_is_not_flat_is_not_written(kind: Any) -> None:
    assert flat_encoder(avro_node({**RECORD, "fields": [{"name": "a", "type": kind}]})) is None
    assert flat_encoder(avro_node("string")) is None
    assert flat_encoder(avro_node({**RECORD, "fields": []})) is None
