from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.policies import SchemaCompatibilityStrategy as Strategy
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.server.schema_registry import SchemaDefinition, SchemaRegistry
from pulsar_py.server.schema_registry.definition import encode_version
from pulsar_py.storage.bookie import Bookie
from tests.ledger_parts import all_ledgers

ID = "public/default/t"
V0, V1, V2, V3 = map(encode_version, range(4))


def text(letter: str) -> SchemaDefinition:
    return SchemaDefinition(Schema.External, letter.encode())


@pytest.fixture
def registry(metadata: MemoryMetadataStore, bookie: Bookie) -> SchemaRegistry:
    return SchemaRegistry(metadata, bookie, SystemClock())


async def put(registry: SchemaRegistry, schema: SchemaDefinition, **more: object) -> bytes:
    arguments = {"strategy": Strategy.ALWAYS_COMPATIBLE} | more
    return await registry.put_if_absent(ID, schema, **arguments)  # type: ignore[arg-type]


async def test_new_schemas_get_the_next_version(registry: SchemaRegistry) -> None:
    assert await put(registry, text("a")) == V0
    assert await put(registry, text("b")) == V1
    latest = await registry.latest(ID)
    assert latest is not None
    assert (latest.version_bytes, latest.definition.data, latest.definition.name) == (V1, b"b", ID)


async def test_equal_schema_keeps_its_version(registry: SchemaRegistry) -> None:
    await put(registry, text("a"))
    await put(registry, text("b"))
    assert await put(registry, text("a")) == V0
    assert await registry.find_version(ID, text("b")) == V1
    assert await registry.find_version(ID, text("c")) is None


async def test_versions_are_found_by_their_bytes(registry: SchemaRegistry) -> None:
    await put(registry, text("a"))
    found = await registry.get(ID, V0)
    assert found is not None
    assert found.definition.data == b"a"
    assert await registry.get(ID, V1) is None
    with pytest.raises(IncompatibleSchemaError):
        await registry.get(ID, b"\x00")


async def test_without_auto_update_even_the_first_is_refused(registry: SchemaRegistry) -> None:
    with pytest.raises(IncompatibleSchemaError, match="not updated automatically"):
        await put(registry, text("a"), is_auto_update_allowed=False)


async def test_strategy_refuses(registry: SchemaRegistry) -> None:
    one, other = (SchemaDefinition(Schema.Avro, b'"%s"' % name) for name in (b"int", b"string"))
    await put(registry, one)
    with pytest.raises(IncompatibleSchemaError, match="ALWAYS_INCOMPATIBLE"):
        await put(registry, other, strategy=Strategy.ALWAYS_INCOMPATIBLE)
    with pytest.raises(IncompatibleSchemaError, match="is read as"):
        await put(registry, other, strategy=Strategy.FULL)
    await registry.check_new(ID, one, strategy=Strategy.ALWAYS_INCOMPATIBLE)
    with pytest.raises(IncompatibleSchemaError):
        await registry.check_new(ID, other, strategy=Strategy.BACKWARD)
    assert len(await registry.history(ID)) == len(await registry.index(ID)) == 1


async def test_invalid_definition_is_refused(registry: SchemaRegistry) -> None:
    with pytest.raises(IncompatibleSchemaError):
        await put(registry, SchemaDefinition(Schema.Avro, b"{nonsense"))
    assert await registry.latest(ID) is None


async def test_deleting_hides_what_was_and_the_numbering_goes_on(registry: SchemaRegistry) -> None:
    assert await registry.delete(ID) is None
    await put(registry, text("a"))
    assert await registry.delete(ID) == V1
    assert await registry.latest(ID) is None
    assert await registry.get(ID, V0) is None
    assert await put(registry, text("a")) == V2
    assert [each.version for each in await registry.history(ID)] == [2]


async def test_consumers_are_checked_against_the_history(registry: SchemaRegistry) -> None:
    with pytest.raises(IncompatibleSchemaError, match="no schema"):
        await registry.check_consumer(ID, text("a"), strategy=Strategy.FULL)
    await put(registry, text("a"))
    await registry.check_consumer(ID, text("b"), strategy=Strategy.FULL)


async def test_putting_at_once_gives_each_its_version(registry: SchemaRegistry) -> None:
    letters = "abcdab"
    versions = await asyncio.gather(*(put(registry, text(letter)) for letter in letters))
    assert versions == [V0, V1, V2, V3, V0, V1]


async def test_registries_of_two_brokers_agree(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    one = SchemaRegistry(metadata, bookie, SystemClock())
    other = SchemaRegistry(metadata, bookie, SystemClock())
    assert await put(one, text("a")) == V0
    assert await put(other, text("b")) == V1
    assert await put(one, text("c")) == V2
    assert await asyncio.gather(put(one, text("d")), put(other, text("d"))) == [V3, V3]
    await one.close()
    await other.close()


async def test_history_survives_a_new_start(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    before = SchemaRegistry(metadata, bookie, SystemClock())
    await put(before, text("a"))
    await put(before, text("b"), user="me")
    await before.close()
    after = SchemaRegistry(metadata, bookie, SystemClock())
    assert [(each.definition.data, each.user) for each in await after.history(ID)] == [
        (b"a", ""),
        (b"b", "me"),
    ]


async def test_purging_forgets_everything(registry: SchemaRegistry, bookie: Bookie) -> None:
    await put(registry, text("a"))
    await registry.purge(ID)
    assert await registry.latest(ID) is None
    assert not await all_ledgers(bookie)
    assert await put(registry, text("a")) == V0


async def test_of_a_long_history_single_versions_are_read(
    registry: SchemaRegistry,
    metadata: MemoryMetadataStore,
    bookie: Bookie,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pulsar_py.server.schema_registry.registry.LONG_HISTORY", 2)
    await put(registry, text("a"))
    await registry.delete(ID)
    for letter in "bcd":
        await put(registry, text(letter))
    other = SchemaRegistry(metadata, bookie, SystemClock())
    latest = await other.latest(ID)
    assert latest is not None
    assert latest.definition.data == b"d"
    found = [await other.get(ID, encode_version(number)) for number in range(6)]
    data = [each and each.definition.data for each in found]
    assert data == [None, None, b"b", b"c", b"d", None]
    assert not other._cache
    await registry.delete(ID)
    assert await other.latest(ID) is None
    assert await other.get(ID, encode_version(3)) is None
    await other.close()


async def test_cache_of_histories_is_bounded(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_py.server.schema_registry.registry.CACHED_HISTORIES", 2)
    for index in range(4):
        schema_id = f"public/default/t{index}"
        await registry.put_if_absent(schema_id, text("a"), strategy=Strategy.FULL)
        await registry.latest(schema_id)
    assert len(registry._cache) == 2
    assert len(registry._ids_by_path) == 2
    assert await registry.latest("public/default/t0") is not None
