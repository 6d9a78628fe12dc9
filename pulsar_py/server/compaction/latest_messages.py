"""`LatestMessages`: finds the newest message of each key, within a bound of memory (edge).

Keys are kept in dictionaries, by a hash that only says in which one. Beyond the bound all of them
go to a sorted run on disk, and begin anew; the runs are merged at the end. Keys are compared whole,
never by their hashes alone.

A key's message is replaced by a later one of the same or a higher order: the order is 0 where that
of publishing counts, else the event time. A tombstone is a message, too, until the end: what is
older than it does not come back.

Source: PublishingOrderCompactor, EventTimeOrderCompactor in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from pulsar_py.common.disks.disk import Disk
from pulsar_py.server.compaction.sorted_runs import PARTS_COUNT, SortedRuns
from pulsar_py.server.compaction.survivors import Survivors

KEY_COST_BYTES: Final = 200
"""Memory of a key beside its bytes: two objects' heads and a dictionary's slot."""

_HEAD: Final = Struct(">q?")  # order, is it a tombstone
_KEYS_A_TURN: Final = 500


class LatestMessages:
    """The newest message of each key so far; owned by one compaction."""

    def __init__(self, new_disk: Callable[[], Disk], name: str, *, memory_bytes: int) -> None:
        """At most `memory_bytes` are held; beyond it runs are written to files of this `name`."""
        # A third is left for the merge and for a run that is being encoded.
        self._max_bytes = memory_bytes * 2 // 3
        self._runs = SortedRuns(new_disk, name, merge_bytes=memory_bytes // 3)
        self._parts: list[dict[bytes, bytes]] = [{} for _ in range(PARTS_COUNT)]
        self._held_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether `spill` has to be called before the next message."""
        return self._held_bytes >= self._max_bytes

    @property
    def runs_count(self) -> int:
        """Runs on disk so far."""
        return len(self._runs)

    def note(self, key: bytes, order: int, places: bytes, *, is_tombstone: bool) -> None:
        """Take in a message, later than all before it, whose parts are at these packed places."""
        part = self._parts[hash(key) % PARTS_COUNT]
        before = part.get(key)
        if before is not None and _HEAD.unpack_from(before)[0] > order:
            return
        value = _HEAD.pack(order, is_tombstone) + places
        part[key] = value
        if before is None:
            self._held_bytes += KEY_COST_BYTES + len(key) + len(value)
        else:
            self._held_bytes += len(value) - len(before)

    async def spill(self) -> None:
        """Write what is held to disk, and forget it.

        Raises:
            DiskFullError, StorageError: It could not be written.
        """
        await self._runs.write(self._parts)
        for part in self._parts:
            part.clear()  # of all at once that would take some ten milliseconds
            await asyncio.sleep(0)
        self._held_bytes = 0

    async def add_to(self, survivors: Survivors) -> None:
        """Add the newest message of each key, unless it is a tombstone, and forget all.

        Raises:
            StorageError: A run can't be read.
        """
        if not len(self._runs):
            for part in self._parts:
                _add(survivors, list(part.values()))
                part.clear()
                await asyncio.sleep(0)
            return
        await self.spill()
        async for items in self._runs.merged():
            for start in range(0, len(items), _KEYS_A_TURN):
                _add(
                    survivors,
                    [_newest(values) for _, values in items[start : start + _KEYS_A_TURN]],
                )
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Remove the runs."""
        await self._runs.remove()


def _newest(values: Sequence[bytes]) -> bytes:
    """The value of one key with the highest order, of equal ones the last."""
    newest = values[0]
    for value in values[1:]:
        if _HEAD.unpack_from(value)[0] >= _HEAD.unpack_from(newest)[0]:
            newest = value
    return newest


def _add(survivors: Survivors, values: Sequence[bytes]) -> None:
    for value in values:
        if not _HEAD.unpack_from(value)[1]:
            survivors.add(value[_HEAD.size :])
