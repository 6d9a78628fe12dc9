"""Schemas over REST and on the wire; the key-value one was recorded from Pulsar 4.2.4."""

from __future__ import annotations

import json

import pytest

from pulsar_py.client.brokers.rest_schemas import schema_from_rest, schema_to_rest, version_bytes
from pulsar_py.common.errors import InvalidMessageError, LookupFailedError
from pulsar_py.proto.PulsarApi_pb2 import Schema

AVRO = '{"type":"record","name":"A","fields":[]}'


def test_a_definition_is_the_text_s_bytes() -> None:
    value = {"version": 3, "type": "AVRO", "data": AVRO, "properties": {"a": "b"}}

    schema, version = schema_from_rest("t", value)

    assert (schema.name, schema.type, schema.schema_data) == ("t", Schema.Avro, AVRO.encode())
    assert {each.key: each.value for each in schema.properties} == {"a": "b"}
    assert version == bytes(7) + b"\3"
    assert schema_to_rest(schema) == {"type": "AVRO", "schema": AVRO, "properties": {"a": "b"}}


def test_a_primitive_has_no_definition() -> None:
    schema, _ = schema_from_rest("t", {"version": 0, "type": "INT32", "data": None})

    assert (schema.type, schema.schema_data) == (Schema.Int32, b"")


def test_key_and_value_are_two_definitions() -> None:
    data = json.dumps({"key": json.loads(AVRO), "value": ""})

    schema, _ = schema_from_rest("t", {"version": 0, "type": "KEY_VALUE", "data": data})

    assert schema.schema_data == len(AVRO).to_bytes(4, "big") + AVRO.encode() + bytes(4)
    rest = schema_to_rest(schema)
    assert json.loads(rest["schema"]) == {"key": json.loads(AVRO), "value": ""}
    assert schema_from_rest("t", {"version": 0, **rest, "data": rest["schema"]})[0] == schema


def test_every_type_goes_both_ways() -> None:
    for number in set(Schema.Type.values()):
        schema = Schema(name="t", type=Schema.Type.ValueType(number), schema_data=b"")
        if number == Schema.KeyValue:
            schema.schema_data = bytes(8)
        rest = schema_to_rest(schema)
        if rest["type"] != "BYTES":
            again, _ = schema_from_rest(
                "t", {"version": 0, "type": rest["type"], "data": rest["schema"]}
            )
            assert again == schema


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"version": 0, "type": "COLOUR"},
        {"version": 0, "type": ["AVRO"]},
        {"version": 0, "type": "AVRO", "data": 7},
        {"version": 0, "type": "AVRO", "properties": []},
        {"version": -1, "type": "AVRO"},
        {"version": "1", "type": "AVRO"},
        {"version": 0, "type": "KEY_VALUE", "data": "{}"},
        {"version": 0, "type": "KEY_VALUE", "data": "["},
    ],
)
def test_what_makes_no_sense_names_the_topic(value: dict[str, object]) -> None:
    if value.get("properties") == []:
        value["properties"] = [1]
    with pytest.raises(LookupFailedError, match="schema of t"):
        schema_from_rest("t", value)


@pytest.mark.parametrize("data", [b"", bytes(4), b"\0\0\0\5abc", bytes(9)])
def test_a_torn_pair_is_noticed(data: bytes) -> None:
    with pytest.raises(InvalidMessageError, match="key-value schema"):
        schema_to_rest(Schema(name="t", type=Schema.KeyValue, schema_data=data))


def test_versions_are_numbers() -> None:
    with pytest.raises(LookupFailedError, match="schema of t: expected a version number, got None"):
        version_bytes("t", None)
