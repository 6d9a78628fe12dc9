from __future__ import annotations

import asyncio
import logging
import random
from array import array
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.storage.journal import journal
from pulsar_py.storage.journal.file_header import FILE_HEADER_BYTES, decode_file_header
from pulsar_py.storage.journal.journal import (
    Group,
    Journal,
    Mark,
    OnceWriter,
    next_file_id,
    take_section,
    written_once,
)
from pulsar_py.storage.journal.journal_files import JournalFiles, journal_path
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.testing.clock import run_virtual
from pulsar_py.testing.disk import SimulatedDisk
from tests.unit.storage.support import SMALL, turns


class Recorder:
    """A journal and what it reported."""

    def __init__(self, disk: Disk, once: OnceWriter | None = None, **changes: object) -> None:
        self.groups: list[tuple[Group, StorageError | None]] = []
        settings = replace(SMALL, **changes)  # type: ignore[arg-type]
        self.files = JournalFiles(disk, settings)
        self.journal = Journal(
            self.files,
            settings,
            end=(1, 0),
            on_group=self.on_group,
            once=once,
        )

    def on_group(self, group: Group, error: StorageError | None) -> None:
        self.groups.append((group, error))
        for ledger, section in zip(group.ledgers, group.sections, strict=True):
            if error is None:
                ledger.confirm(section.last_entry_id, section.size_bytes)
            else:
                ledger.give_up(error)
                ledger.take_back()
        for change in group.changes:
            change.done.set_result(None)

    def append(self, ledger: Ledger, *entries: bytes) -> None:
        for entry in entries:
            if not ledger.pending:
                self.journal.enqueue(ledger)
            ledger.pending.append(entry)
            ledger.last_add_pushed += 1

    @property
    def shapes(self) -> list[list[tuple[int, int, int]]]:
        return [
            [(s.ledger_id, s.first_entry_id, len(s.entries)) for s in group.sections]
            for group, _ in self.groups
        ]


async def memory_disk() -> MemoryDisk:
    disk = MemoryDisk()
    await disk.make_directory("journal")
    return disk


async def test_what_one_tick_appends_is_one_group() -> None:
    recorder = Recorder(await memory_disk())
    one, two = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())

    recorder.append(one, b"a", b"b")
    recorder.append(two, b"c")
    recorder.append(one, b"d")
    await turns()

    assert recorder.shapes == [[(1, 0, 3), (2, 0, 1)]]
    await recorder.journal.close()


async def test_what_comes_during_a_write_is_the_next_group() -> None:
    recorder = Recorder(await memory_disk())
    ledger = Ledger(1, LedgerRecord())
    recorder.append(ledger, b"a")
    await turns(1)

    recorder.append(ledger, b"b")
    recorder.append(ledger, b"c")
    await turns()

    assert recorder.shapes == [[(1, 0, 1)], [(1, 1, 2)]]
    await recorder.journal.close()


async def test_groups_are_bounded_and_every_ledger_gets_its_turn() -> None:
    recorder = Recorder(await memory_disk(), journal_group_bytes=1000)
    one, two = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())

    recorder.append(one, *[b"x" * 400] * 5)
    recorder.append(two, *[b"y" * 400] * 2)
    await turns()

    assert recorder.shapes == [[(1, 0, 2), (2, 0, 1)], [(1, 2, 2), (2, 1, 1)], [(1, 4, 1)]]
    await recorder.journal.close()


async def test_a_record_follows_its_ledgers_entries() -> None:
    recorder = Recorder(await memory_disk(), journal_group_bytes=100)
    ledger, other = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())
    recorder.append(ledger, *[b"x" * 60] * 3)

    done = recorder.journal.submit(ledger, LedgerRecord())
    other_done = recorder.journal.submit(other, LedgerRecord())
    await done

    places = [
        place
        for place, (group, _) in enumerate(recorder.groups)
        for change in group.changes
        if change.ledger is ledger
    ]
    assert places == [2]
    assert other_done.done()
    await recorder.journal.close()


async def test_files_roll_and_each_names_the_end_before_it() -> None:
    disk = await memory_disk()
    recorder = Recorder(disk, journal_file_bytes=2000)
    ledger = Ledger(1, LedgerRecord())
    for _ in range(6):
        recorder.append(ledger, b"x" * 900)
        await turns()

    names = await disk.list_directory("journal")
    await recorder.journal.close()

    assert names[:3] == ["0000000001", "0000000002", "0000000003"]
    first, second = [await disk.read_whole(journal_path(n)) for n in (1, 2)]
    header = decode_file_header(second, "2")
    assert header is not None
    assert header.previous_end - 512 < len(first.rstrip(b"\0")) <= header.previous_end
    assert recorder.journal.end[0] == 3


