"""`EntrySource`: the interface from which a dispatcher reads entries and their acknowledgements.

`ManagedCursor` implements it. Another implementation may wrap a cursor, such as one that reads a
compacted ledger up to its last position and the topic from there on; it returns positions of the
topic, so that the dispatcher needs no change. Acknowledging, SEEK and statistics are not part of
it: the subscription calls its cursor for those.

Source: ManagedCursor, CompactedTopic.asyncReadEntriesOrWait in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry


class EntrySource(Protocol):
    """Entries in the order of their positions, from one read position on.

    What always holds: a read during which `rewind` or `seek` was called has no effect, and reads do
    not overlap.
    """

    @property
    def is_durable(self) -> bool:
        """Whether the subscription is durable: only then unacknowledged messages are limited."""

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        """The next unacknowledged entries up to `max_position`; moves the read position past them.

        `[]` means that there is nothing to read now, None that `read` has to be awaited.
        """

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        """As `read_cached`, but reads from storage if need be. One call at a time.

        Raises:
            CursorClosedError: It was closed.
            StorageError: An entry can't be read.
        """

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged; None if not in memory."""

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, from storage; raises what `read` does."""

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, soon after there is an entry to read or the topic is terminated."""

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""

    def has_more_entries(self) -> bool:
        """Whether there is an entry at or after the read position."""

    def backlog_count(self) -> int:
        """The number of unacknowledged entries."""

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""

    def seek(self, position: Position) -> None:
        """Read on from `position`, or from the first unacknowledged entry if that is later."""

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch's unacknowledged indexes (bit set); None if they are all of them."""
