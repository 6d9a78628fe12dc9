"""What is copied is a store of its own: all entries of its moment, and nothing of them is removed."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.disks.copied_file import CopiedFile
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import DiskFullError, StorageError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage import copying
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.copying import copied
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from tests.ledger_parts import all_ledgers
from tests.unit.storage.support import Ids, Listener, entry, start, write


async def nothing() -> None:
    pass


async def stored(files: list[CopiedFile]) -> MemoryDisk:
    disk = MemoryDisk()
    for file in files:
        data = b"".join([part async for part in file.parts()])
        assert len(data) == file.size_bytes
        await disk.replace(file.path, data)
    return disk


async def check(disk: MemoryDisk, ledger_id: int, count: int) -> Bookie:
    bookie = await start(disk, Ids(1000))
    reader = await bookie.recover(ledger_id)
    assert reader.last_add_confirmed == count - 1
    assert await reader.read(count - 1, count, 1000) == [entry(count - 1)]
    return bookie


async def test_a_copy_has_what_was_confirmed_and_starts_without_a_journal() -> None:
    bookie = await start(MemoryDisk())
    first, _ = await write(bookie, 300)
    await bookie.flush()
    second, _ = await write(bookie, 20)
    async with copied(bookie, nothing) as files:
        disk = await stored(list(files))
    assert not any(file.path.startswith("journal") for file in files)
    copy = await check(disk, first.ledger_id, 300)
    await copy.close()
    copy = await check(disk, second.ledger_id, 20)
    again, _ = await write(copy, 50)  # The copy's journal begins, and is replayed.
    await copy.close()
    copy = await check(disk, again.ledger_id, 50)
    await copy.close()
    await bookie.close()


async def test_files_stay_while_ledgers_are_deleted_and_logs_compacted() -> None:
    bookie = await start(MemoryDisk(), journal_files_count=1)
    writers = [(await write(bookie, 100))[0] for _ in range(5)]
    async with copied(bookie, nothing) as files:
        for writer in writers[1:]:
            await bookie.delete(writer.ledger_id)
        await bookie.collect_garbage(threshold=1.0)
        await bookie.collect_garbage(threshold=1.0)
        assert bookie.storage.hold.kept_count
        disk = await stored(list(files))
    assert not bookie.storage.hold.kept_count
    copy = await check(disk, writers[4].ledger_id, 100)
    assert len(await all_ledgers(copy)) == 5
    assert await all_ledgers(bookie) == [writers[0].ledger_id]
    await copy.close()
    await bookie.close()


async def test_a_deletion_that_has_begun_ends_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flush would write the ledger without entries: the deletion comes with the next one."""
    bookie = await start(MemoryDisk())
    kept, _ = await write(bookie, 10)
    gone, _ = await write(bookie, 40)
    submit, may_go_on = bookie.journal.submit, asyncio.Event()

    async def held(ledger: Ledger, record: LedgerRecord) -> None:
        await may_go_on.wait()
        await submit(ledger, record)

    monkeypatch.setattr(bookie.journal, "submit", held)
    happened: list[str] = []

    async def delete() -> None:
        await bookie.delete(gone.ledger_id)
        happened.append("deleted")

    async def copy_metadata() -> None:
        happened.append("metadata")

    async def copy() -> MemoryDisk:
        async with copied(bookie, copy_metadata) as files:
            return await stored(list(files))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(delete())
        await asyncio.sleep(0)
        made = tasks.create_task(copy())
        for _ in range(10):
            await asyncio.sleep(0)
        assert happened == []
        may_go_on.set()
    assert happened == ["deleted", "metadata"]
    copy_of = await check(made.result(), kept.ledger_id, 10)
    assert await all_ledgers(copy_of) == [kept.ledger_id]
    await copy_of.close()
    await bookie.close()


async def test_no_ledger_is_made_or_deleted_until_the_manifest_is_taken() -> None:
    bookie = await start(MemoryDisk())
    old, _ = await write(bookie, 10)
    changes: list[asyncio.Task[object]] = []

    async def change() -> None:
        loop = asyncio.get_running_loop()
        changes.append(loop.create_task(bookie.delete(old.ledger_id)))
        create = bookie.create(Listener(), LedgerOptions())
        changes.append(loop.create_task(create))
        for _ in range(20):
            await asyncio.sleep(0)

    async with copied(bookie, change) as files:
        disk = await stored(list(files))
        await asyncio.gather(*changes)
    copy = await check(disk, old.ledger_id, 10)
    assert await all_ledgers(copy) == [old.ledger_id]
    assert old.ledger_id not in await all_ledgers(bookie)
    await copy.close()
    await bookie.close()


async def test_a_copy_that_fails_or_takes_too_long_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    bookie = await start(MemoryDisk())

    async def fail() -> None:
        raise DiskFullError("full")

    with pytest.raises(DiskFullError):
        async with copied(bookie, fail):
            pass
    monkeypatch.setattr(copying, "HOLD_SECONDS", 0.01)
    with pytest.raises(StorageError, match=r"within 0\.01 s"):
        async with copied(bookie, asyncio.Event().wait):  # type: ignore[arg-type]
            pass
    await write(bookie, 1)
    assert not bookie.storage.hold.kept_count
    await bookie.close()
