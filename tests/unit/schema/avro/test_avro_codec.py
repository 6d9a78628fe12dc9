from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema.avro.avro_codec import AvroReader, AvroWriter, reader_of

NODE = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}

OTHER_NODE = {
    "type": "record",
    "name": "Other",
    "fields": [{"name": "next", "type": ["null", "Other"]}],
}


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [*fields], **more}


A_INT = {"name": "a", "type": "int"}
B_TEXT = {"name": "b", "type": "string", "default": "none"}


def test_what_is_written_is_read() -> None:
    definition = record("R", A_INT, B_TEXT)

    data = AvroWriter(definition).write({"a": -1, "b": "ä"})

    assert data == b"\x01\x04\xc3\xa4"
    assert AvroReader(definition).read(data) == {"a": -1, "b": "ä"}


def test_fields_come_and_go() -> None:
    older, newer = record("R", A_INT), record("R", B_TEXT)

    assert AvroReader(older, newer).read(b"\x02") == {"b": "none"}
    assert AvroReader(newer, older | {"fields": []}).read(b"\x02x") == {}


def test_numbers_are_promoted() -> None:
    wider = record("R", {"name": "a", "type": "double"})

    assert AvroReader(record("R", A_INT), wider).read(b"\x02") == {"a": 1.0}


def test_outermost_records_may_have_other_names() -> None:
    java = record("Other", A_INT, namespace="com.example.Outer$")

    assert AvroReader(java, record("R", A_INT)).read(b"\x02") == {"a": 1}


def test_named_types_of_unions_come_with_their_name() -> None:
    union = ["null", record("R", A_INT, namespace="n"), "string"]
    reader = AvroReader(union)

    assert reader.read(b"\x02\x02") == ("n.R", {"a": 1})
    assert reader.read(b"\x04\x02x") == "x"


def test_a_required_field_without_default_can_not_be_made_up() -> None:
    reader = AvroReader(record("R"), record("R", A_INT))

    with pytest.raises(SchemaSerializationError):
        reader.read(b"")


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\x80", b"\x02\x04\xff\xff", b"\x02\x01"])
def test_bytes_that_do_not_fit_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaSerializationError, match=f"{len(data)} bytes do not fit"):
        AvroReader(record("R", A_INT, B_TEXT)).read(data)


def test_an_array_may_not_claim_more_than_its_bytes() -> None:
    bomb = b"\x80\x80\x80\x80\x80\x80\x01"

    with pytest.raises(SchemaSerializationError):
        AvroReader({"type": "array", "items": "int"}).read(bomb)
    with pytest.raises(InvalidConfigurationError, match="no bytes"):
        AvroReader({"type": "array", "items": "null"})


def test_a_record_within_itself_ends_in_an_error_and_not_with_the_process() -> None:
    with pytest.raises(SchemaSerializationError):
        AvroReader(NODE).read(b"\x02" * 100_000 + b"\x00")
    with pytest.raises(SchemaSerializationError):
        AvroReader(NODE, OTHER_NODE).read(b"\x02" * 100_000 + b"\x00")


def test_a_record_within_itself_is_read_to_a_sensible_depth() -> None:
    value = AvroReader(NODE).read(b"\x02" * 50 + b"\x00")

    for _ in range(50):
        _, value = value["next"]
    assert value == {"next": None}


def test_fixed_bytes_stay_bytes_whatever_their_logical_type() -> None:
    definition = {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "precision": 4}

    assert AvroReader(definition).read(AvroWriter(definition).write(b"\x01\x02")) == b"\x01\x02"


def test_values_that_fastavro_refuses_are_refused() -> None:
    with pytest.raises(SchemaSerializationError, match="does not fit"):
        AvroWriter("string").write(5)


@pytest.mark.parametrize("definition", ["unknown", {"type": "recrd"}, 5])
def test_what_is_no_definition_is_refused(definition: Any) -> None:
    with pytest.raises(InvalidConfigurationError):
        AvroWriter(definition)
    with pytest.raises(InvalidConfigurationError):
        AvroReader(definition)


@pytest.mark.parametrize("data", [b"", b"{", b'"unknown"', b'{"type":"array","items":"null"}'])
def test_a_writer_s_definition_that_makes_no_sense_is_a_matter_of_its_messages(
    data: bytes,
) -> None:
    with pytest.raises(SchemaSerializationError, match="writer's schema"):
        reader_of(data, "int")


PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}


def test_decimals_have_all_digits_that_were_written() -> None:
    payload = AvroWriter(record("R", {"name": "f", "type": "bytes"})).write(
        {"f": (12345678901).to_bytes(5, "big")}
    )
    reader = AvroReader(record("R", {"name": "f", "type": PRICE}))
    assert reader.read(payload) == {"f": Decimal("123456789.01")}
    wider = record("R", {"name": "f", "type": {**PRICE, "scale": 4}})
    both = AvroReader(record("R", {"name": "f", "type": PRICE}), wider)
    assert both.read(payload) == {"f": Decimal("123456789.01")}


def test_a_decimal_of_a_megabyte_is_refused_at_once() -> None:
    definition = record("R", {"name": "f", "type": "bytes"})
    payload = AvroWriter(definition).write({"f": b"\1" * (1 << 20)})
    with pytest.raises(SchemaSerializationError, match="a decimal of 1048576 bytes"):
        AvroReader(record("R", {"name": "f", "type": PRICE})).read(payload)


@pytest.mark.parametrize("more", [{"precision": 0}, {"precision": "6"}, {"scale": 7}])
def test_decimals_that_are_none_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigurationError):
        AvroReader(record("R", {"name": "f", "type": {**PRICE, **more}}))


def test_errors_do_not_repeat_all_of_a_value() -> None:
    kind = {"type": "enum", "name": "E", "symbols": ["A"]}
    with pytest.raises(SchemaSerializationError) as caught:
        AvroWriter(["null", kind]).write("B" * 10_000)
    assert len(str(caught.value)) < 400
