from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pulsar_py.client.brokers.lookup import SchemaAnswer
from pulsar_py.client.receiving.schema_reader import MAX_VERSIONS, SchemaReader
from pulsar_py.common.errors import ClientTimeoutError, SchemaSerializationError
from pulsar_py.schema import (
    AutoConsumeSchema,
    AvroSchema,
    KeyValue,
    KeyValueEncodingType,
    KeyValueSchema,
    Schema,
    SchemaInfo,
    StringSchema,
)

TOPIC = "persistent://public/default/t"


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


@dataclass
class Older:
    a: int
    _avro_namespace = None


@dataclass
class Newer:
    a: int
    b: str = "none"


OLDER, NEWER = AvroSchema(Older), AvroSchema(Newer)


class Registry:
    """A lookup service that knows schemas only."""

    def __init__(self, *infos: SchemaInfo) -> None:
        self.infos = infos
        self.asked: list[tuple[str, bytes | None]] = []
        self.error: Exception | None = None

    async def schema(self, topic: str, version: bytes | None = None) -> SchemaAnswer | None:
        self.asked.append((topic, version))
        if self.error is not None:
            raise self.error
        number = int.from_bytes(version or b"", "big")
        wire = self.infos[number].to_wire() if number < len(self.infos) else None
        return None if wire is None else SchemaAnswer(wire, version or b"")


def reader_of(schema: Schema[Any], registry: Registry, topic: str = TOPIC) -> SchemaReader:
    return SchemaReader(registry, topic, schema)  # type: ignore[arg-type] # knows schemas only


async def test_a_version_is_asked_for_once() -> None:
    registry = Registry(OLDER.schema_info())
    reader = reader_of(NEWER, registry)
    assert reader.is_missing(version(0))

    await reader.load(version(0))
    await reader.load(version(0))

    assert not reader.is_missing(version(0))
    assert registry.asked == [(TOPIC, version(0))]
    assert reader.decode(OLDER.encode(Older(1)), version(0), None) == Newer(1)


async def test_partitions_share_the_schema_of_their_topic() -> None:
    registry = Registry(OLDER.schema_info())

    await reader_of(NEWER, registry, f"{TOPIC}-partition-3").load(version(0))

    assert registry.asked[0][0] == TOPIC


async def test_a_message_without_version_is_read_as_the_consumer_s_own() -> None:
    reader = reader_of(NEWER, Registry())

    assert not reader.is_missing(b"")
    for none in (None, b""):
        assert reader.decode(NEWER.encode(Newer(1, "b")), none, None) == Newer(1, "b")


async def test_what_has_no_versions_asks_for_none() -> None:
    reader = reader_of(StringSchema(), Registry())

    assert not reader.is_missing(version(0))
    assert reader.decode(b"x", version(0), None) == "x"
    assert reader.decode(None, version(0), None) is None


async def test_an_unknown_version_is_read_as_the_consumer_s_own() -> None:
    reader = reader_of(NEWER, Registry())

    await reader.load(version(7))

    assert reader.decode(NEWER.encode(Newer(1)), version(7), None) == Newer(1)


async def test_auto_consume_has_no_value_for_an_unknown_version() -> None:
    reader = reader_of(AutoConsumeSchema(), Registry())

    await reader.load(version(7))

    with pytest.raises(SchemaSerializationError, match=f"{TOPIC}: .* version 7: the topic has no"):
        reader.decode(b"x", version(7), None)


async def test_a_version_that_can_not_be_read_fails_with_each_of_its_messages() -> None:
    reader = reader_of(NEWER, Registry(StringSchema().schema_info()))

    await reader.load(version(0))

    assert not reader.is_missing(version(0))
    for _ in range(2):
        with pytest.raises(
            SchemaSerializationError, match=f"{TOPIC}: written with schema version 0"
        ):
            reader.decode(b"x", version(0), None)


async def test_an_incompatible_version_is_told_with_reader_version_and_field() -> None:
    @dataclass
    class Other:
        a: str

    registry = Registry(AvroSchema(Other).schema_info())
    reader = reader_of(NEWER, registry)
    await reader.load(version(0))

    with pytest.raises(SchemaSerializationError) as raised:
        reader.decode(AvroSchema(Other).encode(Other("x")), version(0), None)
    assert str(raised.value) == (
        f"{TOPIC}: written with schema version 0: Newer can't read what Other wrote: "
        "field a was written as string, and is read as long"
    )


async def test_what_can_not_be_had_now_is_asked_for_again() -> None:
    registry = Registry(OLDER.schema_info())
    reader = reader_of(NEWER, registry)
    registry.error = ClientTimeoutError("slow")
    with pytest.raises(ClientTimeoutError):
        await reader.load(version(0))
    with pytest.raises(SchemaSerializationError, match="was not loaded"):
        reader.decode(b"", version(0), None)

    registry.error = None
    await reader.load(version(0))

    assert reader.decode(OLDER.encode(Older(1)), version(0), None) == Newer(1)


async def test_errors_name_the_topic() -> None:
    with pytest.raises(SchemaSerializationError, match=f"^{TOPIC}: "):
        reader_of(StringSchema(), Registry()).decode(b"\xff", None, None)


async def test_only_so_many_versions_are_kept() -> None:
    registry = Registry(*[OLDER.schema_info()] * (MAX_VERSIONS + 1))
    reader = reader_of(NEWER, registry)

    for number in range(MAX_VERSIONS + 1):
        await reader.load(version(number))

    assert reader.is_missing(version(0))
    assert not reader.is_missing(version(1))
    assert reader.decode(NEWER.encode(Newer(1)), None, None) == Newer(1)


async def test_a_separate_key_comes_with_a_null_value() -> None:
    schema = KeyValueSchema(StringSchema(), StringSchema(), KeyValueEncodingType.SEPARATED)

    reader = reader_of(schema, Registry())

    assert reader.decode(None, None, b"k") == KeyValue("k", None)
    assert reader.decode(b"v", None, b"k") == KeyValue("k", "v")
