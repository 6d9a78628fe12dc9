"""One suite for every LedgerStore: what whoever uses one may rely on, and nothing more.

Where the contract leaves a store free (when a writer learns that it was fenced, how long a deleted
ledger can still be read), the tests take either.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pulsar_py.bookkeeper.store import BookKeeperSettings
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.local_disk import LocalDisk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import (
    EntryNotFoundError,
    EntryTooBigError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
    StoreBusyError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.ledgers.store import (
    LedgerOptions,
    LedgerReader,
    LedgerStore,
    LedgerWriter,
    StoreLimits,
)
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.storage.bookie import Bookie, BookieSettings
from pulsar_py.testing.disk import SimulatedDisk
from pulsar_py.testing.hostile_ledger_client import HostileLedgerStore
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.replicated_ledgers import ReplicatedLedgers
from tests.ledger_parts import all_ledgers

SMALL = BookieSettings(
    write_cache_bytes=20_000, append_limit_bytes=3_000_000, max_entry_bytes=1_000_000,
    journal_file_bytes=50_000, journal_group_bytes=5_000, entry_log_bytes=30_000, run_bytes=2_000,
    read_cache_bytes=10_000, minimum_free_bytes=0, disk_check_interval_seconds=0.01,
)  # fmt: skip
LIMITS = StoreLimits(
    max_entry_bytes=1_000_000, max_pinned_bytes=3_000_000, answer_timeout_seconds=60.0
)
REPLICATED = BookKeeperSettings(
    max_entry_bytes=LIMITS.max_entry_bytes, max_pinned_bytes=LIMITS.max_pinned_bytes
)
VOLATILE = BookieSettings(
    is_volatile=True, volatile_limit_bytes=3_000_000, max_entry_bytes=1_000_000
)


class Listener:
    """Remembers what a writer's owner is told, and asserts what the contract says about it."""

    def __init__(self) -> None:
        self.confirmed: list[int] = []
        self.failures: list[StorageError] = []
        self._changed = asyncio.Event()

    @property
    def last(self) -> int:
        return self.confirmed[-1] if self.confirmed else -1

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert last_add_confirmed > self.last, "always growing"
        assert not self.failures, "nothing is confirmed after a failure"
        self.confirmed.append(last_add_confirmed)
        self._changed.set()

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        assert not self.failures, "once"
        self.failures.append(error)
        self._changed.set()

    async def until(self, entry_id: int) -> None:
        while self.last < entry_id:
            assert not self.failures, self.failures
            self._changed.clear()
            await self._changed.wait()

    async def until_failed(self) -> StorageError:
        while not self.failures:
            self._changed.clear()
            await self._changed.wait()
        return self.failures[0]


DISKS: dict[str, Callable[[Path], Disk]] = {
    "local": LocalDisk,
    "memory": lambda _: MemoryDisk(),
    "simulated disk": lambda _: SimulatedDisk(random.Random(1)),
    "volatile": lambda _: MemoryDisk(),
}
OTHERS: dict[str, Callable[[], LedgerStore]] = {
    "simulated": lambda: SimulatedLedgerStore(LIMITS),
    "hostile, faults off": lambda: hostile(LedgerFaults()),
    "hostile, delays": lambda: hostile(LedgerFaults.delays(0.001)),
}


def hostile(faults: LedgerFaults) -> LedgerStore:
    return HostileLedgers(random.Random(1), faults, limits=LIMITS).connect("broker")


@asynccontextmanager
async def replicated(cluster: BookKeeperCluster) -> AsyncIterator[LedgerStore]:
    """A store on real bookies, without the ledgers of other tests."""
    clock = SystemClock()
    address = ZooKeeperAddress.parse(cluster.zookeeper.url)
    metadata = await ZooKeeperMetadataStore.open(address, clock)
    ledger_ids = MetadataLedgerIds(metadata)
    store = await ReplicatedLedgers.connect(
        metadata, clock, ledger_ids, chance=random.Random(1), settings=REPLICATED
    )
    for ledger_id in await all_ledgers(store):
        await store.delete(ledger_id)
    yield store
    await store.close()
    await ledger_ids.close()
    await metadata.close()


@pytest.fixture(params=[*DISKS, *OTHERS, "bookkeeper"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LedgerStore]:
    made: LedgerStore
    if request.param == "bookkeeper":
        async with replicated(request.getfixturevalue("bookkeeper")) as made:
            yield made
        return
    if request.param in OTHERS:
        made = OTHERS[request.param]()
    else:
        made = await Bookie.start(
            DISKS[request.param](tmp_path),
            clock=SystemClock(),
            ledger_ids=CountedLedgerIds(10),
            settings=VOLATILE if request.param == "volatile" else SMALL,
        )
    yield made
    await made.close()
    if isinstance(made, HostileLedgerStore):
        made.service.check()


async def filled(store: LedgerStore, count: int) -> tuple[LedgerWriter, Listener]:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())
    for entry_id in range(count):
        assert writer.append(entry(entry_id)) == entry_id
    await listener.until(count - 1)
    return writer, listener


