"""`EntryCache`: tail entries shared by the cursors of a managed ledger, bounded in bytes (edge).

A group of entries that became durable together is one object here, with the bytes as they were
appended; its `Entry` objects are made when the first cursor reads from it, and all cursors share
them. No other work is done for a single entry: groups are inserted, found by binary search and
evicted as a whole: below the slowest active cursor, after an age, or when the budget of all managed
ledgers together is used up (the oldest first).

What always holds: `used_bytes` is the memory allocated for all groups, not only their payloads;
after an insertion it does not exceed the budget.

Source: RangeEntryCacheManagerImpl in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_run import make_entries

# A bytes object's header, an Entry with its fields, and two slots in lists (CPython 3.11, 64 bit).
ENTRY_OVERHEAD_BYTES = 33 + 64 + 16 + 32

# Above this part of the budget the oldest groups go, until the watermark is reached.
_FULL_PART = 0.98


class _Group:
    """Entries of one ledger that were confirmed together."""

    __slots__ = (
        "cache",
        "datas",
        "entries",
        "first",
        "inserted_at",
        "ledger_id",
        "size_bytes",
        "stop",
    )

    def __init__(
        self, cache: EntryCache, ledger_id: int, first: int, datas: Sequence[EntryBytes], now: float
    ) -> None:
        self.cache: EntryCache | None = cache  # None once evicted
        self.ledger_id = ledger_id
        self.first = first
        self.stop = first + len(datas)
        self.datas: Sequence[EntryBytes] = datas  # empty once `entries` is made
        self.entries: list[Entry] | None = None
        self.size_bytes = sum(map(len, datas)) + len(datas) * ENTRY_OVERHEAD_BYTES
        self.inserted_at = now

    def made_entries(self) -> list[Entry]:
        """The group's entries, made once."""
        entries = self.entries
        if entries is None:
            entries = self.entries = make_entries(self.ledger_id, self.first, self.datas)
            self.datas = ()
        return entries


class EntryCacheManager:
    """The budget of all entry caches, and their eviction. Owned by the opener."""

    def __init__(
        self,
        clock: Clock,
        *,
        budget_bytes: int,
        watermark: float,
        max_age_seconds: float,
        eviction_interval_seconds: float,
    ) -> None:
        self._clock = clock
        self.budget_bytes = budget_bytes
        self.watermark = watermark
        self.max_age_seconds = max_age_seconds
        self._eviction_interval_seconds = eviction_interval_seconds
        self.used_bytes = 0  # groups and reservations
        self.evicted_entries_count = 0  # since the start
        self.evictions_count = 0  # how often the budget was used up, since the start
        self.hits_count = 0  # entries served, since the start
        self.misses_count = 0  # reads not served, since the start
        self._groups: deque[_Group] = deque()  # in order of insertion; evicted ones go lazily
        self._timer: asyncio.TimerHandle | None = None  # set while there are groups

    def resize(self, *, budget_bytes: int, watermark: float, max_age_seconds: float) -> None:
        """Use other bounds; groups beyond them are evicted now, or when old enough."""
        self.budget_bytes = budget_bytes
        self.watermark = watermark
        self.max_age_seconds = max_age_seconds
        if self.used_bytes > budget_bytes:
            self.evictions_count += 1
            self._evict_to(int(budget_bytes * watermark))

    def insert(
        self, cache: EntryCache, ledger_id: int, first_entry_id: int, datas: Sequence[EntryBytes]
    ) -> None:
        """Keep a group, unless it exceeds the whole budget. Hot path: tailing consume."""
        group = _Group(cache, ledger_id, first_entry_id, datas, self._clock.monotonic_seconds())
        if group.size_bytes > self.budget_bytes * self.watermark:
            return
        cache.groups.append(group)
        self._groups.append(group)
        self.used_bytes += group.size_bytes
        if self.used_bytes > self.budget_bytes * _FULL_PART:
            self.evictions_count += 1
            self._evict_to(int(self.budget_bytes * self.watermark))
        if self._timer is None:
            self._set_timer()

    @property
    def entries_count(self) -> int:
        """Entries in the caches now (walks all groups)."""
        return sum(each.stop - each.first for each in self._groups if each.cache is not None)

    def reserve(self, size_bytes: int) -> bool:
        """Take room in the budget for a cursor's read-ahead; False if there is none."""
        if self.used_bytes + size_bytes > self.budget_bytes * self.watermark:
            return False
        self.used_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Return reserved room to the budget."""
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "released more than was reserved"

    def drop(self, group: _Group) -> None:
        """Subtract a group that a cache has evicted."""
        self.used_bytes -= group.size_bytes
        self.evicted_entries_count += group.stop - group.first
        group.cache = None
        group.entries = None
        group.datas = ()

    def _evict_to(self, target_bytes: int) -> None:
        while self._groups and self.used_bytes > target_bytes:
            self._evict_oldest()

    def _evict_oldest(self) -> None:
        group = self._groups.popleft()
        if group.cache is not None:
            assert group.cache.groups[0] is group, "groups leave a cache in order"
            del group.cache.groups[0]
            self.drop(group)

    def _set_timer(self) -> None:
        self._timer = self._clock.call_later(self._eviction_interval_seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        oldest = self._clock.monotonic_seconds() - self.max_age_seconds
        groups = self._groups
        while groups and (groups[0].cache is None or groups[0].inserted_at < oldest):
            self._evict_oldest()
        if groups:
            self._set_timer()

    def close(self) -> None:
        """Evict everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._evict_to(-1)


