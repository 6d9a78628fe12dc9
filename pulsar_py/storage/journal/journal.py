"""`Journal`: writes all waiting entries and records as one group, with one write and sync (edge).

While a group is being written, entries of the next one gather in the ledgers' `pending` lists; a
group takes all of them, up to `journal_group_bytes`. If nothing is being written, the first append
of a loop tick schedules the take, so that all appends of that tick share it. So an entry costs no
call here: the writer's `append` only adds to the list and, if the list was empty, calls `enqueue`.

When the engine has no room for the entries that a group would confirm, the take is held back:
receipts are late, and publishers are slowed down by their own limits of unanswered entries.

The large entries of a group are written to an entry log before its block (`RunLog`). When that
block's write begins, the next groups are taken ahead as long as they seem to have large entries,
too, and these are written meanwhile, two groups at once; their blocks still follow one by one.
Groups that were taken ahead fail with the one before them, since their entries may follow lost
ones.

When a group ends, the next one is started first, then `on_group` is called with the one that ended.
After a failed write it is unknown which of the group's bytes are stored: the file is not written
any more, and the next file's header says that nothing after its last confirmed block counts. Files
are created one ahead; `journal_files` says how.

The entries of a group come before its records, and a record waits until its ledger has nothing
pending; so a ledger's records always follow its entries.
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import Protocol

from pulsar_py.common.buffer import Buffer
from pulsar_py.common.disks.disk import AppendFile
from pulsar_py.common.durations import Durations
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.storage.journal.file_header import FileHeader
from pulsar_py.storage.journal.journal_files import JournalFiles, NewFile
from pulsar_py.storage.journal.journal_format import (
    BLOCK_HEADER_BYTES,
    LENGTH_BYTES,
    SECTION_BYTES,
    Section,
    encode_block,
)
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from pulsar_py.storage.shared.lent import Lent
from pulsar_py.storage.shared.settings import BookieSettings

logger = logging.getLogger(__name__)

GROUP_LEDGERS_COUNT = 2000
"""The most ledgers, and the most changes of ledgers, of one group: the loop applies them without a
pause, which takes about 5 ms."""

GROUP_ENTRIES_COUNT = 1 << 18
"""The most entries that a group takes of one ledger, and about the most that it has: their lengths
have a bound then, and so has the part of a file in which recovery looks for blocks."""

AHEAD_GROUPS_COUNT = 2
"""The most groups that are taken ahead. A write past the page cache waits for the file system's
commit of its new blocks for half of the time, in which the disk could write another group."""

PIECE_ENTRIES_COUNT = 1024
"""Entries that are measured together when a section is cut from the pending entries."""

Mark = tuple[int, int]
"""A place in the journal: file id and offset."""


class RecordChange:
    """A ledger's new record on its way to the journal, and the future of its writer."""

    __slots__ = ("done", "ledger", "record", "stored")

    def __init__(self, ledger: Ledger, record: LedgerRecord) -> None:
        self.ledger = ledger
        self.record = record
        self.stored = record.encode()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Group:
    """The entries and records of one write."""

    __slots__ = (
        "changes",
        "end",
        "entries_bytes",
        "error",
        "is_late",
        "is_ready",
        "ledgers",
        "once",
        "sections",
        "taken_at",
    )

    def __init__(
        self,
        ledgers: list[Ledger],
        sections: list[Section],
        changes: list[RecordChange],
        entries_bytes: int,
    ) -> None:
        # One ledger for each section, in the same order.
        self.ledgers = ledgers
        self.sections = sections
        self.changes = changes
        self.entries_bytes = entries_bytes
        # Its end in the journal; set when its write begins.
        self.end: Mark = (0, 0)
        # Its appends have failed with a time-out: it counts as failed even if the write succeeds.
        self.is_late = False
        # Sections whose entries are written once; whether that is done, or there are none, and the
        # error of it.
        self.once: Sequence[Section] = ()
        self.is_ready = True
        self.error: Exception | None = None
        self.taken_at = 0.0  # on the loop's clock

    def mean_entry_bytes(self) -> float:
        """The mean size of its entries; 0 without any."""
        count = sum(len(section.entries) for section in self.sections)
        return self.entries_bytes / count if count else 0.0


