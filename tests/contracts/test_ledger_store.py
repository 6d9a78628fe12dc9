"""One suite for every LedgerStore; the embedded one on each disk, and volatile."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.errors import (
    EntryNotFoundError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.common.local_disk import LocalDisk
from pulsar_py.common.memory_disk import MemoryDisk
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.storage.ledger_store import LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.testing.disk import SimulatedDisk

SMALL = BookieSettings(
    write_cache_bytes=20_000, append_limit_bytes=1_000_000, journal_file_bytes=50_000,
    journal_group_bytes=5_000, entry_log_bytes=30_000, run_bytes=2_000, read_cache_bytes=10_000,
    minimum_free_bytes=0,
)  # fmt: skip
Starter = Callable[[], "asyncio.Future[LedgerStore]"]


class Listener:
    """Remembers what a writer's owner is told."""

    def __init__(self) -> None:
        self.confirmed: list[int] = []
        self.failures: list[StorageError] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert not self.confirmed or last_add_confirmed > self.confirmed[-1]
        self.confirmed.append(last_add_confirmed)
        for entry_id, future in self._waiting:
            if entry_id <= last_add_confirmed and not future.done():
                future.set_result(None)

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        self.failures.append(error)

    async def until(self, entry_id: int) -> None:
        if not self.confirmed or self.confirmed[-1] < entry_id:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((entry_id, future))
            await future


@pytest.fixture(params=["local", "memory", "simulated", "volatile"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LedgerStore]:
    disks = {
        "local": lambda: LocalDisk(tmp_path),
        "memory": MemoryDisk,
        "simulated": lambda: SimulatedDisk(random.Random(1)),
        "volatile": MemoryDisk,
    }
    ids = itertools.count(10)

    async def ledger_ids() -> int:
        return next(ids)

    settings = BookieSettings(is_volatile=True) if request.param == "volatile" else SMALL
    made = await Bookie.start(
        disks[request.param](), clock=SystemClock(), ledger_ids=ledger_ids, settings=settings
    )
    yield made
    await made.close()


async def filled(store: LedgerStore, count: int) -> tuple[LedgerWriter, Listener]:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())
    for entry_id in range(count):
        assert writer.append(entry(entry_id)) == entry_id
    if count:
        await listener.until(count - 1)
    return writer, listener


def entry(entry_id: int) -> bytes:
    return b"%d " % entry_id * (entry_id % 60 + 1)


async def test_entries_are_confirmed_and_read_back(store: LedgerStore) -> None:
    writer, listener = await filled(store, 500)

    read: list[bytes] = []
    while len(read) < 500:
        read += await writer.read(len(read), 499, 3_000)

    assert read == [entry(entry_id) for entry_id in range(500)]
    assert writer.last_add_confirmed == writer.last_add_pushed == listener.confirmed[-1] == 499
    assert writer.length_bytes == sum(map(len, read))
    assert not listener.failures


async def test_append_tells_nobody_from_inside(store: LedgerStore) -> None:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())

    writer.append(b"x")

    assert not listener.confirmed
    assert (writer.last_add_pushed, writer.last_add_confirmed) == (0, -1)
    await listener.until(0)


async def test_entries_of_one_tick_are_confirmed_together(store: LedgerStore) -> None:
    _, listener = await filled(store, 40)

    assert listener.confirmed == [39]


async def test_an_empty_entry_is_an_entry(store: LedgerStore) -> None:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())
    writer.append(b"")
    writer.append(b"x")
    await listener.until(1)

    assert await writer.read(0, 1, 100) == [b"", b"x"]


async def test_reads_give_at_least_one_entry_then_what_fits(store: LedgerStore) -> None:
    writer, _ = await filled(store, 50)

    assert list(await writer.read(10, 49, 1)) == [entry(10)]
    some = await writer.read(10, 49, len(entry(10)) + len(entry(11)) + 1)
    assert list(some) == [entry(10), entry(11)]


async def test_nothing_unconfirmed_is_read(store: LedgerStore) -> None:
    writer, _ = await filled(store, 5)
    writer.append(b"waiting")

    assert writer.read_cached(5, 9, 1000) is None
    with pytest.raises(EntryNotFoundError):
        await writer.read(5, 9, 1000)
    assert len(await writer.read(0, 99, 10_000)) == 5


