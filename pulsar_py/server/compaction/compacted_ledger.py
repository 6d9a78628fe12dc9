"""`CompactedLedger`: reads what the last compaction of a topic kept (edge).

Its records are in the order of their positions in the topic, so that the first one at or after a
position is found by a binary search; who reads on keeps the index of the next one. The ledger is
opened by the first reader. If it is gone, the topic counts as never compacted: so it is after
Apache Pulsar was killed between the deletion of a compacted ledger and the write of the cursor.

Source: CompactedTopicImpl in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from pulsar_py.common.position import Position
from pulsar_py.ledgers.store import LedgerReader, LedgerStore
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.record_format import CompactedRecord, decode_record

_ONE: Final = 1  # byte, so that one entry is read


class CompactedLedger:
    """One compacted ledger; owned by the `TopicCompaction` until a newer one takes its place."""

    def __init__(self, ledger_store: LedgerStore, ledger_id: int, horizon: Position) -> None:
        """`horizon` is the last position of the topic that was compacted."""
        self.ledger_id = ledger_id
        self.horizon = horizon
        self._ledger_store = ledger_store
        self._reader: LedgerReader | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> LedgerReader:
        """The open ledger.

        Raises:
            LedgerNotFoundError: It is gone.
            StorageError: It can't be opened now.
        """
        async with self._opening:
            if self._reader is None:
                self._reader = await self._ledger_store.open(self.ledger_id)
            return self._reader

    async def read_record(self, index: int) -> CompactedRecord:
        """One record.

        Raises:
            StorageError: It can't be read.
        """
        reader = await self.open()
        (data,) = await reader.read(index, index, _ONE)
        return decode_record(data)

    async def last_record(self) -> CompactedRecord | None:
        """The last record; None if nothing was kept."""
        reader = await self.open()
        if reader.last_add_confirmed < 0:
            return None
        return await self.read_record(reader.last_add_confirmed)

    async def index_of(self, position: Position) -> int:
        """The index of the first record at or after `position`, or the count of all."""
        reader = await self.open()
        low, high = 0, reader.last_add_confirmed + 1
        while low < high:
            middle = (low + high) // 2
            if (await self.read_record(middle)).position < position:
                low = middle + 1
            else:
                high = middle
        return low

    async def read(self, index: int, max_entries: int, max_bytes: int) -> Sequence[Entry]:
        """Messages from the record `index` on, as entries of the topic; none behind the last.

        Raises:
            StorageError: They can't be read.
        """
        reader = await self.open()
        last = min(index + max_entries - 1, reader.last_add_confirmed)
        if index > last:
            return ()
        records = map(decode_record, await reader.read(index, last, max_bytes))
        return [Entry(*record.position, record.message) for record in records]

    async def close(self) -> None:
        """Release the ledger; it stays."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()
