"""`Deduplication`: recognises messages that are stored already, by producer and sequence id (pure).

Two numbers are kept for each producer name: the highest sequence id appended to the ledger (pushed)
and the highest one stored (persisted). A message at or below the persisted one is a duplicate; one
between both can't be decided yet, because its first write may still fail. All chunks of a message
share one id, so only the last chunk counts.

The state is bounded: `snapshot` keeps the newest `max_producers`, `forget_inactive` drops producers
that left long ago. A snapshot and a replay of the entries after it give the whole state.

Invariant: persisted <= pushed for every name that has both.

Source: MessageDeduplication in Pulsar's broker; PIP-6.
"""

from __future__ import annotations

from enum import Enum

CURSOR_NAME = "pulsar.dedup"


class DuplicateStatus(Enum):
    """The decision about a message before it is stored."""

    NEW = "new"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"


class Deduplication:
    """Sequence ids of one topic's producers."""

    def __init__(self, *, max_producers: int) -> None:
        """`max_producers` bounds the producers in a snapshot."""
        self.max_producers = max_producers
        self.pushed: dict[str, int] = {}
        self.persisted: dict[str, int] = {}
        self.inactive_since: dict[str, float] = {}
        self.entries_since_snapshot = 0

    def check(self) -> None:
        """Assert what always holds."""
        for name, sequence_id in self.persisted.items():
            assert sequence_id <= self.pushed.get(name, sequence_id), name

    def decide(self, producer_name: str, sequence_id: int, highest_id: int) -> DuplicateStatus:
        """Decide whether to store a message; if so, it is noted as pushed.

        `sequence_id` is the lowest of a batch, `highest_id` its highest; the lowest one decides.
        """
        pushed = self.pushed.get(producer_name)
        if pushed is not None and sequence_id <= pushed:
            persisted = self.persisted.get(producer_name)
            if persisted is not None and sequence_id <= persisted:
                return DuplicateStatus.DUPLICATE
            return DuplicateStatus.UNKNOWN  # its first write may still fail
        self.pushed[producer_name] = max(sequence_id, highest_id)
        return DuplicateStatus.NEW

    def on_persisted(self, producer_name: str, highest_id: int) -> None:
        """Note that an entry of the producer is stored."""
        self.entries_since_snapshot += 1
        if highest_id > self.persisted.get(producer_name, -1):
            self.persisted[producer_name] = highest_id

    def replay(self, producer_name: str, highest_id: int) -> None:
        """Note a stored entry that is newer than the snapshot, while the topic is loaded."""
        self.on_persisted(producer_name, highest_id)
        self.pushed[producer_name] = self.persisted[producer_name]

    def on_append_failed(self) -> None:
        """Set pushed ids back to the persisted ones, after all writes under way have ended."""
        self.pushed = dict(self.persisted)

    def last_sequence_id(self, producer_name: str) -> int:
        """The id for PRODUCER_SUCCESS, -1 for a name never seen."""
        return self.pushed.get(producer_name, -1)

    def on_producer_added(self, producer_name: str) -> None:
        """Note that the producer is connected, so that it is not forgotten."""
        self.inactive_since.pop(producer_name, None)

    def on_producer_removed(self, producer_name: str, now: float) -> None:
        """Note that the producer left at `now`, in seconds."""
        self.inactive_since[producer_name] = now

    def forget_inactive(self, now: float, inactivity_seconds: float) -> bool:
        """Drop producers that left longer ago than this; returns whether there were any."""
        gone = [
            name for name, since in self.inactive_since.items() if now - since > inactivity_seconds
        ]
        for name in gone:
            del self.inactive_since[name]
            self.pushed.pop(name, None)
            self.persisted.pop(name, None)
        return bool(gone)

    def recover(self, snapshot: dict[str, int], now: float) -> None:
        """Start from a snapshot; its producers count as having left at `now`."""
        for name, sequence_id in snapshot.items():
            self.pushed[name] = sequence_id
            self.persisted[name] = sequence_id
            self.inactive_since[name] = now

    def snapshot(self) -> dict[str, int]:
        """The ids to store, of at most `max_producers`: those that left first are dropped."""
        self.entries_since_snapshot = 0
        if len(self.persisted) <= self.max_producers:
            return dict(self.persisted)
        by_departure = sorted(
            self.persisted, key=lambda name: -self.inactive_since.get(name, float("inf"))
        )
        return {name: self.persisted[name] for name in by_departure[: self.max_producers]}
