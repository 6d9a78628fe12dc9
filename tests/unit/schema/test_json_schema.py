from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.schema import AvroSchema, JsonSchema, SchemaInfo, SchemaType


class Colour(Enum):
    RED = 1
    GREEN = 2


@dataclass
class Inner:
    text: str


@dataclass
class Example:
    number: int
    data: bytes = b""
    colour: Colour | None = None
    when: datetime | None = None
    day: date | None = None
    price: Decimal | None = None
    unit: UUID | None = None
    ratio: float = 0.0
    inners: list[Inner] = field(default_factory=list)


FULL = Example(
    1,
    b"\x01\xff",
    Colour.GREEN,
    datetime(2021, 1, 1, 0, 0, 0, 123456, UTC),
    date(2021, 1, 1),
    Decimal("1.25"),
    UUID(int=1),
    0.5,
    [Inner("ä")],
)


@pytest.mark.parametrize("value", [Example(1), FULL])
def test_values_survive(value: Example) -> None:
    schema = JsonSchema(Example)

    assert schema.decode(schema.encode(value)) == value


def test_the_text_is_what_jackson_reads() -> None:
    text = JsonSchema(Example).encode(FULL)

    assert json.loads(text) == {
        "number": 1,
        "data": "Af8=",
        "colour": "GREEN",
        "when": "2021-01-01T00:00:00.123456Z",
        "day": "2021-01-01",
        "price": "1.25",
        "unit": "00000000-0000-0000-0000-000000000001",
        "ratio": 0.5,
        "inners": [{"text": "ä"}],
    }
    assert "ä".encode() in text


JAVA = (
    '{"number":1,"data":"Af8=","colour":"GREEN","when":1609459200.123456000,"day":[2021,1,1],'
    '"price":1.25,"unit":"00000000-0000-0000-0000-000000000001","ratio":0.5,'
    '"inners":[{"text":"ä"}]}'
)


def test_what_jackson_writes_is_read() -> None:
    assert JsonSchema(Example).decode(JAVA.encode()) == FULL


def test_what_the_official_client_writes_is_read() -> None:
    assert JsonSchema(Example).decode(b'{\n "number": 1,\n "colour": 2\n}').colour is Colour.GREEN


def test_other_versions_need_no_definition() -> None:
    schema = JsonSchema(Inner)

    assert not schema.reads_versions
    assert schema.decode_with(
        SchemaInfo(SchemaType.JSON, "", b"{}"), b'{"text":"a","more":[1]}'
    ) == Inner("a")


def test_the_definition_is_avro_s() -> None:
    info = JsonSchema(Example).schema_info()

    assert info.type is SchemaType.JSON
    assert info.data == AvroSchema(Example).schema_info().data


def test_dicts_are_coded_by_a_definition() -> None:
    schema = JsonSchema(
        schema_definition={
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "a", "type": "bytes"},
                {"name": "b", "type": "int", "default": 5},
            ],
        }
    )

    assert schema.encode({"a": b"\xff"}) == b'{"a":"/w==","b":5}'
    assert schema.decode(b'{"a":"/w=="}') == {"a": b"\xff", "b": 5}


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Example("1"), "Example: number: takes integers"),
        (Example(1, when=datetime(2021, 1, 1)), "Example: when: takes datetimes with"),  # noqa: DTZ001
        (Example(1, inners=[Inner("a"), Inner(5)]), r"Example: inners\[1\]\.text: takes text"),
        (5, "Example: takes Example"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(SchemaSerializationError, match=f"^{where}"):
        JsonSchema(Example).encode(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"5",
        b"[]",
        b"{}",
        b'{"number":"1"}',
        b'{"number":1,"colour":"BLUE"}',
        b'{"number":1,"inners":[{}]}',
        b"\xff",
        b"[" * 100_000,
        b'{"number":' + b"9" * 10_000 + b"}",
    ],
)
def test_bytes_that_do_not_fit_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaSerializationError, match=r"^Example"):
        JsonSchema(Example).decode(data)


def test_text_without_bytes_in_utf_8_is_refused() -> None:
    with pytest.raises(SchemaSerializationError):
        JsonSchema(Inner).encode(Inner("\ud800"))


def within_a_record(default: Any) -> JsonSchema[Any]:
    number = {"name": "x", "type": "long", "default": 3}
    inner = {"type": "record", "name": "I", "fields": [number]}
    field = {"name": "inner", "type": inner, "default": default}
    return JsonSchema(schema_definition={"type": "record", "name": "R", "fields": [field]})


def test_the_default_of_a_record_may_leave_out_what_has_one() -> None:
    schema = within_a_record({})
    assert schema.decode(b"{}") == {"inner": {"x": 3}}
    assert schema.encode({}) == b'{"inner":{"x":3}}'


@pytest.mark.parametrize("default", [5, []])
def test_the_default_of_a_record_that_is_none_is_told(default: Any) -> None:
    with pytest.raises(SchemaSerializationError, match="inner: takes objects"):
        within_a_record(default).decode(b"{}")
