"""Messages into columns of their values."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pyarrow as pa
import pytest

from pulsar_py import schema as schemas
from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.values.value_columns import (
    KeyValueColumns,
    RawValues,
    SchemaColumns,
    columns_of_schema,
)
from tests.unit.spark.message_parts import TOPIC, plain

INT = {"name": "a", "type": "int"}
TEXT = {"name": "b", "type": ["null", "string"], "default": None}
OLD = schemas.AvroSchema[Any](schema_definition={"type": "record", "name": "R", "fields": [INT]})
NEW = schemas.AvroSchema[Any](
    schema_definition={"type": "record", "name": "R", "fields": [INT, TEXT]}
)
ALIEN = schemas.StringSchema()


class Known:
    """Versions by their bytes."""

    def __init__(self, **versions: schemas.Schema[Any]) -> None:
        self._versions = versions

    def writer(self, topic: str, version: bytes) -> SchemaInfo | None:
        assert topic == TOPIC
        found = self._versions.get(version.decode())
        return None if found is None else found.schema_info()


def table(columns: Any, messages: list[Message]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """All rows, and the errors."""
    arrays, errors = columns.build(messages, frozenset(each.name for each in columns.fields))
    assert {name: array.type for name, array in arrays.items()} == {
        each.name: each.type for each in columns.fields
    }
    names = [each.name for each in columns.fields]
    rows = zip(*(arrays[name].to_pylist() for name in names), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows], {
        row: str(error) for row, error in errors.items()
    }


def test_raw_values_are_the_payload_and_tombstones_are_null() -> None:
    messages = [plain(b"a"), plain(b""), plain(b"", null_value=True)]
    assert table(RawValues(), messages) == ([{"value": b"a"}, {"value": b""}, {"value": None}], {})


def test_a_single_value_is_called_value() -> None:
    columns = columns_of_schema(schemas.StringSchema().schema_info(), Known())
    messages = [plain(b"a"), plain(b""), plain(b"", null_value=True), plain(b"\xff")]
    rows, errors = table(columns, messages)
    assert [row["value"] for row in rows] == ["a", "", None, None]
    assert list(errors) == [3]


def test_only_columns_that_are_wanted_are_given() -> None:
    columns = columns_of_schema(NEW.schema_info(), Known())
    message = plain(NEW.encode({"a": 1, "b": "x"}))
    assert list(columns.build([message], frozenset({"b"})).arrays) == ["b"]


def test_each_message_is_read_as_its_version_was_written() -> None:
    columns = columns_of_schema(NEW.schema_info(), Known(old=OLD, new=NEW, alien=ALIEN))
    old, new = OLD.encode({"a": 1}), NEW.encode({"a": 2, "b": "x"})
    messages = [
        plain(new, schema_version=b"new"),
        plain(old, schema_version=b"old"),
        plain(new),
        plain(b"text", schema_version=b"alien"),
        plain(new, schema_version=b"gone"),
        plain(old, schema_version=b"old"),
        plain(b"", schema_version=b"old", null_value=True),
    ]
    rows, errors = table(columns, messages)
    assert [(row["a"], row["b"]) for row in rows] == [
        (2, "x"), (1, None), (2, "x"), (None, None), (2, "x"), (1, None), (None, None),
    ]  # fmt: skip
    assert list(errors) == [3]
    assert "with a schema of type STRING" in errors[3]


def test_versions_are_asked_for_only_where_they_matter() -> None:
    columns = columns_of_schema(schemas.Int32Schema().schema_info(), Known())
    rows, _ = table(columns, [plain(b"\0\0\0\1", schema_version=b"?")])
    assert rows == [{"value": 1}]


def pairs(encoding: schemas.KeyValueEncodingType, **versions: Any) -> KeyValueColumns:
    schema = schemas.KeyValueSchema(schemas.StringSchema(), NEW, encoding)
    return KeyValueColumns(schema.schema_info(), Known(**versions))


INLINE, SEPARATED = schemas.KeyValueEncodingType


def test_inline_pairs() -> None:
    schema = schemas.KeyValueSchema(schemas.StringSchema(), NEW, INLINE)
    whole = schema.encode(schemas.KeyValue("k", {"a": 1, "b": None}))
    half = schema.encode(schemas.KeyValue("k", None))
    broken = schema.encode(schemas.KeyValue("k", {"a": 1, "b": "x"}))[:-1] + b"\xff"
    rows, errors = table(
        pairs(INLINE),
        [plain(whole), plain(half), plain(b"", null_value=True), plain(b"\0"), plain(broken)],
    )
    assert rows == [
        {"key": "k", "value": {"a": 1, "b": None}},
        {"key": "k", "value": None},
        {"key": None, "value": None},
        {"key": None, "value": None},
        {"key": None, "value": None},
    ]
    assert list(errors) == [3, 4]


def test_separated_pairs_have_the_key_of_the_message() -> None:
    columns = pairs(SEPARATED)
    data = NEW.encode({"a": 1, "b": None})
    key = base64.b64encode("ä".encode()).decode()
    messages = [
        plain(data, partition_key=key, partition_key_b64_encoded=True),
        plain(b"", partition_key="plain", null_value=True),
        plain(data),
    ]
    value = {"a": 1, "b": None}
    assert table(columns, messages) == (
        [
            {"key": "ä", "value": value},
            {"key": "plain", "value": None},
            {"key": None, "value": value},
        ],
        {},
    )


def test_pairs_of_older_versions() -> None:
    old = schemas.KeyValueSchema(schemas.StringSchema(), OLD, INLINE)
    columns = pairs(INLINE, old=old, alien=ALIEN)
    data = old.encode(schemas.KeyValue("k", {"a": 5}))
    rows, errors = table(columns, [plain(data, schema_version=b"old")])
    assert (rows, errors) == ([{"key": "k", "value": {"a": 5, "b": None}}], {})


def test_a_pair_s_schema_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the topic's schema"):
        columns_of_schema(SchemaInfo(SchemaType.KEY_VALUE, data=b"\0"), Known())


def test_columns_are_sent_to_workers_as_their_schema() -> None:
    data = NEW.encode({"a": 1, "b": "x"})
    info = SchemaInfo.from_wire(NEW.schema_info().to_wire())
    copy = pickle.loads(pickle.dumps(SchemaColumns(info, Known())))
    assert table(copy, [plain(data)]) == ([{"a": 1, "b": "x"}], {})
    assert copy.fields == (pa.field("a", pa.int32()), pa.field("b", pa.string()))
