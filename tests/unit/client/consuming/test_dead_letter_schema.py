"""The schema of letters."""

from __future__ import annotations

from pulsar_py.client.consuming.dead_letter_schema import dead_letter_schema_of
from pulsar_py.schema import AutoConsumeSchema, BytesSchema, StringSchema


def test_letters_register_the_consumers_schema_and_take_payloads_as_they_are() -> None:
    schema = dead_letter_schema_of(StringSchema())
    assert schema is not None
    assert schema.schema_info() == StringSchema().schema_info()
    broken = b"\xff not text"
    assert schema.encode(broken) == schema.decode(broken) == broken


def test_letters_of_bytes_and_of_any_schema_are_bytes() -> None:
    assert dead_letter_schema_of(None) is None
    assert dead_letter_schema_of(BytesSchema()) is None
    assert dead_letter_schema_of(AutoConsumeSchema()) is None