async def test_close_ends_the_ledger_at_its_last_entry(store: LedgerStore) -> None:
    writer, _ = await filled(store, 3)
    writer.append(b"also counted")

    await writer.close()

    assert writer.is_closed
    assert (await store.info(writer.ledger_id)).last_entry_id == 3
    with pytest.raises(LedgerClosedError):
        writer.append(b"too late")
    await writer.close()


async def test_recover_fences_the_writer_once_and_closes(store: LedgerStore) -> None:
    writer, listener = await filled(store, 20)
    writer.append(b"in doubt")

    reader = await store.recover(writer.ledger_id)
    again = await store.recover(writer.ledger_id)

    assert reader.is_closed
    assert reader.last_add_confirmed == again.last_add_confirmed >= 19
    assert [type(failure) for failure in listener.failures] == [LedgerFencedError]
    with pytest.raises(LedgerFencedError):
        writer.append(b"refused")
    info = await store.info(writer.ledger_id)
    assert info.is_fenced
    assert info.is_closed
    await writer.close()


async def test_open_follows_a_writer_without_disturbing_it(store: LedgerStore) -> None:
    writer, listener = await filled(store, 2)
    reader = await store.open(writer.ledger_id)

    writer.append(b"new")
    await listener.until(2)

    assert not reader.is_closed
    assert reader.last_add_confirmed == 2
    assert await reader.read(2, 2, 100) == [b"new"]
    await reader.close()
    writer.append(b"goes on")
    await listener.until(3)


async def test_deleted_ledgers_are_gone(store: LedgerStore) -> None:
    writer, listener = await filled(store, 10)
    kept, _ = await filled(store, 1)
    reader = await store.open(writer.ledger_id)

    await store.delete(writer.ledger_id)
    await store.delete(writer.ledger_id)
    await store.delete(99_999)

    assert list(await store.list_ledgers()) == [kept.ledger_id]
    assert [type(failure) for failure in listener.failures] == [LedgerNotFoundError]
    for call in (store.open, store.recover, store.info):
        with pytest.raises(LedgerNotFoundError):
            await call(writer.ledger_id)
    with pytest.raises(LedgerNotFoundError):
        await reader.read(0, 9, 100)
    with pytest.raises(LedgerNotFoundError):
        writer.append(b"refused")


async def test_a_closed_writer_of_a_deleted_ledger_says_so(store: LedgerStore) -> None:
    writer, _ = await filled(store, 1)
    await store.delete(writer.ledger_id)

    with pytest.raises(LedgerNotFoundError):
        await writer.close()


async def test_unknown_ledgers_are_not_found(store: LedgerStore) -> None:
    for call in (store.open, store.recover, store.info):
        with pytest.raises(LedgerNotFoundError):
            await call(4711)


async def test_custom_metadata_is_kept(store: LedgerStore) -> None:
    writer = await store.create(Listener(), LedgerOptions(custom_metadata={"a": b"1", "b": b""}))

    assert (await store.info(writer.ledger_id)).custom_metadata == {"a": b"1", "b": b""}


async def test_a_wrong_password_opens_nothing(store: LedgerStore) -> None:
    writer = await store.create(Listener(), LedgerOptions(password=b"secret"))

    for call in (store.open, store.recover):
        with pytest.raises(StorageError, match="password"):
            await call(writer.ledger_id, password=b"guess")
    await (await store.open(writer.ledger_id, password=b"secret")).close()


async def test_many_ledgers_at_once_keep_their_entries_apart(store: LedgerStore) -> None:
    writers = [await filled(store, 0) for _ in range(20)]
    for entry_id in range(60):
        for writer, _ in writers:
            writer.append(b"%d:%d" % (writer.ledger_id, entry_id))
        await asyncio.sleep(0)
    for _, listener in writers:
        await listener.until(59)

    for writer, _ in writers:
        read: list[bytes] = []
        while len(read) < 60:
            read += await writer.read(len(read), 59, 100_000)
        assert read == [b"%d:%d" % (writer.ledger_id, entry_id) for entry_id in range(60)]
