"""EmbeddedMetadata: which stores it opens, and what it says when it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.common.errors import DirectoryLockedError, MetadataError, MigrationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.embedded import FILE, EmbeddedMetadata, MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.moved_marker import write_marker


async def test_a_directory_keeps_both_roles_in_one_file(tmp_path: Path) -> None:
    factory = EmbeddedMetadata(tmp_path / "new" / "data")
    stores = await factory(SystemClock())
    assert stores.local is stores.configuration
    await stores.local.put("/a", b"1")
    with pytest.raises(DirectoryLockedError):
        await factory(SystemClock())
    await stores.close()
    await stores.close()
    assert (tmp_path / "new" / "data" / "metadata.sqlite").exists()
    again = await factory(SystemClock())
    assert await again.local.exists("/a")
    await again.close()


async def test_without_a_directory_each_start_begins_with_nothing() -> None:
    factory = EmbeddedMetadata(None)
    first = await factory(SystemClock())
    await first.local.put("/a", b"1")
    await first.close()
    second = await factory(SystemClock())
    assert not await second.local.exists("/a")
    await second.close()


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file/data can't be made: .*--data-dir"):
        await EmbeddedMetadata(tmp_path / "file" / "data")(SystemClock())


async def test_two_stores_are_both_closed() -> None:
    local, configuration = MemoryMetadataStore(SystemClock()), MemoryMetadataStore(SystemClock())
    await MetadataStores(local=local, configuration=configuration).close()
    for store in (local, configuration):
        with pytest.raises(MetadataError, match="closed"):
            await store.get("/a")


async def test_what_was_moved_elsewhere_is_not_opened(tmp_path: Path) -> None:
    write_marker(tmp_path, cluster="large", address="zk:one", time="now")
    with pytest.raises(MigrationError, match="was moved into cluster large"):
        await EmbeddedMetadata(tmp_path)(SystemClock())
    assert not (tmp_path / FILE).exists()
