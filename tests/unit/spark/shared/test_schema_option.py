"""Schemas as texts of options."""

from __future__ import annotations

import pytest

from pulsar_py import schema as schemas
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.shared.schema_option import (
    option_has_separate_keys,
    parse_schema_option,
    schema_option,
)

PAIRS = schemas.KeyValueSchema(schemas.StringSchema(), schemas.Int64Schema()).schema_info()
AVRO = SchemaInfo(SchemaType.AVRO, "R", b'{"type":"record","name":"R","fields":[]}', {"a": "1"})


@pytest.mark.parametrize("info", [PAIRS, AVRO, SchemaInfo(SchemaType.PROTOBUF, "", b"\xff", {})])
def test_a_schema_comes_back(info: SchemaInfo) -> None:
    assert parse_schema_option("s", schema_option(info)) == info


def test_the_form_of_the_administration_is_taken() -> None:
    found = parse_schema_option("s", '{"type": "string", "schema": "", "properties": null}')
    assert found == SchemaInfo(SchemaType.STRING, "", b"", {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"type": "X"}',
        '{"type": "AVRO", "data": "?"}',
        '{"type":"AVRO","properties":1}',
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"valueSchema: .* expected"):
        parse_schema_option("valueSchema", text)


def test_separate_keys_are_told() -> None:
    separated = schemas.KeyValueSchema(
        schemas.StringSchema(), schemas.Int64Schema(), schemas.KeyValueEncodingType.SEPARATED
    ).schema_info()
    assert option_has_separate_keys(schema_option(separated))
    assert not option_has_separate_keys(schema_option(PAIRS))
    assert not option_has_separate_keys(schema_option(AVRO))
    assert not option_has_separate_keys(None)
