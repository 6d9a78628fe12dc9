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

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Final

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.loops.pace import Pace
from pulsar_py.server.compaction.sorted_runs import PARTS_COUNT, SortedRuns
from pulsar_py.server.compaction.survivors import Survivors

KEY_COST_BYTES: Final = 200
"""Memory of a key beside its bytes: two objects' heads and a dictionary's slot."""

_MESSAGE: Final = Struct(">q?Q")  # order, is it a tombstone, its number
_CHUNK: Final = Struct(">Q")  # the number of each further chunk


class LatestMessages:
    """The newest message of each key so far; owned by one compaction."""

    def __init__(
        self, new_disk: Callable[[], Disk], name: str, *, memory_bytes: int, pace: Pace
    ) -> None:
        """At most `memory_bytes` are held; beyond it runs are written to files of this `name`."""
        self._pace = pace
        # A third is left for the merge and for a run that is being encoded.
        self._max_bytes = memory_bytes * 2 // 3
        self._runs = SortedRuns(new_disk, name, merge_bytes=memory_bytes // 3, pace=pace)
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

    def note(self, key: bytes, order: int, numbers: Sequence[int], *, is_tombstone: bool) -> None:
        """Take in a message, later than all before it; one in chunks has several numbers."""
        part = self._parts[hash(key) % PARTS_COUNT]
        before = part.get(key)
        if before is not None and _MESSAGE.unpack_from(before)[0] > order:
            return
        value = _MESSAGE.pack(order, is_tombstone, numbers[0])
        if len(numbers) > 1:
            value += b"".join(map(_CHUNK.pack, numbers[1:]))
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
            await self._pace.rest()
        self._held_bytes = 0

    async def add_to(self, survivors: Survivors, *, keeps_tombstones: bool = False) -> None:
        """Add the newest message of each key, and forget all.

        Tombstones go, unless they hide messages that stay whatever their key is.

        Raises:
            StorageError: A run can't be read.
        """
        if not len(self._runs):
            for part in self._parts:
                survivors.add(_numbers(part.values(), keeps_tombstones=keeps_tombstones))
                part.clear()
                await self._pace.rest()
            return
        await self.spill()
        async for items in self._runs.merged():
            newest = (_newest(values) for _, values in items)
            survivors.add(_numbers(newest, keeps_tombstones=keeps_tombstones))

    async def close(self) -> None:
        """Remove the runs."""
        await self._runs.remove()


def _newest(values: Sequence[bytes]) -> bytes:
    """The value of one key with the highest order, of equal ones the last."""
    newest = values[0]
    for value in values[1:]:
        if _MESSAGE.unpack_from(value)[0] >= _MESSAGE.unpack_from(newest)[0]:
            newest = value
    return newest


def _numbers(values: Iterable[bytes], *, keeps_tombstones: bool) -> list[int]:
    """The numbers of all messages that stay."""
    numbers: list[int] = []
    for value in values:
        _, is_tombstone, number = _MESSAGE.unpack_from(value)
        if is_tombstone and not keeps_tombstones:
            continue
        numbers.append(number)
        if len(value) > _MESSAGE.size:
            numbers += (further for (further,) in _CHUNK.iter_unpack(value[_MESSAGE.size :]))
    return numbers
