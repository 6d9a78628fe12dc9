"""EmbeddedLedgers: one engine a data directory, which belongs to its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import CorruptDataError, InstanceMismatchError, MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.embedded_ledgers import EmbeddedLedgers
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.moved_marker import write_marker
from pulsar_py.storage.disk_reserve import PATH as RESERVE
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from tests.ledger_parts import all_ledgers
from tests.unit.storage.support import Listener

SETTINGS = BookieSettings(minimum_free_bytes=1, reserve_bytes=4096)


async def test_ledgers_are_there_again_with_their_metadata_alone(tmp_path: Path) -> None:
    clock, ids = SystemClock(), CountedLedgerIds()
    metadata = MemoryMetadataStore(clock)
    factory = EmbeddedLedgers(tmp_path, SETTINGS)
    for _ in range(2):
        await factory.prepare()
        store = await factory(metadata, ids, clock)
        await store.create(Listener(), LedgerOptions())
        await store.close()
    store = await factory(metadata, ids, clock)
    assert await all_ledgers(store) == [1, 2]
    await store.close()

    with pytest.raises(InstanceMismatchError, match=str(tmp_path)):
        await factory(MemoryMetadataStore(clock), ids, clock)
    await (await factory(metadata, ids, clock)).close()  # the disk was given back


async def test_damage_is_told_with_the_place_and_the_tool(tmp_path: Path) -> None:
    clock, metadata = SystemClock(), MemoryMetadataStore(SystemClock())
    factory = EmbeddedLedgers(tmp_path, SETTINGS)
    store = await factory(metadata, CountedLedgerIds(), clock)
    await store.create(Listener(), LedgerOptions())
    await store.close()
    (tmp_path / "ledgers" / "MANIFEST").write_bytes(b"damaged")

    with pytest.raises(CorruptDataError, match=f"{tmp_path}/ledgers: .*storage verify {tmp_path}"):
        await factory(metadata, CountedLedgerIds(), clock)


async def test_in_memory_each_one_is_empty() -> None:
    clock, ids = SystemClock(), CountedLedgerIds()
    factory = EmbeddedLedgers(None, BookieSettings(is_volatile=True))
    for _ in range(2):
        await factory.prepare()
        store = await factory(MemoryMetadataStore(clock), ids, clock)
        assert await all_ledgers(store) == []
        await store.create(Listener(), LedgerOptions())
        await store.close()


async def test_a_full_disk_gets_its_reserve_back_before_the_metadata_is_opened(
    tmp_path: Path,
) -> None:
    clock = SystemClock()
    factory = EmbeddedLedgers(tmp_path, SETTINGS)
    await factory.prepare()  # nothing is there yet
    store = await factory(MemoryMetadataStore(clock), CountedLedgerIds(), clock)
    await store.close()
    reserve = tmp_path / "ledgers" / RESERVE
    assert reserve.exists()

    await factory.prepare()
    assert reserve.exists(), "there is room"
    # A reserve that no disk has four times of: this one is full for it.
    await EmbeddedLedgers(tmp_path, replace(SETTINGS, reserve_bytes=1 << 60)).prepare()

    assert not reserve.exists()


async def test_what_was_moved_elsewhere_is_not_touched(tmp_path: Path) -> None:
    write_marker(tmp_path, cluster="large", address="zk:one", time="now")
    embedded = EmbeddedLedgers(tmp_path, BookieSettings())
    with pytest.raises(MigrationError, match="was moved into cluster large"):
        await embedded.prepare()
