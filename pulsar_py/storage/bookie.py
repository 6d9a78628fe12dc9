"""Bookie: the embedded LedgerStore (journal, write cache, entry logs, index)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pulsar_py.common.clock import Clock
from pulsar_py.common.disk import Disk
from pulsar_py.storage.ledger_store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerStore,
    LedgerWriter,
)
from pulsar_py.storage.settings import BookieSettings

__all__ = ["Bookie", "BookieSettings"]


class Bookie(LedgerStore):
    """A LedgerStore of its own on one `Disk`; one copy of each entry.

    Owns the disk from `start` to `close`. One loop, one owner: the composition root.
    """

    @classmethod
    async def start(
        cls,
        disk: Disk,
        *,
        clock: Clock,
        ledger_ids: Callable[[], Awaitable[int]],
        settings: BookieSettings | None = None,
    ) -> Bookie:
        """Lock the disk, recover what is on it, and serve it.

        Args:
            ledger_ids: Gives a ledger id never given before, across restarts.
            settings: Sizes and thresholds; None for the defaults.

        Raises:
            DirectoryLockedError: Another process has the directory.
            CorruptDataError: Something confirmed is damaged; names file and offset.
        """
        raise NotImplementedError

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        """A new, empty, durable ledger."""
        raise NotImplementedError

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open for reading."""
        raise NotImplementedError

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Fence, close and open."""
        raise NotImplementedError

    async def delete(self, ledger_id: int) -> None:
        """Delete a ledger for good."""
        raise NotImplementedError

    async def list_ledgers(self) -> Sequence[int]:
        """Ids of all ledgers, ascending."""
        raise NotImplementedError

    async def info(self, ledger_id: int) -> LedgerInfo:
        """State of one ledger."""
        raise NotImplementedError

    async def flush(self) -> None:
        """Move everything confirmed from the journal to entry logs; returns when durable there."""
        raise NotImplementedError

    async def close(self) -> None:
        """Flush everything and stop."""
        raise NotImplementedError