class OnceWriter(Protocol):
    """Writes large entries once: to an entry log, to which the journal then only refers."""

    async def write(self, sections: Sequence[Section]) -> None:
        """Write the entries of sections, which then have their places; returns when durable."""

    def refer(self, sections: Sequence[Section], end: Mark) -> None:
        """Note that a block that ends there refers to them."""

    async def give_up(self) -> None:
        """Write no more where it wrote last."""


OnGroup = Callable[[Group, StorageError | None], None]
"""Called with each group that has ended, in order; the error is None if it is durable."""


class Journal:
    """Collects groups and writes their blocks, one at a time. Owned by the Bookie."""

    def __init__(
        self,
        files: JournalFiles,
        settings: BookieSettings,
        *,
        end: Mark,
        on_group: OnGroup,
        may_take: Callable[[], bool] = lambda: True,
        once: OnceWriter | None = None,
    ) -> None:
        """A journal that begins a new file.

        Args:
            files: Gives the files to begin.
            settings: Sizes.
            end: Where recovery found the journal's end.
            on_group: Called when a group has ended.
            may_take: While it returns False, groups wait, and with them their receipts. Code that
                makes it return True again calls `resume`.
            once: Writes large entries beside the journal; None to write all to the journal.
        """
        self._files = files
        self._settings = settings
        self._largest_block_bytes = largest_block_bytes(settings)
        self._on_group = on_group
        self._may_take = may_take
        self._once = None if settings.is_volatile else once
        self._loop = asyncio.get_running_loop()
        self._tasks = TaskOwner("journal")
        # Ledgers with pending entries; each once.
        self._dirty: deque[Ledger] = deque()
        self._changes: deque[RecordChange] = deque()
        # A group is being written, or a take is scheduled.
        self._is_busy = False
        # A take is due and waits for `resume`; `_is_busy` is True meanwhile.
        self._is_held_back = False
        self._group: Group | None = None
        # The groups taken ahead; their blocks follow that of `_group`, in this order.
        self._ahead: deque[Group] = deque()
        # Why `_group` has failed, while large entries of `_ahead` are still being written.
        self._failure: StorageError | None = None
        # End of the last confirmed block.
        self._end = end
        self._file: AppendFile | None = None
        # The header of that file.
        self._life = FileHeader(0)
        self._next_file_id = next_file_id(end)
        # The file reserved ahead, or the task that does it.
        self._prepared: asyncio.Task[NewFile] | None = None
        self._idle: asyncio.Future[None] | None = None
        self.groups_count = 0
        self.write_durations = Durations()  # of writing and syncing a group
        self.written_bytes = 0

    def enqueue(self, ledger: Ledger) -> None:
        """Note a ledger that has got its first pending entry."""
        self._dirty.append(ledger)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._take)

    def submit(self, ledger: Ledger, record: LedgerRecord) -> asyncio.Future[None]:
        """Write a ledger's new record; the future ends after `on_group` has seen it."""
        change = RecordChange(ledger, record)
        self._changes.append(change)
        if not self._is_busy:
            self._is_busy = True
            self._loop.call_soon(self._take)
        return change.done

    def resume(self) -> None:
        """Take the group that `may_take` has held back, if it allows that now."""
        if self._is_held_back:
            self._is_held_back = False
            self._loop.call_soon(self._take)

    def start_after(self, end: Mark) -> None:
        """Begin the next file after `end`, which recovery has found; call it before any write."""
        self._end = end
        self._next_file_id = next_file_id(end)

    @property
    def group(self) -> Group | None:
        """The group that is being written."""
        return self._group

    def waiting(self) -> list[Ledger]:
        """Ledgers with entries that are not answered; some may have none any more."""
        return [*chain.from_iterable(each.ledgers for each in self._taken()), *self._dirty]

    def give_up_group(self) -> None:
        """Count the group that is being written, and those taken ahead, as failed.

        That holds however they end. Owners of lent entries may change their memory from now on, so
        what the writes have stored must never be read.
        """
        for group in self._taken():
            group.is_late = True

    @property
    def next_file_id(self) -> int:
        """Id above those of all files begun, whether or not anything in them was confirmed."""
        return self._next_file_id

    @property
    def end(self) -> Mark:
        """The end of the last confirmed block."""
        return self._end

    async def close(self) -> None:
        """Write what is queued and stop."""
        if self._is_busy:
            self._idle = self._loop.create_future()
            await self._idle
        if self._prepared is not None:
            new = (await asyncio.gather(self._prepared, return_exceptions=True))[0]
            if isinstance(new, NewFile):
                await new.file.close()
                await self._files.retire(new.header.file_id)
        await self._tasks.drain()
        if self._file is not None:
            await self._file.close()

    def _taken(self) -> list[Group]:
        """The group that is being written, and those taken ahead."""
        return [*self._ahead] if self._group is None else [self._group, *self._ahead]

    def _take(self) -> None:
        assert self._group is None
        group: Group | None = None
        if self._dirty or self._changes:
            if not self._may_take():
                self._is_held_back = True
                return
            group = self._collect()
        if group is None:
            self._is_busy = False
            if self._idle is not None and not self._idle.done():
                self._idle.set_result(None)
            return
        self._group = group
        self._start(group)

    def _start(self, group: Group) -> None:
        """Begin to write a group that was just taken: its large entries, or else its block."""
        group.taken_at = self._loop.time()
        once = self._once
        if (
            once is not None
            and group.entries_bytes >= self._settings.once_group_bytes
            and (sections := written_once(group.sections, self._settings))
        ):
            group.once = sections
            group.is_ready = False
            self._tasks.spawn(self._write_once(once, group), "write once")
        elif group is self._group:
            self._commit(group)

    async def _write_once(self, once: OnceWriter, group: Group) -> None:
        """Write a group's large entries, then its block if it is its turn."""
        try:
            await once.write(group.once)
            if group.is_late:
                # The owners of lent entries may have changed them while they were written.
                await once.give_up()
        except Exception as error:  # noqa: BLE001 - any error fails the group
            group.error = error
        group.is_ready = True
        if group is self._group:
            self._commit(group)
        elif self._failure is not None:
            self._fail_when_written(self._failure)

    def _commit(self, group: Group) -> None:
        """Write the block of the group whose turn it is, and whose large entries are written."""
        assert group.is_ready
        if self._settings.is_volatile or group.is_late or group.error is not None:
            self._loop.call_soon(self._on_synced, group.error)  # one that is late counts as failed
        elif self._file is None or self._file.size_bytes >= self._settings.journal_file_bytes:
            if self._file is not None:
                self._files.on_written(self._life.file_id)
            self._tasks.spawn(self._begin_file_and_write(group), "begin file")
        else:
            self._write_block(self._file, group)

    def _take_ahead(self, group: Group) -> None:
        """Take groups after `group` that will have large entries: these need not wait.

        A second one only if it is half as large as a group may be: many small ones cost more.
        """
        settings = self._settings
        while len(self._ahead) < AHEAD_GROUPS_COUNT:
            half_bytes = settings.journal_group_bytes // 2
            least_bytes = half_bytes if self._ahead else settings.once_group_bytes
            count = sum(len(ledger.pending) for ledger in self._dirty)
            if count * group.mean_entry_bytes() < least_bytes:
                return
            if not self._may_take() or (ahead := self._collect()) is None:
                return
            self._ahead.append(ahead)
            self._start(ahead)

    def _collect(self) -> Group | None:
        """All waiting entries and changes, up to the limits of a group; None if there are none."""
        # Hot path: benchmarks/micro_storage.py, append
        room = most_bytes = self._settings.journal_group_bytes
        ledgers: list[Ledger] = []
        sections: list[Section] = []
        unfinished: list[Ledger] = []
        dirty = self._dirty
        entries_room = GROUP_ENTRIES_COUNT
        while dirty and room > 0 and entries_room > 0 and len(ledgers) < GROUP_LEDGERS_COUNT:
            ledger = dirty.popleft()
            if not ledger.pending:
                continue
            section = take_section(ledger, room)
            room -= section.size_bytes
            entries_room -= len(section.entries)
            ledgers.append(ledger)
            sections.append(section)
            if ledger.pending:
                unfinished.append(ledger)
        dirty += unfinished
        changes = self._collect_changes() if self._changes else []
        if not sections and not changes:
            return None
        return Group(ledgers, sections, changes, most_bytes - room)

    def _collect_changes(self) -> list[RecordChange]:
        changes: list[RecordChange] = []
        room = self._settings.journal_group_bytes
        for _ in range(min(len(self._changes), GROUP_LEDGERS_COUNT)):
            if room <= 0:
                break
            change = self._changes.popleft()
            if change.ledger.pending:
                self._changes.append(change)
            else:
                room -= len(change.stored)
                changes.append(change)
        return changes

    def _write_block(self, file: AppendFile, group: Group) -> None:
        file_id = self._life.file_id
        buffers: list[Buffer] = []
        offset = file.size_bytes
        # Replay reads block after block, so each has to begin where the one before it ended.
        assert not offset or (file_id, offset) == self._end, (file_id, offset, self._end)
        if not offset:
            self._life = self._life.begun(self._end)
            offset = self._life.first_offset
            buffers.append(self._life.encode())
        changes = group.changes
        records = [(each.ledger.ledger_id, each.stored) for each in changes] if changes else ()
        block, length = encode_block(self._life, offset, group.sections, records)
        assert length <= self._largest_block_bytes, (length, self._largest_block_bytes)
        buffers += block
        group.end = (file_id, offset + length)
        if group.once and self._once is not None:
            self._once.refer(group.once, group.end)
        file.append_and_sync(buffers, self._on_synced)
        if group.once:
            self._take_ahead(group)
        if self._prepared is None and 2 * offset > self._settings.journal_file_bytes:
            self._prepare()

    def _on_synced(self, error: BaseException | None) -> None:
        group = self._group
        assert group is not None
        self.write_durations.add(self._loop.time() - group.taken_at)
        failure = None if error is None else _as_storage_error(error)
        if failure is None and group.is_late:
            failure = StorageError("journal: the disk answered after the time-out")
        if failure is None:
            self.groups_count += 1
            if not self._settings.is_volatile:
                assert group.end > self._end, (group.end, self._end)
                self._end = group.end
            self._go_on()
            self._on_group(group, None)
            return
        # It is unknown what the file has after its last confirmed block: write no more to it.
        self._files.on_failed(self._life.file_id)
        self._give_up_file()
        self._failure = failure
        self._fail_when_written(failure)

    def _go_on(self) -> None:
        """After a group has ended: the next is one taken ahead, or else one that is taken now."""
        self._group = self._ahead.popleft() if self._ahead else None
        if self._group is None:
            self._take()
        elif self._group.is_ready:
            self._commit(self._group)

    def _fail_when_written(self, failure: StorageError) -> None:
        """Fail all groups that were taken, once no large entries of them are being written.

        Nobody is told before: what was lent is still read by those writes.
        """
        if all(each.is_ready for each in self._ahead):
            self._fail(failure)

    def _fail(self, failure: StorageError) -> None:
        """Fail the group that is being written, and those taken ahead, whose entries follow."""
        failed = self._taken()
        self._ahead.clear()
        self._group = self._failure = None
        if self._once is not None and any(each.once and not each.end[0] for each in failed):
            self._tasks.spawn(self._once.give_up(), "give up runs")
        # Called before the next group is taken, so that the ledgers drop their pending entries:
        # otherwise that group would have entries that follow the lost ones.
        for each in failed:
            self._on_group(each, failure)
        self._take()

    def _give_up_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            self._tasks.spawn(file.close(), "close file")

    async def _begin_file_and_write(self, group: Group) -> None:
        self._give_up_file()
        try:
            new = await self._take_prepared()
            self._file, self._life = new.file, new.header
            self._next_file_id += 1
        except Exception as error:  # noqa: BLE001 - any error fails the group
            logger.error("journal file not created", extra={"error": str(error)})  # noqa: TRY400
            self._on_synced(error)
            return
        self._write_block(self._file, group)

    async def _take_prepared(self) -> NewFile:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            try:
                return await prepared
            except Exception:  # noqa: BLE001 - an error of the second attempt is reported
                # The file was prepared ahead, maybe long ago: the reason may be gone.
                logger.info("journal file created at the second attempt")
        return await self._create_file()

    def _prepare(self) -> None:
        self._prepared = self._tasks.spawn(self._create_file(), "create file")

    async def _create_file(self) -> NewFile:
        return await self._files.create(
            self._next_file_id, largest_block_bytes=self._largest_block_bytes
        )