async def test_an_error_fails_one_group_and_begins_a_new_file() -> None:
    disk = MemoryDisk(capacity_bytes=30_000)
    await disk.make_directory("journal")
    recorder = Recorder(disk, journal_file_bytes=10_000, journal_group_bytes=100_000)
    ledger, other = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())
    recorder.append(ledger, b"first")
    await turns()
    recorder.append(other, b"x" * 50_000)
    await turns()
    recorder.append(ledger, b"second")
    await turns()

    assert [error is None for _, error in recorder.groups] == [True, False, True]
    assert recorder.journal.end[0] == 2
    header = decode_file_header(await disk.read_whole(journal_path(2)), "2")
    assert header is not None
    assert header.previous_end == recorder.groups[0][0].end[1]
    await recorder.journal.close()


@pytest.mark.parametrize(
    ("journal_file_bytes", "minimum_free_bytes"), [(50_000_000, 0), (1 << 70, 0), (6_000, 25_000)]
)
async def test_a_file_that_would_take_the_room_is_not_reserved(
    journal_file_bytes: int, minimum_free_bytes: int
) -> None:
    disk = MemoryDisk(capacity_bytes=30_000)
    await disk.make_directory("journal")
    recorder = Recorder(
        disk, journal_file_bytes=journal_file_bytes, minimum_free_bytes=minimum_free_bytes
    )
    recorder.append(Ledger(1, LedgerRecord()), b"first")
    await turns()

    assert [error for _, error in recorder.groups] == [None]
    assert len(await disk.read_whole(journal_path(1))) == 512
    await recorder.journal.close()


@pytest.mark.parametrize("error", [StorageError("File too large"), OverflowError("int too big")])
async def test_whoever_waits_is_told_when_no_file_could_be_begun(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    disk = SimulatedDisk(random.Random(1))
    await disk.make_directory("journal")
    disk.fault = lambda kind, path: error if kind == "create" else None
    recorder, ledger = Recorder(disk), Ledger(1, LedgerRecord())
    recorder.append(ledger, b"first")
    await turns()

    assert [str(error) in str(failure) for _, failure in recorder.groups] == [True]
    disk.fault = None
    recorder.append(ledger, b"second")
    await turns()
    assert recorder.groups[1][1] is None
    await recorder.journal.close()


async def test_without_a_journal_groups_end_without_a_write() -> None:
    disk = await memory_disk()
    recorder = Recorder(disk, is_volatile=True)
    ledger = Ledger(1, LedgerRecord())

    recorder.append(ledger, b"a")
    await turns(3)

    assert ledger.last_add_confirmed == 0
    assert await disk.list_directory("journal") == []
    await recorder.journal.close()


def test_a_section_takes_what_fits_and_at_least_one() -> None:
    ledger = Ledger(1, LedgerRecord())
    ledger.pending = [b"x" * 10 for _ in range(5)]
    ledger.last_add_pushed = 4

    assert len(take_section(ledger, 35).entries) == 3
    assert len(take_section(ledger, 1).entries) == 1
    last = take_section(ledger, 1000)
    assert (last.first_entry_id, len(last.entries), ledger.pending) == (4, 1, [])
    ledger.check()


async def test_blocks_begin_at_multiples_of_the_devices_blocks() -> None:
    disk = await memory_disk()
    recorder, ledger = Recorder(disk), Ledger(1, LedgerRecord())
    for size in (3, 700, 512, 0):
        recorder.append(ledger, b"x" * size)
        await turns()

    data = await disk.read_whole(journal_path(1))
    assert [at for at in range(0, len(data), 4) if data[at : at + 4] == b"JBL2"] == [
        FILE_HEADER_BYTES,
        512,
        1536,
        2560,
    ]
    assert [group.end[1] for group, _ in recorder.groups] == [512, 1536, 2560, 3072]
    await recorder.journal.close()


async def test_a_group_is_never_larger_than_its_files_header_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "GROUP_ENTRIES_COUNT", 1024)
    monkeypatch.setattr(journal, "GROUP_LEDGERS_COUNT", 20)
    disk = await memory_disk()
    recorder = Recorder(disk, journal_group_bytes=1000, max_entry_bytes=300)
    recorder.append(Ledger(1, LedgerRecord()), *[b""] * 5000)
    recorder.append(Ledger(2, LedgerRecord()), *[b"x" * 300] * 20)
    record = LedgerRecord(custom_metadata={"k": b"v" * 250})
    for ledger_id in range(10):
        recorder.journal.submit(Ledger(ledger_id, LedgerRecord()), record)
    await turns(200)

    starts = [0, *(group.end[1] for group, _ in recorder.groups)]
    longest = max(end - start for start, end in pairwise(starts))
    header = decode_file_header(await disk.read_whole(journal_path(1)), "1")
    assert header is not None
    assert longest <= header.largest_block_bytes < 20_000
    assert sum(len(s) for s in recorder.shapes) > 6
    await recorder.journal.close()


