from __future__ import annotations

import pytest

from pulsar_py.common.errors import MetadataExistsError, StorageError
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.server.schema_registry.definition import SchemaDefinition, StoredSchema
from pulsar_py.server.schema_registry.storage import SchemaStorage, _Confirmed, locator_path
from pulsar_py.storage.bookie import Bookie
from tests.ledger_parts import all_ledgers

ID = "public/default/a b"


def version(number: int) -> StoredSchema:
    return StoredSchema(SchemaDefinition(Schema.String, bytes([number]), {}, ID), number, 1)


def test_locator_stands_where_pulsar_has_it() -> None:
    assert locator_path(ID) == "/schemas/public/default/a+b"


async def test_versions_come_back_in_order(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    locator_version = await storage.append(ID, version(0), MUST_NOT_EXIST)
    locator_version = await storage.append(ID, version(1), locator_version)
    assert await storage.load(ID) == ([version(0), version(1)], locator_version)
    locator = SchemaLocator.FromString((await metadata.get(locator_path(ID))).value)
    assert locator.info == locator.index[1]
    assert locator.info.hash == version(1).definition.sha256


async def test_ledgers_say_whose_they_are(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), MUST_NOT_EXIST)
    (ledger_id,) = await all_ledgers(bookie)
    info = await bookie.info(ledger_id)
    assert info.custom_metadata["component"] == b"schema"
    assert info.is_closed


async def test_all_ledgers_are_named(metadata: MemoryMetadataStore, bookie: Bookie) -> None:
    storage = SchemaStorage(metadata, bookie)
    assert await storage.named_ledgers() == set()
    locator_version = await storage.append(ID, version(0), MUST_NOT_EXIST)
    await storage.append(ID, version(1), locator_version)
    await storage.append("public/other/t", version(0), MUST_NOT_EXIST)
    assert sorted(await storage.named_ledgers()) == list(await all_ledgers(bookie))


async def test_loser_of_a_race_leaves_no_ledger(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), MUST_NOT_EXIST)
    with pytest.raises(MetadataExistsError):
        await storage.append(ID, version(0), MUST_NOT_EXIST)
    assert len(await all_ledgers(bookie)) == 1


async def test_removing_takes_index_and_ledgers(
    metadata: MemoryMetadataStore, bookie: Bookie
) -> None:
    storage = SchemaStorage(metadata, bookie)
    await storage.append(ID, version(0), MUST_NOT_EXIST)
    await storage.remove(ID)
    await storage.remove(ID)
    assert await storage.load(ID) == ([], MUST_NOT_EXIST)
    assert not await all_ledgers(bookie)


async def test_failed_write_is_raised() -> None:
    confirmed = _Confirmed()
    confirmed.on_failed(1, StorageError("broken"))
    confirmed.on_confirmed(1, 0)
    with pytest.raises(StorageError, match="broken"):
        await confirmed.future