def largest_block_bytes(settings: BookieSettings) -> int:
    """The most bytes that a block can have with the zeros behind it.

    Its entries and its records are up to a group each, and the last of each may stand out by its
    own size.
    """
    return (
        2 * (settings.journal_group_bytes + settings.max_entry_bytes)
        + 2 * LENGTH_BYTES * GROUP_ENTRIES_COUNT
        + GROUP_LEDGERS_COUNT * 2 * SECTION_BYTES
        + BLOCK_HEADER_BYTES
        + settings.journal_block_bytes
    )


def written_once(sections: Sequence[Section], settings: BookieSettings) -> list[Section]:
    """The sections of a group whose entries are large and enough to be written once."""
    if not settings.once_group_bytes:
        return []
    # Hot path: benchmarks/micro_storage.py, append
    large: list[Section] = []
    large_bytes = 0
    for section in sections:
        size_bytes = section.size_bytes
        entries_bytes = settings.once_entry_bytes * len(section.entries)
        if size_bytes >= settings.once_section_bytes and size_bytes >= entries_bytes:
            large.append(section)
            large_bytes += size_bytes
    return large if large_bytes >= settings.once_group_bytes else []


def next_file_id(end: Mark) -> int:
    """Id of the file to begin after `end`: the same one if `end` is its offset 0, else the next."""
    file_id, offset = end
    return file_id + 1 if offset else file_id


