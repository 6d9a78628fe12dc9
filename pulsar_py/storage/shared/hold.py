"""`CopyHold`: keeps ledgers and files as they are while a backup is made (edge).

There are two kinds, each for as long as its context is open:

    ledgers   nobody creates or deletes one, and what had begun has ended; appending goes on.
              Short: until the files of a backup are known.
    files     a file of which nothing is needed any more keeps its name until all copies are made.
              A process that ends before leaves it over, for the next start to remove.

Owned by the LedgerStorage; the Bookie creates and deletes ledgers within `change_of_ledgers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pulsar_py.common.disks.disk import Disk

__all__ = ["CopyHold"]


class CopyHold:
    """Counts the contexts that are open."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._holders_count = 0
        # Files to be removed when nobody holds files any more.
        self._kept: set[str] = set()
        self._changes_count = 0
        self._ledgers_may_change = asyncio.Event()
        self._ledgers_may_change.set()
        self._no_change_is_under_way = asyncio.Event()
        self._no_change_is_under_way.set()

    @property
    def kept_count(self) -> int:
        """How many files wait to be removed."""
        return len(self._kept)

    @asynccontextmanager
    async def of_ledgers(self) -> AsyncIterator[None]:
        """Let nobody create or delete ledgers; one context at a time.

        What has begun ends first: a flush leaves the entries of a ledger out as soon as its
        deletion is in the journal, and writes the deletion itself with the next one.
        """
        assert self._ledgers_may_change.is_set(), "one backup at a time"
        self._ledgers_may_change.clear()
        try:
            await self._no_change_is_under_way.wait()
            yield
        finally:
            self._ledgers_may_change.set()

    @asynccontextmanager
    async def change_of_ledgers(self) -> AsyncIterator[None]:
        """Create or delete a ledger, once nobody holds them; at once in the usual case."""
        while not self._ledgers_may_change.is_set():
            await self._ledgers_may_change.wait()
        self._changes_count += 1
        self._no_change_is_under_way.clear()
        try:
            yield
        finally:
            self._changes_count -= 1
            if not self._changes_count:
                self._no_change_is_under_way.set()

    @asynccontextmanager
    async def of_files(self) -> AsyncIterator[None]:
        """Keep all files; those that were due to go are removed at the end."""
        self._holders_count += 1
        try:
            yield
        finally:
            self._holders_count -= 1
            if not self._holders_count:
                kept, self._kept = self._kept, set()
                for path in sorted(kept):
                    await self._disk.remove_slowly(path)

    async def remove(self, path: str) -> None:
        """Remove a file of which nothing is needed any more, now or when nobody holds files."""
        if self._holders_count:
            self._kept.add(path)
        else:
            await self._disk.remove_slowly(path)
