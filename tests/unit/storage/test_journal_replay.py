"""JournalReplay: what the checkpoint does not have comes back, and is flushed in between."""

from __future__ import annotations

import random

from pulsar_py.testing.disk import SimulatedDisk
from tests.ledger_parts import all_ledgers
from tests.unit.storage.support import Ids, entry, start, write


async def test_what_was_not_flushed_comes_back_without_filling_the_memory() -> None:
    ids, disk = Ids(), SimulatedDisk(random.Random(1))
    bookie = await start(disk, ids, write_cache_bytes=1_000_000, append_limit_bytes=4_000_000)
    writer, _ = await write(bookie, 1000)
    assert bookie.statistics().index_tables_count == 0
    disk.bury()
    disk = disk.after_crash()

    bookie = await start(disk, ids, write_cache_bytes=20_000)

    assert bookie.statistics().index_tables_count > 0
    assert bookie.statistics().write_cache_bytes < 40_000
    reader = await bookie.recover(writer.ledger_id)
    assert reader.last_add_confirmed == 999
    assert await reader.read(0, 0, 1000) == [entry(0)]
    assert await reader.read(999, 999, 1000) == [entry(999)]
    await bookie.close()


async def test_a_new_disk_has_nothing_to_replay() -> None:
    disk = SimulatedDisk(random.Random(1))
    bookie = await start(disk)
    for directory in ("entries", "index"):
        assert await disk.list_directory(directory) == []
    assert await all_ledgers(bookie) == []
    await bookie.close()
