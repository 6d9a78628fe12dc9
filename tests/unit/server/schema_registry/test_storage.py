from __future__ import annotations

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import MetadataExistsError, StorageError
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.proto.PulsarApi_pb2 import Schema
from pulsar_py.proto.SchemaStorageFormat_pb2 import SchemaLocator
from pulsar_py.server.schema_registry import storage
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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The locators that are parsed to read one version; those of two versions count as many."""
    found: list[bytes] = []

    class Noted(storage._Index):
        def __init__(self, value: bytes) -> None:
            found.append(value)
            super().__init__(value)

    monkeypatch.setattr(storage, "_Index", Noted)
    monkeypatch.setattr(storage, "FEW_VERSIONS", 1)
    monkeypatch.setattr(storage, "PARSED_INDEXES", 2)
    return found


async def with_versions(schemas: SchemaStorage, schema_id: str, count: int, first: int = 0) -> None:
    locator_version = MUST_NOT_EXIST
    for number in range(count):
        stored = replace(version(first + number), version=number)
        locator_version = await schemas.append(schema_id, stored, locator_version)


async def data_of(schemas: SchemaStorage, schema_id: str, number: int | None) -> bytes | None:
    found = await schemas.read_one(schema_id, number)
    return None if found is None else found.definition.data


async def test_the_index_of_many_versions_is_parsed_once(
    metadata: MemoryMetadataStore, bookie: Bookie, parsed: list[bytes]
) -> None:
    schemas = SchemaStorage(metadata, bookie)
    await with_versions(schemas, ID, 3)
    assert [await data_of(schemas, ID, each) for each in (0, 2, None, 3, -1)] == [
        b"\x00", b"\x02", b"\x02", None, None,
    ]  # fmt: skip
    assert await schemas.count(ID) == 3
    assert len(parsed) == 1
    await schemas.remove(ID)
    assert await schemas.count(ID) == 0
    await with_versions(schemas, ID, 3, first=7)
    assert await data_of(schemas, ID, 0) == b"\x07"
    assert len(parsed) == 2


async def test_a_locator_made_anew_unseen_is_not_taken_for_the_former_one(
    metadata: MemoryMetadataStore, bookie: Bookie, parsed: list[bytes]
) -> None:
    schemas, others = SchemaStorage(metadata, bookie), SchemaStorage(metadata, bookie)
    await with_versions(schemas, ID, 2)
    assert await data_of(schemas, ID, 1) == b"\x01"
    await others.remove(ID)
    await with_versions(others, ID, 2, first=7)
    assert await data_of(schemas, ID, 1) == b"\x08"


async def test_parsed_indexes_are_bounded(
    metadata: MemoryMetadataStore, bookie: Bookie, parsed: list[bytes]
) -> None:
    schemas = SchemaStorage(metadata, bookie)
    names = [f"public/default/t{number}" for number in range(3)]
    for name in names:
        await with_versions(schemas, name, 2)
    for name in [*names, *names[1:], names[0]]:
        assert await schemas.count(name) == 2
    assert len(parsed) == 4
    assert len(schemas._indexes) == 2
