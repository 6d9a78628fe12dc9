from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from pulsar_py.common.errors import InvalidConfigurationError, SchemaSerializationError
from pulsar_py.schema import AvroSchema, GenericRecord, SchemaInfo, SchemaType


class Colour(Enum):
    RED = 1
    GREEN = 2


@dataclass
class Inner:
    text: str


@dataclass
class Example:
    number: int
    colour: Colour
    inner: Inner | None = None
    either: int | str | Inner | None = None


@dataclass
class LaterExample:
    number: float
    colour: Colour
    added: str = "none"
    inner: Inner | None = None


VALUES = [
    Example(1, Colour.RED),
    Example(-(2**63), Colour.GREEN, Inner("ä"), Inner("b")),
    Example(0, Colour.RED, either=5),
    Example(0, Colour.RED, either="text"),
]


@pytest.mark.parametrize("value", VALUES)
def test_values_survive(value: Example) -> None:
    schema = AvroSchema(Example)

    assert schema.decode(schema.encode(value)) == value


def test_the_definition_is_avro_s() -> None:
    info = AvroSchema(Inner, properties={"k": "v"}).schema_info()

    assert info.type is SchemaType.AVRO
    assert dict(info.properties) == {"k": "v"}
    assert json.loads(info.data) == {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "text", "type": "string"}],
    }


def test_a_version_is_read_as_it_was_written() -> None:
    older = AvroSchema(Inner)
    newer = AvroSchema(
        schema_definition={
            "type": "record",
            "name": "Inner",
            "fields": [
                {"name": "added", "type": "int", "default": 7},
                {"name": "text", "type": "string"},
            ],
        }
    )

    read = newer.decoder_for(older.schema_info())
    read_back = older.decoder_for(newer.schema_info())

    assert read(older.encode(Inner("x")), None) == {"added": 7, "text": "x"}
    assert read_back(newer.encode({"added": 1, "text": "y"}), None) == Inner("y")
    assert read(None, None) is None


def test_a_class_that_grew_reads_what_the_smaller_one_wrote() -> None:
    older, newer = AvroSchema(Example), AvroSchema(LaterExample)
    data = older.encode(Example(3, Colour.GREEN, Inner("x"), 5))

    value = newer.decode_with(older.schema_info(), data)

    assert value == LaterExample(3.0, Colour.GREEN, "none", Inner("x"))


def test_its_own_version_and_none_at_all_are_read_alike() -> None:
    schema = AvroSchema(Inner)
    data = schema.encode(Inner("x"))

    assert schema.decode_with(None, data) == Inner("x")
    assert schema.decode_with(schema.schema_info(), data) == Inner("x")
    assert schema.reads_versions


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.STRING, "x", b""),
        SchemaInfo(SchemaType.AVRO, "x", b"{"),
        SchemaInfo(SchemaType.AVRO, "x", b'{"type":"array","items":"null"}'),
    ],
)
def test_a_version_that_makes_no_sense_is_refused(info: SchemaInfo) -> None:
    with pytest.raises(SchemaSerializationError):
        AvroSchema(Inner).decoder_for(info)


DEFINITION = """{"type": "record", "name": "R", "fields": [
    {"name": "a", "type": "int"}, {"name": "b", "type": ["null", "bytes"], "default": null}]}"""


@pytest.mark.parametrize("definition", [DEFINITION, DEFINITION.encode(), json.loads(DEFINITION)])
def test_dicts_are_coded_by_a_definition(definition: Any) -> None:
    schema = AvroSchema(schema_definition=definition)

    assert schema.encode({"a": 1}) == b"\x02\x00"
    assert schema.decode(b"\x02\x02\x02x") == {"a": 1, "b": b"x"}


def test_a_text_goes_to_the_broker_as_it_is() -> None:
    assert AvroSchema(schema_definition=DEFINITION).schema_info().data == DEFINITION.encode()


def test_records_of_a_definition_may_be_something_else() -> None:
    schema = AvroSchema(schema_definition=DEFINITION, records_as=GenericRecord)

    assert isinstance(schema.decode(b"\x02\x00"), GenericRecord)


def test_definitions_need_not_be_records() -> None:
    schema = AvroSchema(schema_definition='"long"')

    assert schema.decode(schema.encode(-5)) == -5


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Example("1", Colour.RED), "Example: number: takes integers"),
        (Example(2**63, Colour.RED), "Example: number"),
        (Example(1, "BLUE"), "Example: colour: takes one of RED, GREEN"),
        (Example(1, Colour.RED, Inner(5)), "Example: inner.text: takes text"),
        (Example(1, Colour.RED, either=1.5), "Example: either: takes null or long"),
        (None, "Example: takes Example"),
        ({"number": 1}, "Example: takes Example"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(SchemaSerializationError, match=f"^{where}"):
        AvroSchema(Example).encode(value)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02\x08\x00\x00"])
def test_bytes_that_do_not_fit_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaSerializationError):
        AvroSchema(Example).decode(data)


@dataclass
class Chain:
    next: Chain | None = None


def test_endless_values_are_refused() -> None:
    ring = Chain()
    ring.next = ring

    with pytest.raises(SchemaSerializationError):
        AvroSchema(Chain).encode(ring)
    with pytest.raises(SchemaSerializationError):
        AvroSchema(Chain).decode(b"\x02" * 50_000 + b"\x00")


def test_either_a_class_or_a_definition() -> None:
    with pytest.raises(InvalidConfigurationError):
        AvroSchema()
    with pytest.raises(InvalidConfigurationError):
        AvroSchema(Example, DEFINITION)


def test_what_is_no_class_of_values_is_told_what_is_accepted() -> None:
    given: Any = {"a": 1}
    with pytest.raises(InvalidConfigurationError, match=r"dataclass.*Record.*schema_definition"):
        AvroSchema(given)


def test_bytes_that_do_not_fit_name_the_record() -> None:
    definition = {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(SchemaSerializationError, match="Order: 0 bytes do not fit"):
        AvroSchema(schema_definition=definition).decode(b"")