def entry(entry_id: int) -> bytes:
    return b"%d " % entry_id * (entry_id % 60 + 1)


def append_times(writer: LedgerWriter, data: bytes, count: int) -> None:
    for _ in range(count):
        writer.append(data)


async def append_for_seconds(writer: LedgerWriter, seconds: float) -> None:
    """Append now and then until it is refused."""
    async with asyncio.timeout(seconds):
        while True:
            writer.append(b"on and on")
            await asyncio.sleep(0.01)


async def read_all(reader: LedgerReader, last: int) -> list[bytes]:
    read: list[bytes] = []
    while len(read) <= last:
        read += map(bytes, await reader.read(len(read), last, 3_000))
    return read


# --- appending -----------------------------------------------------------------------------------


async def test_entries_are_confirmed_and_read_back(store: LedgerStore) -> None:
    writer, listener = await filled(store, 500)

    assert await read_all(writer, 499) == [entry(entry_id) for entry_id in range(500)]
    assert writer.last_add_confirmed == writer.last_add_pushed == listener.last == 499
    assert writer.length_bytes == sum(len(entry(entry_id)) for entry_id in range(500))
    assert not listener.failures


async def test_a_run_is_queued_at_once_or_as_far_as_it_goes(store: LedgerStore) -> None:
    writer, listener = await filled(store, 1)
    too_big = bytes(store.limits.max_entry_bytes + 1)
    run = [b"a", b"b", too_big, b"c"]

    taken = writer.append_run(run)
    assert taken <= 2
    for data in run[taken:2]:
        writer.append(data)
    with pytest.raises(EntryTooBigError):
        writer.append(too_big)
    assert writer.append_run([b"d", b"e"]) == 2

    assert writer.last_add_pushed == 4
    await listener.until(4)
    assert await read_all(writer, 4) == [entry(0), b"a", b"b", b"d", b"e"]
    assert not listener.failures


async def test_append_tells_nobody_from_inside(store: LedgerStore) -> None:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())

    writer.append(b"x")

    assert not listener.confirmed
    assert (writer.last_add_pushed, writer.last_add_confirmed) == (0, -1)
    await listener.until(0)


async def test_a_writer_is_told_at_most_once_a_turn(store: LedgerStore) -> None:
    loop = asyncio.get_running_loop()
    turns = [0]
    told: list[int] = []

    def run_once(original: Callable[[], None] = loop._run_once) -> None:
        turns[0] += 1
        original()

    class Counting(Listener):
        def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
            told.append(turns[0])
            super().on_confirmed(ledger_id, last_add_confirmed)

    loop._run_once = run_once  # type: ignore[attr-defined]
    listener = Counting()
    writer = await store.create(listener, LedgerOptions())
    for _ in range(50):
        for _ in range(5):
            writer.append(b"x" * 500)
        await asyncio.sleep(0)
    await listener.until(249)
    writer.append(b"once more")  # all before may have been answered together
    await listener.until(250)

    assert len(told) == len(set(told)) > 1
    loop._run_once = type(loop)._run_once.__get__(loop)  # type: ignore[attr-defined]


async def test_an_empty_entry_is_an_entry(store: LedgerStore) -> None:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())
    writer.append(b"")
    writer.append(b"x")
    writer.append(())
    await listener.until(2)

    assert await read_all(writer, 2) == [b"", b"x", b""]


@pytest.mark.parametrize("size", [10, 5_000, 400_000])
async def test_views_and_pieces_are_entries(store: LedgerStore, size: int) -> None:
    listener = Listener()
    writer = await store.create(listener, LedgerOptions())
    memory = bytearray(random.Random(size).randbytes(2 * size))
    view = memoryview(memory)
    wanted = [bytes(memory[:size]), b"head" + bytes(memory[size:]), b"ab", bytes(memory[1:size])]

    writer.append(view[:size])
    writer.append((b"head", view[size:]))
    writer.append((b"a", b"b"))
    writer.append(view[1:size].toreadonly())
    await listener.until(3)
    memory[:] = bytes(2 * size)  # nothing of it is lent any more, but to whom it was given for good

    assert await read_all(writer, 2) == wanted[:3]
    assert writer.length_bytes == sum(map(len, wanted))
    reader = await store.recover(writer.ledger_id)
    assert (await read_all(reader, 2))[:3] == wanted[:3]


