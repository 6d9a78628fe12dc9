"""The schema that producers of encoded payloads register."""

from __future__ import annotations

from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.schema.encoded_schema import EncodedSchema


def test_payloads_stay_as_they_are_under_the_schema_of_the_topic() -> None:
    info = SchemaInfo(SchemaType.JSON, "r", b"{}", {})
    schema = EncodedSchema(info)
    assert schema.schema_info() is info
    assert schema.encode(b"\x00x") == b"\x00x"
    assert schema.decode(b"\x00x") == b"\x00x"


def test_encoded_bytes_are_registered_by_the_definition_that_is_given() -> None:
    info = SchemaInfo(SchemaType.AVRO, "", b'"string"', {"a": "b"})
    schema = EncodedSchema(info)
    assert schema.schema_info() is info
    assert schema.encode(b"\xff") == schema.decode(b"\xff") == b"\xff"
