"""`WriteCache`: the confirmed entries that no entry log has yet; `AppendGate`: bounds appends.

There are two generations: the current one grows by whole groups; at a size or an age it is sealed
and flushed while the next one grows. Reads look into both. Pure: `ledger_storage` flushes.

The `AppendGate` bounds memory: each append takes its cost from it before it is queued, and the cost
is given back when a generation was flushed, entries failed, or their ledger was deleted. The gate
counts appends against the free space of the disk, too; that room grows only when the Housekeeper
has checked the free space again.

Invariant: in a generation, a ledger's entries have ids from `first_entry_id` without gaps, and the
current generation's follow the sealed one's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import DiskFullError, StorageError, StoreBusyError
from pulsar_py.common.packed_entries import PackedEntries
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import ENTRY_OVERHEAD_BYTES, Ledger, entries_cost
from pulsar_py.storage.shared.lent import Lent, Pins
from pulsar_py.storage.shared.location import Location

LEDGER_OVERHEAD_BYTES = 1024
"""Estimated memory of a ledger in a generation beside its entries."""

CUT_ENTRIES_COUNT = 256
"""Entries that are measured together when a read is cut to its limit of bytes."""

_SHUT_BYTES = 1 << 62


class AppendGate:
    """Decides whether there is room for another entry, with one comparison an append.

    `room_bytes` is the smaller of two numbers: the bytes that may still be added to memory, and
    the room that the last check found on the disk, less all bytes appended since. While the gate is
    shut it is far below zero, so that the comparison covers that as well.
    """

    __slots__ = ("_excess_bytes", "_holds_all", "_reason", "limit_bytes", "pins", "room_bytes")

    def __init__(self, limit_bytes: int, *, holds_all: bool = False) -> None:
        """`holds_all`: entries stay in memory for good, so full memory counts as a full disk."""
        self.limit_bytes = limit_bytes
        self._holds_all = holds_all
        # Counts the memory that lent entries keep alive beside their own bytes.
        self.pins = Pins()
        # Bytes that may still be appended; negative while shut.
        self.room_bytes = limit_bytes
        # Why the gate is shut; None while it is open.
        self._reason: StorageError | None = None
        # Memory's room less the disk's; an append takes from both, so this stays the same. Before
        # the first check the disk counts as endless.
        self._excess_bytes = -_SHUT_BYTES

    @property
    def waiting_bytes(self) -> int:
        """Cost of the entries that were appended and not given back."""
        return self.limit_bytes - self._memory_room_bytes

    @property
    def disk_room_bytes(self) -> int:
        """Bytes that the disk has room for beside those that wait; negative if these don't fit."""
        return self._memory_room_bytes - self._excess_bytes

    @property
    def is_disk_bound(self) -> bool:
        """Whether the disk has less room than memory."""
        return self._excess_bytes > 0

    @property
    def _memory_room_bytes(self) -> int:
        excess_bytes = self._excess_bytes
        room_bytes = self.room_bytes + excess_bytes if excess_bytes > 0 else self.room_bytes
        return room_bytes if self._reason is None else room_bytes + _SHUT_BYTES

    def give_back(self, cost_bytes: int) -> None:
        """Return memory to the gate; the known room on the disk stays the same."""
        self._set_excess(self._excess_bytes + cost_bytes)
        self.room_bytes += cost_bytes
        assert self.waiting_bytes >= 0, "more came back than was appended"

    def give_back_entries(self, entries: Sequence[bytes | Lent], *, lent_count: int) -> None:
        """Return the cost of entries that were dropped unwritten."""
        self.give_back(entries_cost(entries))
        if lent_count:
            for entry in entries:
                if isinstance(entry, Lent):
                    self.give_back(self.pins.remove(entry))

    def set_disk_room(self, room_bytes: int) -> None:
        """Note that the disk has `room_bytes` beyond those that the waiting entries need."""
        self._set_excess(self._memory_room_bytes - room_bytes)

    def _set_excess(self, excess_bytes: int) -> None:
        self.room_bytes += max(self._excess_bytes, 0) - max(excess_bytes, 0)
        self._excess_bytes = excess_bytes

    @property
    def is_shut(self) -> bool:
        """Whether every append is refused, however small."""
        return self._reason is not None

    def shut(self, reason: StorageError) -> None:
        """Refuse all appends with this error from now on."""
        if self._reason is None:
            self.room_bytes -= _SHUT_BYTES
        self._reason = reason

    def reopen(self) -> None:
        """Let appends through again."""
        if self._reason is not None:
            self.room_bytes += _SHUT_BYTES
        self._reason = None

    def refusal(self) -> StorageError:
        """The error for an append that did not get through."""
        if self._reason is not None:
            return type(self._reason)(*self._reason.args)
        if self.is_disk_bound:
            return DiskFullError(
                f"{self.waiting_bytes} bytes wait for the disk, "
                f"which has room for {max(self.room_bytes, 0)} more: make room on it"
            )
        if self._holds_all:
            return DiskFullError(f"{self.waiting_bytes} of {self.limit_bytes} bytes are in use")
        return StoreBusyError(f"{self.waiting_bytes} of {self.limit_bytes} bytes wait for the disk")


