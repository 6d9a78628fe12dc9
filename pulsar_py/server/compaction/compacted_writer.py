"""`CompactedWriter`: writes the records of a new compacted ledger (edge).

Records are lent to the store until confirmed; beyond a count or size of unconfirmed ones the
compaction waits. Where the store is busy for a moment, the record is offered again.

Source: AbstractTwoPhaseCompactor.addToCompactedLedger in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import Final

from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType, LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.managed_ledger.log.appender import create_ledger

MAX_UNCONFIRMED: Final = 500
MAX_UNCONFIRMED_BYTES: Final = 8 * 1024 * 1024
BUSY_PAUSE_SECONDS: Final = 0.05
BUSY_TRIES: Final = 200
CREATION_TIMEOUT_SECONDS: Final = 60.0


class CompactedWriter:
    """The new ledger of one compaction; its listener."""

    def __init__(self, ledger_store: LedgerStore, clock: Clock) -> None:
        self._ledger_store = ledger_store
        self._clock = clock
        self._writer: LedgerWriter | None = None
        self._sizes: deque[int] = deque()  # of the records that are not confirmed yet
        self._unconfirmed_bytes = 0
        self._confirmed = -1
        self._failure: StorageError | None = None
        self._news = asyncio.Event()

    @property
    def ledger_id(self) -> int:
        """The id of the ledger; only after `create`."""
        assert self._writer is not None, "it was not created"
        return self._writer.ledger_id

    async def create(
        self, options: LedgerOptions, *, cluster: str, topic: str, compacted_to: bytes
    ) -> int:
        """Create the ledger; returns its id. The digest and password are those of Apache Pulsar.

        Raises:
            StorageError, MetadataError: There is none, or one that no metadata names.
        """
        own = labels.compacted_ledger(cluster, topic, compacted_to)
        options = replace(
            options,
            digest_type=DigestType.CRC32,
            password=b"",
            custom_metadata={**options.custom_metadata, **own},
        )
        self._writer = await create_ledger(
            self._ledger_store, self, options, timeout_seconds=CREATION_TIMEOUT_SECONDS
        )
        return self._writer.ledger_id

    async def append(self, record: bytes) -> None:
        """Append one record, once there is room for it.

        Raises:
            StorageError: The ledger takes no more.
        """
        while (
            len(self._sizes) >= MAX_UNCONFIRMED or self._unconfirmed_bytes >= MAX_UNCONFIRMED_BYTES
        ) and self._failure is None:
            await self._wait()
        if self._failure is not None:
            raise self._failure
        self._sizes.append(len(record))
        self._unconfirmed_bytes += len(record)
        await self._offer(record)

    async def _offer(self, record: bytes) -> None:
        assert self._writer is not None
        for _ in range(BUSY_TRIES):
            try:
                self._writer.append(record)
            except StoreBusyError:
                await self._clock.sleep(BUSY_PAUSE_SECONDS)
            else:
                return
        self._writer.append(record)

    async def close(self) -> None:
        """Close the ledger with all its records.

        Raises:
            StorageError: They may not all be there.
        """
        while self._sizes and self._failure is None:
            await self._wait()
        if self._failure is not None:
            raise self._failure
        assert self._writer is not None
        await self._writer.close()

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Note which records are durable."""
        del ledger_id
        for _ in range(last_add_confirmed - self._confirmed):
            self._unconfirmed_bytes -= self._sizes.popleft()
        self._confirmed = last_add_confirmed
        self._news.set()

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Note that no more records will be."""
        del ledger_id
        self._failure = error
        self._news.set()
