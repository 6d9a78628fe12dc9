"""What every schema does that says nothing else."""

from __future__ import annotations

from pulsar_py.schema import Schema, SchemaInfo, SchemaType, StringSchema


class Upper(Schema[str]):
    def schema_info(self) -> SchemaInfo:
        return SchemaInfo(SchemaType.STRING)

    def encode(self, value: str) -> bytes:
        return value.upper().encode()

    def decode(self, data: bytes) -> str:
        return data.decode().lower()


def test_a_schema_of_ones_own_needs_three_methods() -> None:
    schema = Upper()

    assert schema.encode("a") == b"A"
    assert schema.decoder_for(None)(b"A", None) == "a"
    assert schema.decode_with(None, b"A") == "a"


def test_it_asks_for_nothing_by_default() -> None:
    schema = Upper()

    assert not schema.reads_versions
    assert not schema.has_separate_key
    assert not schema.needs_topic_schema
    assert schema.with_topic_schema(None) is schema
    assert schema.encode_key("a") is None


def test_a_null_value_is_decoded_to_none() -> None:
    assert StringSchema().decode_with(None, None) is None


def test_none_is_a_null_value_and_empty_text_is_not() -> None:
    assert StringSchema().is_null(None)
    assert not StringSchema().is_null("")
