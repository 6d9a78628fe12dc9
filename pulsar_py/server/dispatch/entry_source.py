"""EntrySource: where a dispatcher reads entries, and asks which of them are acknowledged.

A `ManagedCursor` is one. Another may stand in front of it, such as one that reads a compacted
ledger up to its horizon and the topic from there on. It answers in positions of the topic, and a
dispatcher can't tell the difference. Acknowledging, seeking for users and statistics are not part
of it: those stay with the cursor of the subscription.

Source: ManagedCursor, CompactedTopic.asyncReadEntriesOrWait in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry


class EntrySource(Protocol):
    """Entries in the order of their positions, from one read position on.

    What always holds: a read that was overtaken by `rewind` or `seek` has no effect, and reads do
    not overlap.
    """

    @property
    def is_durable(self) -> bool:
        """Whether limits of unacknowledged messages apply; they do for durable ones only."""

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        """The next unacknowledged entries up to `max_position`, and go past them.

        `[]` means there is nothing to read now, None that `read` has to be awaited.
        """

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        """As `read_cached`, from storage. One at a time.

        Raises:
            CursorClosedError: It was closed.
            StorageError: An entry can't be read.
        """

    def read_replay_cached(self, positions: Sequence[Position]) -> list[Entry] | None:
        """The entries at `positions` that exist and are not acknowledged; None if not in memory."""

    async def read_replay(self, positions: Sequence[Position]) -> list[Entry]:
        """As `read_replay_cached`, from storage; raises what `read` does."""

    def wait_for_entries(self, callback: Callable[[], None]) -> None:
        """Call back once, soon, when there is an entry to read or the topic was terminated."""

    def cancel_wait(self) -> None:
        """Forget the waiting callback."""

    def has_more_entries(self) -> bool:
        """Whether an entry stands at or after the read position."""

    def backlog_count(self) -> int:
        """Entries not acknowledged."""

    def rewind(self) -> None:
        """Read again from the first entry that is not acknowledged."""

    def seek(self, position: Position) -> None:
        """Read on from `position`, or from the first unacknowledged entry if that is later."""

    def is_acknowledged(self, position: Position) -> bool:
        """Whether the whole entry is acknowledged."""

    def batch_ack_set(self, position: Position) -> Sequence[int] | None:
        """Words of the batch indexes still to deliver (bit set); None if all of them are."""
