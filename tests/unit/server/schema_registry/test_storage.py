from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import MetadataExistsError, StorageError, StoreUnavailableError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.server.schema_registry import storage
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.schema_index import SchemaIndex
from pulsar_py.server.schema_registry.storage import SchemaStorage, _Confirmed, locator_path
from pulsar_py.storage.bookie import Bookie
from tests.at_once import AtOnce
from tests.ledger_parts import all_ledgers

ID = "public/default/a b"


def version(number: int) -> StoredSchema:
    return StoredSchema(SchemaDefinition(Schema.String, bytes([number]), {}, ID), number, 1)


def test_locator_stands_where_pulsar_has_it() -> None:
    assert locator_path(ID) == "/schemas/public/default/a+b"


async def test_versions_come_back_in_order(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    index = await storage.append(ID, version(0), None)
    await storage.append(ID, version(1), index)
    found = await storage.index(ID)
    assert found is not None
    assert found.locator_version == index.locator_version
    assert await storage.read_many(ID, found, found.live) == [version(0), version(1)]
    locator = SchemaLocator.FromString((await metadata.get(locator_path(ID))).value)
    assert locator.info == locator.index[1]
    assert locator.info.hash == version(1).definition.sha256


async def test_ledgers_say_whose_they_are(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), None)
    (ledger_id,) = await all_ledgers(bookie)
    info = await bookie.info(ledger_id)
    assert info.custom_metadata["component"] == b"schema"
    assert info.is_closed


async def test_all_ledgers_are_named(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    assert await storage.named_ledgers() == set()
    index = await storage.append(ID, version(0), None)
    await storage.append(ID, version(1), index)
    await storage.append("public/other/t", version(0), None)
    assert sorted(await storage.named_ledgers()) == list(await all_ledgers(bookie))


async def test_what_is_known_of_ledgers_but_those_that_are_gone(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    storage = SchemaStorage(metadata, bookie)
    assert await storage.ledgers([]) == []
    index = await storage.append(ID, version(0), None)
    await storage.append(ID, version(1), index)
    ids = list(await all_ledgers(bookie))
    first, second = await storage.ledgers(ids)
    assert [first.ledger_id, second.ledger_id] == ids
    assert (first.last_entry_id, first.is_closed) == (0, True)
    await bookie.delete(first.ledger_id)
    assert await storage.ledgers(ids) == [second]


async def test_loser_of_a_race_leaves_no_ledger(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), None)
    with pytest.raises(MetadataExistsError):
        await storage.append(ID, version(0), None)
    assert len(await all_ledgers(bookie)) == 1


async def test_removing_takes_index_and_ledgers(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), None)
    await storage.remove(ID)
    await storage.remove(ID)
    assert await storage.index(ID) is None
    assert not await all_ledgers(bookie)


async def test_failed_write_is_raised() -> None:
    confirmed = _Confirmed()
    confirmed.on_failed(1, StorageError("broken"))
    confirmed.on_confirmed(1, 0)
    with pytest.raises(StorageError, match="broken"):
        await confirmed.future


class SilentBookie(Bookie):
    """It takes requests for ledgers, and answers none."""

    async def create(self, *request: Any, **options: Any) -> Any:
        await asyncio.get_running_loop().create_future()


async def test_a_store_that_does_not_answer_is_not_waited_for_without_end(
    metadata: MemoryMetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "WRITE_TIMEOUT_SECONDS", 0.01)
    schemas = SchemaStorage(metadata, SilentBookie.__new__(SilentBookie))
    with pytest.raises(StoreUnavailableError, match="not written within"):
        await schemas.append(ID, version(0), None)