class CachedLedger:
    """One ledger's part of a generation."""

    __slots__ = (
        "entries",
        "first_entry_id",
        "kept_bytes",
        "ledger",
        "length_bytes",
        "record",
        "runs",
    )

    def __init__(self, ledger: Ledger, first_entry_id: int, length_bytes: int) -> None:
        # Keeps the ledger alive, so that its state is found until it is in the index.
        self.ledger = ledger
        # The record at this generation; the ledger's own may be newer.
        self.record = ledger.record
        self.first_entry_id = first_entry_id
        self.entries: list[EntryBytes] = []
        # Memory that entries which are views keep alive beside their own bytes.
        self.kept_bytes = 0
        # Bytes of the whole ledger at the end of this generation.
        self.length_bytes = length_bytes
        # The runs of entries that are in entry logs already, each with the id of its first entry.
        self.runs: list[tuple[int, Location]] = []

    def final_record(self) -> LedgerRecord:
        """The ledger's record in the index once this generation is flushed."""
        if self.record.is_deleted:
            return self.record
        return self.record.at(self.first_entry_id + len(self.entries) - 1, self.length_bytes)

    @property
    def living_entries(self) -> list[EntryBytes]:
        """The entries to flush: none once the ledger's deletion is in the journal."""
        return [] if self.ledger.record.is_deleted else self.entries

    def stretches(self) -> Iterator[tuple[int, Location] | range]:
        """The living entries in order: ids of those that have to be written, and runs that were."""
        if self.ledger.record.is_deleted:
            return
        entry_id = self.first_entry_id
        for first_entry_id, location in self.runs:
            if first_entry_id > entry_id:
                yield range(entry_id, first_entry_id)
            yield first_entry_id, location
            entry_id = first_entry_id + location.count
        end = self.first_entry_id + len(self.entries)
        assert entry_id <= end, f"ledger {self.ledger.ledger_id}: runs end at {entry_id}, not {end}"
        if entry_id < end:
            yield range(entry_id, end)


