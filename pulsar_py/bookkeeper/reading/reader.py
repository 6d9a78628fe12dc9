"""`BookKeeperReader`: reads one ledger (edge).

How far an open ledger is confirmed is asked of its bookies: each entry bears the last add confirmed
that its writer knew when it was sent, so the end that is found is behind by one entry at least,
unless writers tell it by themselves (`bookies.explicit_lacs`).
Where no bookie can give an entry, the metadata is read again: others may have repaired the ledger
since, or deleted it.

Source: LedgerHandle, ReadOnlyLedgerHandle in Apache BookKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from pulsar_py.bookkeeper.cluster.cluster import LedgerCluster, LedgerInUse
from pulsar_py.bookkeeper.protocol.entry_format import BookieEntry
from pulsar_py.bookkeeper.protocol.frames import RequestFlags
from pulsar_py.bookkeeper.reading.ahead_reads import AheadReads
from pulsar_py.bookkeeper.reading.asking import last_entries
from pulsar_py.bookkeeper.reading.fetching import EntryFetch
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    StoreUnavailableError,
)
from pulsar_py.ledgers.store import LedgerReader

T = TypeVar("T")

MAX_ENTRIES_AT_ONCE: Final = 64
"""Entries that one read asks for."""
PAUSES_SECONDS: Final = (0.5, 1.0, 2.0)
"""The pause before an unavailable bookie is tried again, so that short failures stay hidden."""


async def repeated(cluster: LedgerCluster, ledger_id: int, work: Callable[[], Awaitable[T]]) -> T:
    """Call `work` again, a few times, while it raises StoreUnavailableError; returns its result.

    Raises:
        StoreUnavailableError: It still says so, or the store's time is over.
    """
    async with in_time(cluster, ledger_id):
        for pause_seconds in PAUSES_SECONDS:
            try:
                return await work()
            except StoreUnavailableError:
                await cluster.clock.sleep(pause_seconds)
        return await work()


@asynccontextmanager
async def in_time(cluster: LedgerCluster, ledger_id: int) -> AsyncIterator[None]:
    """Raise StoreUnavailableError if the block takes longer than the store's time limit."""
    seconds = cluster.limits.answer_timeout_seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise StoreUnavailableError(
            f"ledger {ledger_id}: no answer within {seconds:g} seconds"
        ) from None


async def find_end(cluster: LedgerCluster, ledger: LedgerInUse) -> tuple[int, int]:
    """The last entry that bookies know to be confirmed, and the bytes up to it.

    Raises:
        StoreUnavailableError: Too few could say.
    """
    metadata = ledger.recorded.metadata
    if metadata.is_closed:
        return metadata.last_entry_id, metadata.length_bytes
    entries = await last_entries(cluster, ledger, RequestFlags.NONE)
    # A segment begins behind what was confirmed then.
    end = metadata.last_segment.first_entry_id - 1
    end = max([end, *(entry.last_add_confirmed for entry in entries)])
    if cluster.settings.explicit_lac_interval_seconds > 0:
        bookie_ids = metadata.last_segment.bookie_ids
        told = await cluster.explicit_lacs.read(bookie_ids, ledger.ledger_id, ledger.digest)
        end = max(end, told)
    return end, await length_up_to(cluster, ledger, end, entries)


async def length_up_to(
    cluster: LedgerCluster, ledger: LedgerInUse, entry_id: int, known: Sequence[BookieEntry]
) -> int:
    """Bytes of all entries up to a confirmed one, -1 for none; asked for unless it is known.

    Raises:
        StoreUnavailableError: The entry can't be read now.
        CorruptDataError: No bookie has it whole.
    """
    if entry_id < 0:
        return 0
    for entry in known:
        if entry.entry_id == entry_id:
            return entry.length_bytes
    (entry,) = await EntryFetch(cluster, ledger, entry_id, entry_id).run()
    return entry.length_bytes


class BookKeeperReader(LedgerReader):
    """A ledger open for reading."""

    def __init__(
        self,
        cluster: LedgerCluster,
        ledger: LedgerInUse,
        last_add_confirmed: int,
        length_bytes: int,
        ahead: AheadReads,
    ) -> None:
        """`ahead` is the read-ahead that all readers of the store share."""
        self.ledger_id = ledger.ledger_id
        self._cluster = cluster
        self._ledger = ledger
        self._last_add_confirmed = last_add_confirmed
        self._length_bytes = length_bytes
        self._ahead = ahead

    @property
    def last_add_confirmed(self) -> int:
        """The last confirmed entry, as it was last read."""
        return self._last_add_confirmed

    async def read_last_add_confirmed(self) -> int:
        """Read the metadata, and ask the bookies unless the ledger is closed."""

        async def ask() -> tuple[int, int]:
            self._ledger.learn(await self._cluster.records.read(self.ledger_id))
            return await find_end(self._cluster, self._ledger)

        end, length_bytes = await repeated(self._cluster, self.ledger_id, ask)
        if end > self._last_add_confirmed:
            self._last_add_confirmed, self._length_bytes = end, length_bytes
        return self._last_add_confirmed

    @property
    def length_bytes(self) -> int:
        """Bytes of all entries up to `last_add_confirmed`."""
        return self._length_bytes

    @property
    def is_closed(self) -> bool:
        """Whether the ledger was closed when its metadata was last read."""
        return self._ledger.recorded.metadata.is_closed

    def read_cached(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes] | None:
        """The entries that were read ahead."""
        last = min(last_entry_id, self.last_add_confirmed)
        entries = self._ahead.cached(self.ledger_id, first_entry_id, last)
        return self._taken(entries, max_bytes) if entries else None

    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries that were fetched ahead, else from their bookies as many as are likely to fit."""
        end = self.last_add_confirmed
        last = min(last_entry_id, end)
        if not 0 <= first_entry_id <= last:
            raise EntryNotFoundError(
                f"ledger {self.ledger_id}: entry {first_entry_id} is not confirmed, "
                f"the last one that is known to be is {end}"
            )
        async with in_time(self._cluster, self.ledger_id):
            entries = await self._ahead.wanted(self.ledger_id, first_entry_id, last)
            if not entries:
                average_bytes = self.length_bytes // (end + 1) or 1
                count = min(MAX_ENTRIES_AT_ONCE, max(1, max_bytes // average_bytes))
                last = min(last, first_entry_id + count - 1)
                entries = await repeated(
                    self._cluster, self.ledger_id, partial(self._fetch, first_entry_id, last)
                )
        return self._taken(entries, max_bytes)

    def _taken(self, entries: Sequence[BookieEntry], max_bytes: int) -> list[EntryBytes]:
        """The payloads that fit, at least one; the entries behind them are read ahead."""
        taken: list[EntryBytes] = []
        left_bytes = max_bytes
        for entry in entries:
            left_bytes -= len(entry.payload)
            if taken and left_bytes < 0:
                break
            taken.append(entry.payload)
        first = entries[0].entry_id
        self._ahead.taken(self._ledger, first, first + len(taken), self)
        return taken

    async def _fetch(self, first: int, last: int) -> list[BookieEntry]:
        try:
            return await EntryFetch(self._cluster, self._ledger, first, last).run()
        except (StoreUnavailableError, CorruptDataError):
            before = self._ledger.recorded.metadata.segments
            fresh = await self._cluster.records.read(self.ledger_id, is_synced=True)
            self._ledger.learn(fresh)
            if fresh.metadata.segments == before:
                raise
        return await EntryFetch(self._cluster, self._ledger, first, last).run()

    async def close(self) -> None:
        """Drop what was fetched ahead."""
        self._ahead.forget(self.ledger_id)
