from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.common.errors import IncompatibleSchemaError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.policies import SchemaCompatibilityStrategy as Strategy
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.server.schema_registry import SchemaDefinition, SchemaRegistry
from pulsar_py.server.schema_registry.definition import encode_version
from pulsar_py.server.schema_registry.storage import locator_path
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


def avro(*names: str, spaces: str = "") -> SchemaDefinition:
    fields = ",".join(f'{{"name":"{name}","type":"int"}}' for name in names)
    return SchemaDefinition(
        Schema.Avro, f'{{"type":"record",{spaces}"name":"r","fields":[{fields}]}}'.encode()
    )


class Reads:
    """Counts the ledgers that are opened."""

    def __init__(self, bookie: Bookie, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._open = bookie.open
        monkeypatch.setattr(bookie, "open", self._noted)

    async def _noted(self, *arguments: Any) -> Any:  # Any: as the store has it
        self.count += 1
        return await self._open(*arguments)


@pytest.mark.parametrize("strategy", [Strategy.FULL, Strategy.BACKWARD, Strategy.FORWARD])
async def test_after_a_start_a_new_schema_reads_the_newest_version_alone(
    registry: SchemaRegistry,
    metadata: MemoryMetadataStore,
    bookie: Bookie,
    monkeypatch: pytest.MonkeyPatch,
    strategy: Strategy,
) -> None:
    for number in range(200):
        await put(registry, avro(f"f{number}"))
    other = SchemaRegistry(metadata, bookie, SystemClock())
    reads = Reads(bookie, monkeypatch)
    with pytest.raises(IncompatibleSchemaError):
        await put(other, avro("new"), strategy=strategy)
    assert reads.count == 1
    assert await put(other, avro("f7", spaces=" ")) == encode_version(7)
    assert reads.count == 2
    assert await put(other, avro("new")) == encode_version(200)
    assert reads.count == 2
    await other.close()


async def test_a_transitive_check_compares_with_all(
    registry: SchemaRegistry, metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    await put(registry, avro("a"))
    for number in range(150):
        await put(registry, avro("a", f"f{number}"))
    await put(registry, avro("a", "b", "f0"))
    await put(registry, avro("a", "b"), strategy=Strategy.BACKWARD)
    with pytest.raises(IncompatibleSchemaError, match="b"):
        await put(registry, avro("b"), strategy=Strategy.BACKWARD_TRANSITIVE)
    assert await put(registry, avro("b"), strategy=Strategy.BACKWARD) == encode_version(153)
    consumer = SchemaRegistry(metadata, bookie, SystemClock())
    await consumer.check_consumer(ID, avro("b"), strategy=Strategy.FULL)
    with pytest.raises(IncompatibleSchemaError):
        await consumer.check_consumer(ID, avro("b"), strategy=Strategy.FULL_TRANSITIVE)
    await consumer.close()


async def test_versions_that_another_broker_did_not_mark_are_found_too(
    registry: SchemaRegistry,
    metadata: MemoryMetadataStore,
    bookie: Bookie,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(70):
        await put(registry, avro(f"f{number}"))
    stored = await metadata.get(locator_path(ID))
    assert stored is not None
    theirs = SchemaLocator.FromString(stored.value)
    theirs.DiscardUnknownFields()
    await metadata.put(
        locator_path(ID), theirs.SerializeToString(), expected_version=stored.version
    )
    other = SchemaRegistry(metadata, bookie, SystemClock())
    reads = Reads(bookie, monkeypatch)
    assert await put(other, avro("f3")) == V3
    assert reads.count == 1
    assert await put(other, avro("f5", spaces=" ")) == encode_version(5)
    assert reads.count == 70
    assert await put(other, avro("new")) == encode_version(70)
    third = SchemaRegistry(metadata, bookie, SystemClock())
    reads.count = 0
    assert await put(third, avro("f9", spaces=" ")) == encode_version(9)
    assert reads.count == 1
    await other.close()
    await third.close()


async def test_definitions_of_one_form_and_another_type_are_versions_of_their_own(
    registry: SchemaRegistry,
) -> None:
    json = SchemaDefinition(Schema.Json, avro("a").data)
    assert await put(registry, avro("a")) == V0
    assert await put(registry, json) == V1
    assert await put(registry, avro("a")) == V0
    assert await registry.find_version(ID, json) == V1


async def test_another_brokers_deletion_is_seen(
    registry: SchemaRegistry, metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    await put(registry, text("a"))
    await put(registry, text("b"))
    other = SchemaRegistry(metadata, bookie, SystemClock())
    assert await other.get(ID, V1) is not None
    await registry.delete(ID)
    await asyncio.sleep(0.01)
    assert await other.latest(ID) is None
    assert await other.get(ID, V1) is None
    assert await put(other, text("a")) == V3
    await other.close()


async def test_cache_of_indexes_is_bounded(
    registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_py.server.schema_registry.registry.CACHED_INDEXES", 3)
    for index in range(5):
        schema_id = f"public/default/t{index}"
        await registry.put_if_absent(schema_id, text("a"), strategy=Strategy.FULL)
        await registry.latest(schema_id)
    assert len(registry._cache) == len(registry._ids_by_path) == registry._cached_versions == 3
    monkeypatch.setattr("pulsar_py.server.schema_registry.registry.CACHED_VERSIONS", 2)
    assert await registry.latest("public/default/t0") is not None
    assert len(registry._cache) == registry._cached_versions == 2