def test_file_ids_go_on_behind_the_end() -> None:
    assert next_file_id((1, 0)) == 1
    assert next_file_id((3, 40)) == 4


def test_a_long_queue_is_cut_piece_by_piece_in_order() -> None:
    ledger = Ledger(1, LedgerRecord())
    ledger.pending = [b"%d" % number for number in range(5000)]
    ledger.last_add_pushed = 4999
    taken: list[bytes] = []
    while ledger.pending:
        section = take_section(ledger, 6000)
        ledger.check()
        assert section.size_bytes == sum(map(len, section.entries)) <= 6000
        assert list(section.lengths) == [len(entry) for entry in section.entries]
        taken += section.entries

    assert taken == [b"%d" % number for number in range(5000)]


def test_large_entries_that_are_enough_are_written_once() -> None:
    def section(*sizes: int) -> Section:
        return Section(1, 0, [bytes(size) for size in sizes], array("I", sizes), sum(sizes))

    settings = BookieSettings(once_group_bytes=3000, once_section_bytes=900, once_entry_bytes=200)
    large, small, few = section(1000, 1000), section(*[100] * 50), section(800)

    assert written_once([large, small, few, large], settings) == [large, large]
    assert written_once([large, small, few], settings) == []
    assert written_once([large] * 9, replace(settings, once_group_bytes=0)) == []


# --- groups taken ahead ------------------------------------------------------------------------

SYNC_SECONDS = 1.0


class Once:
    """Writes of large entries that end, or fail, when the test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._writes: list[asyncio.Future[None]] = []

    async def write(self, sections: Sequence[Section]) -> None:
        self.log.append(f"write {sections[0].first_entry_id}")
        self._writes.append(asyncio.get_running_loop().create_future())
        await self._writes[-1]
        for section in sections:
            section.runs = [Location(9, 0, section.size_bytes, len(section.entries))]

    async def end_write(self, error: StorageError | None = None, *, place: int = 0) -> None:
        """End the write at that place, the oldest by default, and let the journal see that."""
        write = self._writes.pop(place)
        if error is None:
            write.set_result(None)
        else:
            write.set_exception(error)
        await turns()

    def refer(self, sections: Sequence[Section], end: Mark) -> None:
        self.log.append(f"refer {sections[0].first_entry_id}")

    async def give_up(self) -> None:
        self.log.append("give up")


class Scene:
    """A journal whose syncs take a second; entries of 500 bytes are large from two on."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(random.Random(1))
        self.disk.slow = lambda path: SYNC_SECONDS if path.startswith("journal") else 0.0
        self.once = Once()
        self.recorder = Recorder(
            self.disk,
            self.once,
            once_group_bytes=1000,
            once_section_bytes=500,
            once_entry_bytes=400,
            journal_group_bytes=100_000,
        )
        self.ledger, self.other = Ledger(1, LedgerRecord()), Ledger(2, LedgerRecord())
        self.journal = self.recorder.journal

    async def begin(self) -> None:
        """Bring the first large group, of two entries, to where its block is being synced."""
        await self.disk.make_directory("journal")
        self.append(self.ledger, 2)
        await turns()

    def append(self, ledger: Ledger, count: int) -> None:
        self.recorder.append(ledger, *(b"x" * 500 for _ in range(count)))

    async def synced(self) -> None:
        await asyncio.sleep(SYNC_SECONDS)
        await turns()

    @property
    def outcomes(self) -> list[bool]:
        return [error is None for _, error in self.recorder.groups]


