"""Schemas as the REST API writes and reads them, without a broker."""

from __future__ import annotations

import json

import pytest

from pulsar_py.admin.resources.schema_json import TYPE_NAMES, definition_of, schema_json
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry import SchemaDefinition, StoredSchema

RECORD = '{"type":"record","name":"R","fields":[]}'
KEY_VALUE = '{"key":' + RECORD + ',"value":"text"}'


def stored(definition: SchemaDefinition) -> StoredSchema:
    return StoredSchema(version=3, definition=definition, timestamp_millis=7)


@pytest.mark.parametrize("name", sorted(set(TYPE_NAMES.values()) - {"KEY_VALUE"}))
def test_every_type_is_read_as_it_was_written(name: str) -> None:
    definition = definition_of(name, RECORD, {"a": "b"})
    assert definition is not None
    written = schema_json(stored(definition))
    assert (written["type"], written["data"], written["properties"]) == (name, RECORD, {"a": "b"})


def test_key_and_value_that_are_objects_stand_as_such() -> None:
    definition = definition_of("KEY_VALUE", KEY_VALUE, {})
    assert definition is not None
    assert definition.data.startswith(len(RECORD).to_bytes(4, "big"))
    data = json.loads(schema_json(stored(definition))["data"])
    assert data == {"key": json.loads(RECORD), "value": "text"}


@pytest.mark.parametrize("text", ["", "[]", '{"key":{}}', "[" * 10_000])
def test_a_key_value_definition_that_can_not_be_read(text: str) -> None:
    assert definition_of("KEY_VALUE", text, {}) is None


@pytest.mark.parametrize("name", [None, "", "avro", "NOSUCH"])
def test_unknown_types(name: str | None) -> None:
    assert definition_of(name, RECORD, {}) is None


def test_a_stored_key_value_schema_that_is_cut_is_shown_empty() -> None:
    cut = SchemaDefinition(type=Schema.KeyValue, data=b"\x00\x00", properties={})
    assert schema_json(stored(cut))["data"] == ""
