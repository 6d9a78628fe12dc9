"""The schema that producers of encoded payloads register."""

from __future__ import annotations

from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.values.payload_encoder import PayloadSchema


def test_payloads_stay_as_they_are_under_the_schema_of_the_topic() -> None:
    info = SchemaInfo(SchemaType.JSON, "r", b"{}", {})
    schema = PayloadSchema(info)
    assert schema.schema_info() is info
    assert schema.encode(b"\x00x") == b"\x00x"
    assert schema.decode(b"\x00x") == b"\x00x"