class Generation:
    """The entries and records confirmed between two seals."""

    __slots__ = ("born_seconds", "entries_cost_bytes", "ledgers", "mark")

    def __init__(self, born_seconds: float, mark: tuple[int, int]) -> None:
        self.ledgers: dict[int, CachedLedger] = {}
        # The cost that is given back to the gate when it is flushed.
        self.entries_cost_bytes = 0
        # The monotonic time of its beginning.
        self.born_seconds = born_seconds
        # Journal file and offset of the end of the last group in it.
        self.mark = mark

    @property
    def cost_bytes(self) -> int:
        """Estimated memory of the generation."""
        return self.entries_cost_bytes + LEDGER_OVERHEAD_BYTES * len(self.ledgers)

    def flush_bytes(self) -> int:
        """The most space on the disk that flushing it takes; deleted ledgers take none."""
        # Each tick asks for it: the entries of those that were deleted since are measured alone.
        all_cached = self.ledgers.values()
        beside = sum(
            cached.kept_bytes + ENTRY_OVERHEAD_BYTES * len(cached.entries) for cached in all_cached
        )
        gone = sum(
            sum(map(len, cached.entries))
            for cached in all_cached
            if cached.ledger.record.is_deleted
        )
        return LEDGER_OVERHEAD_BYTES * len(self.ledgers) + self.entries_cost_bytes - beside - gone

    def touch(self, ledger: Ledger) -> CachedLedger:
        """The ledger's part; a new one begins after the ledger's last confirmed entry."""
        cached = self.ledgers.get(ledger.ledger_id)
        if cached is None:
            cached = self.ledgers[ledger.ledger_id] = CachedLedger(
                ledger, ledger.last_add_confirmed + 1, ledger.length_bytes
            )
        return cached

    def add(
        self,
        ledger: Ledger,
        entries: list[EntryBytes],
        size_bytes: int,
        kept_bytes: int = 0,
        *,
        runs: Iterable[tuple[int, Location]] = (),
    ) -> None:
        """Add confirmed entries that follow the ledger's last confirmed one.

        `kept_bytes` is the memory that they keep alive beside their own bytes; `runs` are those in
        entry logs, each with the id of its first entry.
        """
        cached = self.touch(ledger)
        assert not cached.record.is_deleted, f"ledger {ledger.ledger_id}: entries after its end"
        assert cached.first_entry_id + len(cached.entries) == ledger.last_add_confirmed + 1
        cached.entries += entries
        if runs:
            cached.runs += runs
        cached.length_bytes += size_bytes
        cached.kept_bytes += kept_bytes
        self.entries_cost_bytes += size_bytes + kept_bytes + ENTRY_OVERHEAD_BYTES * len(entries)

    def set_record(self, ledger: Ledger) -> int:
        """Note the ledger's new record; returns the bytes freed if that deleted it."""
        cached = self.touch(ledger)
        cached.record = ledger.record
        if not ledger.record.is_deleted or not cached.entries:
            return 0
        freed = sum(map(len, cached.entries)) + ENTRY_OVERHEAD_BYTES * len(cached.entries)
        freed += cached.kept_bytes
        cached.entries = []
        cached.runs = []
        cached.kept_bytes = 0
        self.entries_cost_bytes -= freed
        return freed

    def forget(self, ledger_id: int) -> None:
        """Drop a deleted ledger in a volatile engine, where no index needs its record."""
        del self.ledgers[ledger_id]


class WriteCache:
    """The current generation and the one that is being flushed."""

    def __init__(self, now_seconds: float, mark: tuple[int, int]) -> None:
        self.current = Generation(now_seconds, mark)
        self.sealed: Generation | None = None

    @property
    def entries_cost_bytes(self) -> int:
        """The cost that flushing both generations would give back to the gate."""
        sealed_bytes = 0 if self.sealed is None else self.sealed.entries_cost_bytes
        return self.current.entries_cost_bytes + sealed_bytes

    def seal(self, now_seconds: float) -> Generation:
        """Begin a new generation; returns the old one, which has to be flushed."""
        assert self.sealed is None
        self.sealed = self.current
        self.current = Generation(now_seconds, self.sealed.mark)
        return self.sealed

    def drop_sealed(self) -> Generation:
        """Forget the sealed generation, which is durable in the entry logs; returns it."""
        sealed = self.sealed
        assert sealed is not None
        self.sealed = None
        return sealed

    def find(self, ledger_id: int, entry_id: int) -> tuple[Sequence[EntryBytes], int] | None:
        """Cached entries with `entry_id` among them, and its index there; None if not cached."""
        for generation in (self.current, self.sealed):
            if generation is not None and (cached := generation.ledgers.get(ledger_id)):
                place = entry_id - cached.first_entry_id
                if 0 <= place < len(cached.entries):
                    return cached.entries, place
        return None


def cut(
    entries: Sequence[EntryBytes], place: int, count: int, max_bytes: int
) -> Sequence[EntryBytes]:
    """Up to `count` entries from `place`: at least one, then while `max_bytes` allow."""
    if isinstance(entries, PackedEntries):
        return entries.up_to(place, count, max_bytes)
    end = min(place + count, len(entries))
    chosen: list[EntryBytes] = []
    while place < end:
        # Measured piece by piece: the entries that follow may be a whole backlog.
        piece = entries[place : min(place + CUT_ENTRIES_COUNT, end)]
        piece_bytes = sum(map(len, piece))
        if piece_bytes > max_bytes:
            fitting = bisect_right(list(accumulate(map(len, piece))), max_bytes)
            return [*chosen, *piece[: fitting if chosen else max(fitting, 1)]]
        chosen += piece
        max_bytes -= piece_bytes
        place += len(piece)
    return chosen