async def test_an_index_that_holds_still_is_not_parsed_again(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    schemas, others = SchemaStorage(metadata, bookie), SchemaStorage(metadata, bookie)
    first = await schemas.append(ID, version(0), None)
    assert await schemas.index(ID, first) is first
    await others.append(ID, version(1), await others.index(ID))
    second = await schemas.index(ID, first)
    assert second is not None
    assert (len(first), len(second)) == (1, 2)


async def test_a_locator_made_anew_is_not_taken_for_the_former_one(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    schemas, others = SchemaStorage(metadata, bookie), SchemaStorage(metadata, bookie)
    before = await schemas.append(ID, version(0), None)
    await others.remove(ID)
    await others.append(ID, replace(version(7), version=0), None)
    after = await schemas.index(ID, before)
    assert after is not None
    assert after.locator_version == before.locator_version
    assert (await schemas.read(ID, after, 0)).definition.data == b"\x07"


async def test_definitions_are_read_once_within_a_bound(
    metadata: MemoryMetadataStore, bookie: Bookie, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    open_ledger = bookie.open

    async def noted(ledger_id: int, *rest: Any) -> Any:  # Any: as the store has it
        opened.append(ledger_id)
        return await open_ledger(ledger_id, *rest)

    monkeypatch.setattr(bookie, "open", noted)
    monkeypatch.setattr(storage, "CACHED_BYTES", 2 * storage._COST_BYTES + 2)
    schemas = SchemaStorage(metadata, bookie)
    index: SchemaIndex | None = None
    for number in range(3):
        index = await schemas.append(ID, version(number), index)
    assert index is not None
    for number in (0, 1, 0, 1):
        assert await schemas.read(ID, index, number) == version(number)
    assert len(opened) == 2
    assert await schemas.read(ID, index, 2) == version(2)
    assert await schemas.read(ID, index, 1) == version(1)
    assert len(opened) == 3
    await schemas.read(ID, index, 0)
    assert len(opened) == 4
    assert schemas._cached_bytes <= storage.CACHED_BYTES


async def test_an_entry_does_not_grow_with_the_versions_before_it(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    schemas = SchemaStorage(metadata, bookie)
    index: SchemaIndex | None = None
    for number in range(20):
        index = await schemas.append(ID, version(number), index)
    lengths = {(await bookie.info(each)).length_bytes for each in await all_ledgers(bookie)}
    assert max(lengths) - min(lengths) <= 2
    assert index is not None
    assert len(index.value) < 60 * 21


async def test_schemas_are_read_beside_each_other_a_number_at_a_time(
    metadata: MemoryMetadataStore, bookie: Bookie, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = SchemaStorage(metadata, bookie)
    index: SchemaIndex | None = None
    for number in range(8):
        index = await schemas.append("public/default/many", version(number), index)
        await schemas.append(f"public/default/t-{number}", version(0), None)
    assert index is not None
    monkeypatch.setattr(storage, "NAMES_AT_ONCE", 3)
    names, versions = AtOnce(monkeypatch), AtOnce(monkeypatch)
    names.watch(metadata, "get")
    assert len(await schemas.named_ledgers()) == 16
    versions.watch(schemas, "_read")
    assert len(await schemas.read_many("public/default/many", index, range(8))) == 8
    assert (names.most, versions.most) == (3, 3)


async def test_bytes_of_the_embedded_metadata_grow_with_the_versions_not_their_square(
    bookie: Bookie, tmp_path: Path
) -> None:
    """As many versions as make a locator of 16 KB, and as many again, written to SQLite's log."""
    path = tmp_path / "metadata.sqlite"
    metadata = await SqliteMetadataStore.open(path, SystemClock())
    storage = SchemaStorage(metadata, bookie)
    log = path.with_name(path.name + "-wal")

    def named(number: int) -> StoredSchema:
        definition = SchemaDefinition(Schema.Json, b"%d" % number, {}, ID)
        return StoredSchema(definition, number, 1)

    index = await storage.append(ID, named(0), None)
    for number in range(1, 300):
        index = await storage.append(ID, named(number), index)
    lengths: set[int] = set()
    written: list[int] = []
    for number in range(300, 340):
        before, length = log.stat().st_size, len(index.value)
        index = await storage.append(ID, named(number), index)
        lengths.add(len(index.value))
        if len(index.value) == length and log.stat().st_size > before:  # not begun anew
            written.append(log.stat().st_size - before)
    await metadata.close()
    assert len(index.value) > 16 * 1024
    assert len(written) > 30
    assert max(written) <= 5 * 4120  # pages, where the whole value has six or more
    assert len(lengths) <= 2