def scene(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time."""

    async def work() -> None:
        made = Scene()
        await made.begin()
        await test(made)
        await made.journal.close()

    @wraps(test)
    def run() -> None:
        run_virtual(work())

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest would ask for its arguments
    return run


@scene
async def test_large_entries_are_written_while_the_block_before_them_is_synced(s: Scene) -> None:
    s.append(s.ledger, 3)
    await s.once.end_write()
    assert s.once.log == ["write 0", "refer 0", "write 2"]
    s.append(s.ledger, 2)
    await s.once.end_write()
    assert s.once.log == ["write 0", "refer 0", "write 2"]  # its block has to wait
    assert s.outcomes == []
    await s.synced()
    assert s.outcomes == [True]
    assert s.once.log[3:] == ["refer 2", "write 5"]
    await s.synced()
    await s.once.end_write()
    await s.synced()
    assert s.outcomes == [True, True, True]
    assert s.recorder.shapes == [[(1, 0, 2)], [(1, 2, 3)], [(1, 5, 2)]]


@scene
async def test_a_block_follows_the_one_before_it_however_long_its_entries_take(s: Scene) -> None:
    s.append(s.other, 3)
    await s.once.end_write()
    await s.synced()
    assert s.outcomes == [True]
    assert s.journal.group is not None
    assert s.journal.waiting() == [s.other]
    await s.once.end_write()
    await s.synced()
    assert s.outcomes == [True, True]


@scene
async def test_two_groups_are_written_at_once_and_their_blocks_keep_the_order(s: Scene) -> None:
    s.append(s.ledger, 200)  # as many bytes as a group may have
    s.append(s.other, 120)
    await s.once.end_write()
    assert s.once.log == ["write 0", "refer 0", "write 2", "write 0"]
    s.append(s.ledger, 200)
    await s.once.end_write(place=1)
    await s.synced()
    assert s.outcomes == [True]
    assert s.once.log[4:] == []  # the second of them is written, and its block has to wait
    await s.once.end_write()
    assert s.once.log[4:] == ["refer 2", "write 202"]
    await s.synced()
    assert s.once.log[6:] == ["refer 0"]
    await s.once.end_write()
    await s.synced()
    await s.synced()
    assert s.outcomes == [True, True, True, True]
    assert s.recorder.shapes == [[(1, 0, 2)], [(1, 2, 200)], [(2, 0, 120)], [(1, 202, 200)]]


@scene
async def test_a_second_group_is_taken_ahead_only_if_it_is_half_full(s: Scene) -> None:
    s.append(s.ledger, 200)
    s.append(s.other, 90)
    await s.once.end_write()
    assert s.once.log == ["write 0", "refer 0", "write 2"]
    await s.synced()
    await s.once.end_write()
    await s.once.end_write()
    await s.synced()
    await s.synced()
    assert s.outcomes == [True, True, True]


@scene
async def test_both_groups_behind_a_failed_block_fail_once_both_writes_have_ended(
    s: Scene,
) -> None:
    s.disk.fault = lambda kind, path: StorageError("broken") if kind == "sync" else None
    s.append(s.ledger, 200)
    s.append(s.other, 120)
    await s.once.end_write()
    await s.synced()
    s.disk.fault = None
    await s.once.end_write(place=1)
    assert s.outcomes == []
    await s.once.end_write()
    assert s.outcomes == [False, False, False]
    assert s.once.log[-1] == "give up"
    s.append(s.other, 1)
    await s.synced()
    assert s.outcomes == [False, False, False, True]


@scene
async def test_a_failed_write_of_a_second_group_fails_when_its_turn_comes(s: Scene) -> None:
    s.append(s.ledger, 200)
    s.append(s.other, 120)
    await s.once.end_write()
    await s.once.end_write(StorageError("broken"), place=1)
    await s.once.end_write()
    await s.synced()
    await s.synced()
    assert s.outcomes == [True, True, False]
    assert s.once.log[-1] == "give up"


@scene
async def test_few_entries_are_not_taken_ahead(s: Scene) -> None:
    s.append(s.ledger, 1)
    await s.once.end_write()
    s.append(s.ledger, 3)
    await s.synced()
    assert s.recorder.shapes == [[(1, 0, 2)]]
    await s.once.end_write()
    await s.synced()
    assert s.recorder.shapes == [[(1, 0, 2)], [(1, 2, 4)]]


@scene
async def test_a_failed_block_fails_the_group_behind_it_once_its_write_ends(s: Scene) -> None:
    s.disk.fault = lambda kind, path: StorageError("broken") if kind == "sync" else None
    s.append(s.ledger, 3)
    s.append(s.other, 2)
    await s.once.end_write()
    await s.synced()
    assert s.outcomes == []  # what was lent to the second group is still being read
    s.append(s.ledger, 1)
    s.disk.fault = None
    await s.once.end_write()
    assert s.outcomes == [False, False]
    assert s.once.log[-1] == "give up"
    assert (s.ledger.last_add_taken, s.ledger.pending) == (-1, [])
    s.append(s.other, 1)
    await s.synced()
    assert s.outcomes == [False, False, True]
    assert s.recorder.shapes[-1] == [(2, 0, 1)]


@scene
async def test_large_entries_that_could_not_be_written_fail_their_group_alone(s: Scene) -> None:
    s.append(s.other, 3)
    await s.once.end_write()
    await s.once.end_write(StorageError("broken"))
    assert s.outcomes == []
    await s.synced()
    assert s.outcomes == [True, False]
    assert (s.ledger.last_add_confirmed, s.other.last_add_taken) == (1, -1)


@scene
async def test_both_groups_are_late_where_the_disk_answers_late(s: Scene) -> None:
    s.append(s.other, 3)
    await s.once.end_write()
    assert s.journal.waiting() == [s.ledger, s.other]
    s.journal.give_up_group()
    await s.synced()
    assert s.outcomes == []
    await s.once.end_write()
    assert s.outcomes == [False, False]
    assert "give up" in s.once.log