class EntryCache:
    """The cached entries of one managed ledger, in order of position. Owned by it."""

    __slots__ = ("_manager", "groups")

    def __init__(self, manager: EntryCacheManager) -> None:
        self._manager = manager
        self.groups: list[_Group] = []  # ascending, without overlaps, maybe with gaps

    def insert(self, ledger_id: int, first_entry_id: int, datas: Sequence[EntryBytes]) -> None:
        """Add a group that follows all others."""
        self._manager.insert(self, ledger_id, first_entry_id, datas)

    def read(self, ledger_id: int, first: int, last: int, max_bytes: int) -> list[Entry] | None:
        """Entries from `first`, at least one; None if it isn't cached. Hot path: tailing consume.

        Ends at `last`, at a gap, or before `max_bytes` are exceeded.
        """
        groups = self.groups
        place = 0  # mostly all others were read and evicted
        if len(groups) > 1:
            place = bisect_right(groups, (ledger_id, first), key=_group_start) - 1
        found: list[Entry] = []
        entry_id = first
        room = max_bytes
        while entry_id <= last and 0 <= place < len(groups):
            group = groups[place]
            if group.ledger_id != ledger_id or not group.first <= entry_id < group.stop:
                break
            chunk = group.made_entries()
            if entry_id > group.first or last + 1 < group.stop:
                chunk = chunk[entry_id - group.first : last + 1 - group.first]
            if group.size_bytes > room:
                chunk, room = _fitting(chunk, room, is_first=not found)
                found += chunk
                break
            room -= group.size_bytes
            found += chunk
            entry_id = group.stop
            place += 1
        if not found:
            self._manager.misses_count += 1
            return None
        self._manager.hits_count += len(found)
        return found

    def evict_below(self, position: Position) -> None:
        """Evict the groups that end before `position`."""
        groups = self.groups
        count = 0
        for group in groups:
            if (group.ledger_id, group.stop) > position:
                break
            self._manager.drop(group)
            count += 1
        if count:
            del groups[:count]

    def clear(self) -> None:
        """Evict everything."""
        for group in self.groups:
            self._manager.drop(group)
        self.groups.clear()


def _group_start(group: _Group) -> tuple[int, int]:
    return group.ledger_id, group.first


def _fitting(chunk: list[Entry], room: int, *, is_first: bool) -> tuple[list[Entry], int]:
    """The first entries that fit into `room` bytes and the room left; `is_first`: at least one."""
    for index, entry in enumerate(chunk):
        room -= len(entry.data)
        if room < 0 and (index or not is_first):
            return chunk[:index], 0
    return chunk, room