def take_section(ledger: Ledger, room_bytes: int) -> Section:
    """Take a ledger's pending entries: all if they fit, else as many as fit, at least one."""
    # Hot path: benchmarks/micro_storage.py, append
    pending = ledger.pending
    assert pending, f"ledger {ledger.ledger_id}: nothing waits"
    lengths, size_bytes = array("I"), 0
    if len(pending) <= PIECE_ENTRIES_COUNT:
        lengths = array("I", map(len, pending))
        size_bytes = sum(lengths)
    if not lengths or size_bytes > room_bytes:
        lengths, size_bytes = _fitting_lengths(pending, room_bytes)
    count = len(lengths)
    if count == len(pending):
        entries, ledger.pending = pending, []
    else:
        entries = pending[:count]
        del pending[:count]
    first_entry_id = ledger.last_add_taken + 1
    ledger.last_add_taken += count
    assert size_bytes <= room_bytes or count == 1
    assert ledger.last_add_taken <= ledger.last_add_pushed
    lent: list[int] = []
    if ledger.lent_pending_count:
        lent = [place for place, entry in enumerate(entries) if isinstance(entry, Lent)]
        ledger.lent_pending_count -= len(lent)
        ledger.lent_taken_count += len(lent)
    return Section(ledger.ledger_id, first_entry_id, entries, lengths, size_bytes, lent=lent)


def _fitting_lengths(pending: Sequence[bytes | Lent], room_bytes: int) -> tuple[array[int], int]:
    """The lengths of the first entries that fit, of one at least, and the bytes of all those."""
    lengths = array("I")
    size_bytes = 0
    while len(lengths) < min(len(pending), GROUP_ENTRIES_COUNT):
        # Measured piece by piece: the pending entries may be far more than fit.
        start = len(lengths)
        piece = array("I", map(len, pending[start : start + PIECE_ENTRIES_COUNT]))
        piece_bytes = sum(piece)
        if size_bytes + piece_bytes > room_bytes:
            fitting = bisect_right(list(accumulate(piece)), room_bytes - size_bytes)
            piece = piece[: fitting if start else max(fitting, 1)]
            lengths += piece
            size_bytes += sum(piece)
            break
        lengths += piece
        size_bytes += piece_bytes
    return lengths, size_bytes


def _as_storage_error(error: BaseException) -> StorageError:
    if isinstance(error, StorageError):
        return error
    return StorageError(f"journal: {error}")