async def test_an_entry_beyond_the_limit_is_refused_and_the_ledger_goes_on(
    store: LedgerStore,
) -> None:
    writer, listener = await filled(store, 1)
    limit = store.limits.max_entry_bytes

    for data in (bytes(limit + 1), (bytes(limit), b"x"), memoryview(bytes(limit + 1))):
        with pytest.raises(EntryTooBigError, match=f"{limit + 1} bytes.*{limit}"):
            writer.append(data)
    writer.append(bytes(limit))

    await listener.until(1)
    assert len((await writer.read(1, 1, 1))[0]) == limit


async def test_what_may_be_pinned_is_bounded(store: LedgerStore) -> None:
    limit = store.limits.max_pinned_bytes
    writer, listener = await filled(store, 0)
    size = min(store.limits.max_entry_bytes, 400_000)
    data = bytes(size)

    with pytest.raises(StoreUnavailableError) as refused:
        append_times(writer, data, limit // size + 2)
    pushed = writer.last_add_pushed

    assert (pushed + 1) * size <= limit
    assert pushed >= 0
    await listener.until(pushed)
    if isinstance(refused.value, StoreBusyError):  # else memory is where it keeps everything
        async with asyncio.timeout(30):
            while True:
                try:
                    writer.append(data)
                except StoreBusyError:
                    await asyncio.sleep(0.01)
                else:
                    break
        await listener.until(pushed + 1)
    assert not listener.failures


async def test_a_buffer_with_many_entries_is_pinned_once(store: LedgerStore) -> None:
    writer, listener = await filled(store, 0)
    size = min(store.limits.max_entry_bytes, store.limits.max_pinned_bytes // 8)
    memory = memoryview(bytearray(5 * size))

    for start in range(0, 5 * size, size):
        writer.append(memory[start : start + size])

    await listener.until(4)


async def test_many_ledgers_at_once_keep_their_entries_apart(store: LedgerStore) -> None:
    writers = [await filled(store, 0) for _ in range(20)]
    for entry_id in range(60):
        for writer, _ in writers:
            writer.append(b"%d:%d" % (writer.ledger_id, entry_id))
        await asyncio.sleep(0)

    for writer, listener in writers:
        await listener.until(59)
        wanted = [b"%d:%d" % (writer.ledger_id, entry_id) for entry_id in range(60)]
        assert await read_all(writer, 59) == wanted


# --- reading -------------------------------------------------------------------------------------


async def test_reads_give_at_least_one_entry_then_what_fits(store: LedgerStore) -> None:
    writer, _ = await filled(store, 50)

    assert list(await writer.read(10, 49, 1)) == [entry(10)]
    some = await writer.read(10, 49, len(entry(10)) + len(entry(11)) + 1)
    assert list(some) == [entry(10), entry(11)][: len(some)]


async def test_nothing_unconfirmed_is_read(store: LedgerStore) -> None:
    writer, _ = await filled(store, 5)
    writer.append(b"waiting")

    assert writer.read_cached(5, 9, 1000) is None
    with pytest.raises(EntryNotFoundError):
        await writer.read(9, 9, 1000)


async def test_a_reader_beside_a_writer_learns_the_end_by_asking(store: LedgerStore) -> None:
    writer, listener = await filled(store, 2)
    reader = await store.open(writer.ledger_id)
    assert reader.last_add_confirmed <= 1

    writer.append(b"new")
    await listener.until(2)
    writer.append(b"newer")
    await listener.until(3)

    assert not reader.is_closed
    async with asyncio.timeout(30):
        # The last one may be missing, and nobody tells.
        while await reader.read_last_add_confirmed() < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert reader.last_add_confirmed >= 2
    assert list(await reader.read(2, 2, 100)) == [b"new"]
    await reader.close()
    writer.append(b"goes on")
    await listener.until(4)
    await writer.close()
    assert (await store.open(writer.ledger_id)).last_add_confirmed == 4


# --- closing and fencing -------------------------------------------------------------------------


async def test_close_ends_the_ledger_at_its_last_confirmed_entry(store: LedgerStore) -> None:
    writer, listener = await filled(store, 3)
    for _ in range(3):
        writer.append(b"pending")

    await writer.close()

    last = writer.last_add_confirmed
    assert writer.is_closed
    assert (await store.info(writer.ledger_id)).last_entry_id == last == listener.last
    assert [type(each) for each in listener.failures] == [LedgerClosedError] * (last < 5)
    assert last == 2, "nothing had a turn to be confirmed in"
    with pytest.raises(LedgerClosedError):
        writer.append(b"too late")
    await writer.close()


async def test_a_closed_ledger_stays_as_it_is(store: LedgerStore) -> None:
    writer, listener = await filled(store, 3)
    await writer.close()
    await writer.close()

    reader = await store.recover(writer.ledger_id)

    assert reader.is_closed
    assert (reader.last_add_confirmed, reader.length_bytes) == (2, writer.length_bytes)
    assert await read_all(reader, 2) == [entry(0), entry(1), entry(2)]
    assert not listener.failures


async def test_recover_closes_with_all_that_was_confirmed(store: LedgerStore) -> None:
    writer, _ = await filled(store, 20)
    writer.append(b"in doubt")

    reader = await store.recover(writer.ledger_id)
    again = await store.recover(writer.ledger_id)

    assert reader.is_closed
    assert 19 <= reader.last_add_confirmed == again.last_add_confirmed <= 20
    assert (await read_all(reader, reader.last_add_confirmed))[:20] == [
        entry(entry_id) for entry_id in range(20)
    ]
    info = await store.info(writer.ledger_id)
    assert info.is_closed
    assert (info.last_entry_id, info.length_bytes) == (
        reader.last_add_confirmed,
        reader.length_bytes,
    )


async def test_a_fenced_writer_learns_it_when_it_appends(store: LedgerStore) -> None:
    writer, listener = await filled(store, 20)
    reader = await store.recover(writer.ledger_id)

    # It may know already, or not before somebody answers.
    try:
        writer.append(b"late")
    except LedgerFencedError:
        pass
    else:
        assert isinstance(await listener.until_failed(), LedgerFencedError)
    with pytest.raises(LedgerFencedError):
        writer.append(b"refused")
    with pytest.raises(LedgerFencedError):
        await writer.close()
    assert listener.last == reader.last_add_confirmed == 19
    assert (await store.open(writer.ledger_id)).last_add_confirmed == 19


# --- deleting ------------------------------------------------------------------------------------


async def test_deleted_ledgers_are_gone_for_who_opens_them(store: LedgerStore) -> None:
    writer, _ = await filled(store, 10)
    kept, _ = await filled(store, 1)

    await store.delete(writer.ledger_id)
    await store.delete(writer.ledger_id)
    await store.delete(99_999)

    assert await all_ledgers(store) == [kept.ledger_id]
    for call in (store.open, store.recover, store.info, store.custom_metadata):
        with pytest.raises(LedgerNotFoundError):
            await call(writer.ledger_id)


async def test_handles_on_a_deleted_ledger_end_some_time(store: LedgerStore) -> None:
    writer, listener = await filled(store, 10)
    writer.append(b"tells that those before are confirmed")
    await listener.until(10)
    reader = await store.open(writer.ledger_id)
    await store.delete(writer.ledger_id)

    # As long as they read, they read what was there.
    with suppress(LedgerNotFoundError):
        assert list(await reader.read(3, 3, 1000)) == [entry(3)]
    with pytest.raises(LedgerNotFoundError):
        await append_for_seconds(writer, 30)
    with pytest.raises(LedgerNotFoundError):
        await writer.close()
    assert all(isinstance(each, LedgerNotFoundError) for each in listener.failures)


async def test_unknown_ledgers_are_not_found(store: LedgerStore) -> None:
    for call in (store.open, store.recover, store.info, store.custom_metadata):
        with pytest.raises(LedgerNotFoundError):
            await call(4711)


# --- ids, lists, labels --------------------------------------------------------------------------


async def test_ids_grow(store: LedgerStore) -> None:
    ids = []
    for _ in range(10):
        ids.append((await filled(store, 0))[0].ledger_id)
        await store.delete(ids[-1])

    assert ids == sorted(set(ids))
    assert ids[0] >= 1


async def test_the_list_comes_in_ascending_pages(store: LedgerStore) -> None:
    writers = await asyncio.gather(*(store.create(Listener(), LedgerOptions()) for _ in range(250)))

    listed = [list(page) async for page in store.list_ledgers()]

    assert [ledger_id for page in listed for ledger_id in page] == sorted(
        writer.ledger_id for writer in writers
    )


async def test_custom_metadata_is_kept(store: LedgerStore) -> None:
    options = LedgerOptions(custom_metadata={"a": b"1", "b": b""})
    writer = await store.create(Listener(), options)

    assert await store.custom_metadata(writer.ledger_id) == {"a": b"1", "b": b""}
    info = await store.info(writer.ledger_id)
    assert info.custom_metadata == {"a": b"1", "b": b""}
    assert (info.is_closed, info.last_entry_id, info.length_bytes) == (False, None, None)


async def test_a_wrong_password_opens_nothing(store: LedgerStore) -> None:
    writer = await store.create(Listener(), LedgerOptions(password=b"secret"))

    for call in (store.open, store.recover):
        with pytest.raises(StorageError, match="password"):
            await call(writer.ledger_id, password=b"guess")
    await (await store.open(writer.ledger_id, password=b"secret")).close()
