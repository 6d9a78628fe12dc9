"""A disk that is really full: a small file system of its own, where the system lets us mount one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.errors import DiskFullError, StoreBusyError
from tests.unit.storage.support import Ids, entry, fill, start, write

SIZE_BYTES = 4 * 1024 * 1024
BALLAST_BYTES = 1024 * 1024
SETTINGS = {
    "write_cache_bytes": 200_000,
    "append_limit_bytes": 8_000_000,
    "journal_file_bytes": 200_000,
    "journal_group_bytes": 50_000,
    "entry_log_bytes": 400_000,
    "run_bytes": 20_000,
}


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(tmp_path)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system may be mounted here")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.mark.parametrize("minimum_free_bytes", [0, 1_000_000])
async def test_a_full_file_system_takes_no_writes_and_recovers(
    small_file_system: Path, minimum_free_bytes: int
) -> None:
    ids = Ids()
    ballast = small_file_system / "ballast"
    ballast.write_bytes(bytes(BALLAST_BYTES))
    settings = {**SETTINGS, "minimum_free_bytes": minimum_free_bytes}
    bookie = await start(LocalDisk(small_file_system), ids, **settings)
    kept, _ = await write(bookie, 20, 1000)
    writer, listener = await write(bookie, 1, 1000)
    # Where the engine does not look at the room, as much is let in as may wait.
    with pytest.raises(DiskFullError if minimum_free_bytes else StoreBusyError):
        fill(writer, 1000)
    if minimum_free_bytes:
        # What was let in has room, in the journal and in an entry log.
        await listener.until(writer.last_add_pushed)
        await bookie.flush()
        assert not listener.failures
        assert await LocalDisk(small_file_system).free_bytes() > 0
    else:
        await listener.until(1 << 40)  # Until the rest was told to have failed.
        assert isinstance(listener.failures[0], DiskFullError)
    confirmed = listener.confirmed
    assert await kept.read(0, 0, 1000) == [entry(0, 1000)]
    await bookie.close()

    bookie = await start(LocalDisk(small_file_system), ids, **settings)
    reader = await bookie.open(kept.ledger_id)
    assert await reader.read(0, 0, 1000) == [entry(0, 1000)]
    ballast.unlink()  # Somebody makes room: recovering and deleting have to write a record.
    left = await bookie.recover(writer.ledger_id)
    assert left.last_add_confirmed >= confirmed
    assert await left.read(confirmed, confirmed, 1000) == [bytes(1000)]
    await bookie.delete(writer.ledger_id)
    await bookie.collect_garbage()
    while not bookie.statistics().is_taking_writes:
        await bookie.flush()
    await write(bookie, 100, 1000)
    reader = await bookie.open(kept.ledger_id)
    assert await reader.read(19, 19, 1000) == [entry(19, 1000)]
    await bookie.close()
