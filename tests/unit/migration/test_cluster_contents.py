from __future__ import annotations

import pytest

from pulsar_py.common.errors import MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.cursors.format import NO_LEDGER
from pulsar_py.metadata import paths
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.migration.cluster_contents import named_by, read_cluster, read_keys
from pulsar_py.migration.contents import Contents
from pulsar_py.proto.MLDataFormats_pb2 import ManagedCursorInfo
from tests.migration_parts import (
    BUCKET,
    COMPACTED,
    COMPACTION,
    CURSOR,
    DATA,
    LAST,
    NAMES,
    SCHEMA,
    TOPIC,
    all_labels,
    entries,
    filled_bookie,
    keys,
)


async def stores_with(values: dict[str, bytes]) -> MetadataStores:
    local, configuration = (MemoryMetadataStore(SystemClock()) for _ in range(2))
    for path in sorted(values):
        home = configuration if path.startswith("/admin/policies") else local
        await home.put(path, values[path])
    return MetadataStores(local=local, configuration=configuration)


async def contents_of(values: dict[str, bytes]) -> Contents:
    stores = await stores_with(values)
    others = {20: [b"another program's"], 21: [b"of nobody"]}
    own = {**all_labels(), 20: {}, 21: all_labels()[DATA]}
    store = await filled_bookie({**entries(), **others}, own)
    return await read_cluster(
        stores,
        store,
        MetadataLedgerIds(stores.local),
        SystemClock(),
        cluster="small",
        settings=LedgerOptions(),
    )


async def test_keys_come_from_both_stores_without_those_of_sessions() -> None:
    stores = await stores_with({**keys(), "/namespace/t/n/0x0_0x1": b"owner"})
    session = await stores.local.open_session()
    await stores.local.put(f"{TOPIC}/e", b"x", expected_version=-1, session=session)
    assert await read_keys(stores) == keys()


def test_ledgers_are_named_by_lists_cursors_properties_and_schemas() -> None:
    assert set(named_by(keys())) == {
        DATA, CURSOR, COMPACTED, BUCKET, SCHEMA, NAMES, COMPACTION, LAST,
    }  # fmt: skip
    whole = ManagedCursorInfo(cursorsLedgerId=NO_LEDGER).SerializeToString()
    assert list(named_by({f"{TOPIC}/sub": whole})) == []


async def test_ledgers_that_are_named_go_along_with_their_labels() -> None:
    contents = await contents_of(keys())
    assert dict(contents.ledgers) == dict(sorted(all_labels().items()))
    assert (contents.instance, contents.cluster) == ("cluster small", "small")
    assert contents.next_producer_number >= 1
    assert contents.next_ledger_id >= 1


async def test_a_compacted_ledger_may_be_named_by_the_cursor_ledger_alone() -> None:
    values = keys()
    record = ManagedCursorInfo.FromString(values[f"{TOPIC}/__compaction"])
    del record.properties[:]
    values[f"{TOPIC}/__compaction"] = record.SerializeToString()
    assert COMPACTED not in set(named_by(values))
    assert COMPACTED in (await contents_of(values)).ledgers


async def test_a_ledger_that_is_gone_is_passed_over() -> None:
    values = keys()
    values[f"{TOPIC}/gone"] = ManagedCursorInfo(cursorsLedgerId=77).SerializeToString()
    assert 77 not in (await contents_of(values)).ledgers


async def test_a_cluster_with_brokers_is_refused() -> None:
    with pytest.raises(MigrationError, match="one:8080, two:8080"):
        await contents_of({paths.broker("one:8080"): b"{}", paths.broker("two:8080"): b"{}"})
