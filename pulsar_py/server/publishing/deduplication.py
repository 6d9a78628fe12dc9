"""`Deduplication`: recognises messages that are stored already, by producer and sequence id (pure).

Two numbers are kept for each producer name: the highest sequence id appended to the ledger (pushed)
and the highest one stored (persisted). A message at or below the persisted one is a duplicate; one
between both can't be decided yet, because its first write may still fail. All chunks of a message
share one id, so only the last chunk counts.

The state is bounded: of more than `MAX_NAMES` producers, or `max_producers` if that is more, those
that left first are forgotten; `snapshot` keeps the newest `max_producers`, and `forget_inactive`
drops producers that left long ago. A snapshot and a replay of the entries after it give the whole
state; so do an older snapshot and all changes after it.

Invariants: persisted <= pushed for every name; names whose producers left stand in the order in
which they did.

Source: MessageDeduplication in Pulsar's broker; PIP-6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from math import ceil
from operator import lt
from typing import Final

from msgspec import Struct

CURSOR_NAME = "pulsar.dedup"

MAX_NAMES: Final = 100_000
"""Names in memory, unless `max_producers` allows for more; about 17 MB."""

FORGOTTEN_SHARE: Final = 100
"""When there are too many names, one in so many is forgotten at once."""

FORGOTTEN_AT_ONCE: Final = 20_000
"""The most inactive names that are forgotten in one turn: some milliseconds."""

PROPERTIES_MAX_NAMES: Final = 10_000
"""The most names that are stored as properties of a cursor, as Apache Pulsar does."""

PROPERTIES_MAX_BYTES: Final = 768 * 1024
"""What those may take: the record of a cursor has to fit into one value of the metadata."""

_PROPERTY_BYTES: Final = 15  # a property without its name

GONE: Final = -1
"""The sequence id of a name that was forgotten, among changes."""


def name_bytes(name: str) -> int:
    """What a name takes where it is stored, as UTF-8."""
    return len(name) if name.isascii() else len(name.encode())


class DuplicateStatus(Enum):
    """The decision about a message before it is stored."""

    NEW = "new"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"


_NEW, _DUPLICATE, _UNKNOWN = DuplicateStatus


class ProducerIds(Struct, gc=False):
    """What is known of one producer.

    Attributes:
        pushed: The highest sequence id on its way to the ledger, -1 for none.
        persisted: The highest one that is stored, -1 for none.
        left_seconds: When the producer left, in whole seconds; None while it is connected.
        changed_before: The number of the snapshot that `persisted` was last changed before.
    """

    pushed: int = -1
    persisted: int = -1
    left_seconds: int | None = None
    changed_before: int = -1


class Deduplication:
    """Sequence ids of one topic's producers."""

    def __init__(self, *, max_producers: int) -> None:
        """`max_producers` bounds the producers in a snapshot."""
        self.max_producers = max_producers
        self.entries_since_snapshot = 0
        self._ids: dict[str, ProducerIds] = {}
        self._connected: dict[str, None] = {}  # names of `_ids` whose producers are connected
        self._names_bytes = 0  # of the names in `_ids`
        self._longest_bytes = 0  # of all names there ever were
        # Names that differ from the last snapshot: those with its number, and what was forgotten.
        self._changed: list[str] = []
        self._next_snapshot = 0  # its number
        self._second = 0  # of the last event: one number for all that share it

    def __len__(self) -> int:
        """Producer names that are known."""
        return len(self._ids)

    def check(self) -> None:
        """Assert what always holds."""
        for name, ids in self._ids.items():
            assert ids.persisted <= ids.pushed, name
            assert ids.changed_before <= self._next_snapshot, name
            assert ids.changed_before < self._next_snapshot or name in self._changed, name
        assert self._names_bytes == sum(map(name_bytes, self._ids))
        assert all(name_bytes(name) <= self._longest_bytes for name in self._ids)
        connected = {name for name, ids in self._ids.items() if ids.left_seconds is None}
        assert self._connected.keys() == connected
        left = [ids.left_seconds for ids in self._ids.values() if ids.left_seconds is not None]
        assert left == sorted(left)

    def _new(self, producer_name: str, left_seconds: int | None = None) -> ProducerIds:
        ids = self._ids[producer_name] = ProducerIds(left_seconds=left_seconds)
        if left_seconds is None:
            self._connected[producer_name] = None
        size_bytes = name_bytes(producer_name)
        self._names_bytes += size_bytes
        self._longest_bytes = max(self._longest_bytes, size_bytes)
        return ids

    def _left(self) -> Iterator[tuple[str, int]]:
        """The names of producers that left, the first one first, and when that was."""
        for name, ids in self._ids.items():
            if ids.left_seconds is not None:
                yield name, ids.left_seconds

    def _second_of(self, now: float) -> int:
        """The next whole second, so that nobody is forgotten early; it never goes back."""
        self._second = max(self._second, ceil(now))  # the former one, if they are equal
        return self._second

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            if self._ids.pop(name, None) is not None:
                self._connected.pop(name, None)
                self._names_bytes -= name_bytes(name)
                self._changed.append(name)

    def decide(self, producer_name: str, sequence_id: int, highest_id: int) -> DuplicateStatus:
        """Decide whether to store a message; if so, it is noted as pushed.

        `sequence_id` is the lowest of a batch, `highest_id` its highest; the lowest one decides.
        """
        # Hot path: publish-1k with deduplication
        ids = self._ids.get(producer_name)
        if ids is None:
            ids = self._new(producer_name)
        elif sequence_id <= ids.pushed:
            # Above the persisted one its first write may still fail.
            return _DUPLICATE if sequence_id <= ids.persisted else _UNKNOWN
        ids.pushed = max(sequence_id, highest_id)
        return _NEW

    def is_new_run(
        self,
        producer_name: str,
        sequence_ids: Sequence[int],
        highest_ids: Sequence[int | None],
    ) -> bool:
        """Whether all messages of a run are new, and ascend; nothing is noted yet.

        `highest_ids` has the highest sequence id of each batch, None or 0 for other messages. Of a
        name that is not known that is not said.
        """
        # Hot path: publish-1k with deduplication, once a run.
        ids = self._ids.get(producer_name)
        if ids is None or sequence_ids[0] <= ids.pushed:
            return False
        if not any(highest_ids):
            return all(map(lt, sequence_ids, islice(sequence_ids, 1, None)))
        last = ids.pushed
        for sequence_id, highest_id in zip(sequence_ids, highest_ids, strict=True):
            if sequence_id <= last:
                return False
            last = max(sequence_id, highest_id or 0)
        return True

    def on_pushed(self, producer_name: str, highest_id: int) -> None:
        """Note that a new run is on its way to the ledger, up to this id."""
        self._ids[producer_name].pushed = highest_id

    def on_persisted(self, producer_name: str, highest_id: int, entries_count: int = 1) -> None:
        """Note that entries of the producer are stored, up to one with this id."""
        self.entries_since_snapshot += entries_count
        ids = self._ids.get(producer_name)
        if ids is None:
            ids = self._new(producer_name)
        if highest_id > ids.persisted:
            ids.persisted = highest_id
            ids.pushed = max(ids.pushed, highest_id)
            if ids.changed_before != self._next_snapshot:
                ids.changed_before = self._next_snapshot
                self._changed.append(producer_name)

    def replay(self, producer_name: str, highest_id: int, now: float) -> None:
        """Note a stored entry that is newer than the snapshot, while the topic is loaded."""
        if producer_name not in self._ids:
            self._new(producer_name, self._second_of(now))
        self.on_persisted(producer_name, highest_id)

    def on_append_failed(self) -> None:
        """Set pushed ids back to the persisted ones, after all writes under way have ended."""
        for ids in self._ids.values():
            ids.pushed = ids.persisted

    def last_sequence_id(self, producer_name: str) -> int:
        """The id for PRODUCER_SUCCESS, -1 for a name never seen."""
        ids = self._ids.get(producer_name)
        return -1 if ids is None else ids.pushed

    def on_producer_added(self, producer_name: str) -> None:
        """Note that the producer is connected, so that it is not forgotten."""
        ids = self._ids.get(producer_name)
        if ids is not None:
            ids.left_seconds = None
            self._connected[producer_name] = None

    def on_producer_removed(self, producer_name: str, now: float) -> None:
        """Note that the producer left at `now`, in seconds."""
        ids = self._ids.pop(producer_name, None)
        if ids is None:
            return
        ids.left_seconds = self._second_of(now)
        self._ids[producer_name] = ids
        self._connected.pop(producer_name, None)
        limit = max(self.max_producers, MAX_NAMES)
        if len(self._ids) > limit:
            surplus = limit // FORGOTTEN_SHARE + 1
            self._forget([name for name, _ in islice(self._left(), surplus)])

    def forget_inactive(self, now: float, inactivity_seconds: float) -> bool:
        """Drop producers that left longer ago than this, some at once; returns whether any did."""
        gone = []
        for name, since in islice(self._left(), FORGOTTEN_AT_ONCE):
            if now - since <= inactivity_seconds:
                break
            gone.append(name)
        self._forget(gone)
        return bool(gone)

    def recover(self, stored: Mapping[str, int], now: float) -> None:
        """Take what is stored, changes in their order; its producers count as having left."""
        for name, sequence_id in stored.items():
            if sequence_id == GONE:
                self._forget((name,))
                continue
            ids = self._ids.get(name) or self._new(name, self._second_of(now))
            ids.pushed = ids.persisted = sequence_id
        self._take_changed()

    # What is stored

    @property
    def fits_properties(self) -> bool:
        """Whether a snapshot fits the properties of a cursor, which Apache Pulsar reads."""
        names_count = min(len(self._ids), self.max_producers)
        if names_count > PROPERTIES_MAX_NAMES:
            return False
        room_bytes = PROPERTIES_MAX_BYTES - _PROPERTY_BYTES * names_count
        if min(self._names_bytes, self._longest_bytes * names_count) <= room_bytes:
            return True
        if names_count == len(self._ids):
            return False
        return sum(map(name_bytes, self.newest_names())) <= room_bytes  # those that left stay out

    def snapshot(self) -> dict[str, int]:
        """The ids to store, of at most `max_producers`: those that left first are dropped."""
        self.begin_snapshot()
        ids = self._ids
        return {name: ids[name].persisted for name in self.newest_names() if name in ids}

    def begin_snapshot(self) -> Sequence[str]:
        """Begin a new count of entries and changes; returns the names changed since the last.

        One that was forgotten and came again may be there twice.
        """
        self.entries_since_snapshot = 0
        return self._take_changed()

    def _take_changed(self) -> list[str]:
        changed, self._changed = self._changed, []
        self._next_snapshot += 1
        return changed

    def newest_names(self) -> list[str]:
        """The names of stored messages, of at most `max_producers`, those that left first first."""
        known, most = self._ids, self.max_producers
        if len(known) <= most:
            return [name for name, ids in known.items() if ids.persisted >= 0]
        # Of many names only those that are kept are looked at.
        connected = [name for name in self._connected if known[name].persisted >= 0][:most]
        left = (
            name
            for name, ids in reversed(known.items())
            if ids.persisted >= 0 and ids.left_seconds is not None
        )
        newest = list(islice(left, most - len(connected)))
        newest.reverse()
        return newest + connected

    def persisted_ids(self, names: Iterable[str]) -> dict[str, int]:
        """The ids of these names now, `GONE` for what was forgotten."""
        known = self._ids
        return {name: known[name].persisted if name in known else GONE for name in names}

    def persisted_id(self, name: str) -> int:
        """The id of one name now, `GONE` if it was forgotten."""
        ids = self._ids.get(name)
        return GONE if ids is None else ids.persisted

    def snapshot_failed(self, changed: Iterable[str]) -> None:
        """Count changes again that could not be stored."""
        for name in changed:
            ids = self._ids.get(name)
            if ids is not None:
                if ids.changed_before == self._next_snapshot:
                    continue
                ids.changed_before = self._next_snapshot
            self._changed.append(name)
        self.entries_since_snapshot += 1
