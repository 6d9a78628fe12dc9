"""`Compactor`: one compaction of one topic, in two phases (edge).

Phase one reads everything and finds the newest message of each key, phase two reads it again and
writes those to a new ledger. `keyed_messages` says what an entry holds, `latest_messages` and
`chunked_messages` which of it stay.

Source: AbstractTwoPhaseCompactor in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.chunked_messages import ChunkedMessages
from pulsar_py.server.compaction.compacted_writer import CompactedWriter
from pulsar_py.server.compaction.compaction_input import CompactionInput
from pulsar_py.server.compaction.keyed_messages import NO_BATCH_INDEX, KeyedEntry, examine, rebatch
from pulsar_py.server.compaction.latest_messages import LatestMessages
from pulsar_py.server.compaction.record_format import encode_record
from pulsar_py.server.compaction.survivors import Survivors, pack_place
from pulsar_py.wire.payload import strip_broker_entry_metadata

MESSAGES_A_TURN: Final = 100
"""Messages that are looked at before others have a turn: about a millisecond, because between a
SEND and its receipt lie some turns."""


class CompactionRules(Struct, frozen=True, kw_only=True):
    """What stays, and in which form.

    Attributes:
        retains_null_keys: Whether messages without a key stay, all of them.
        is_by_event_time: Whether the message with the latest event time stays, not the last one.
        keeps_broker_entry_metadata: Whether readers get it, so that it is stored.
    """

    retains_null_keys: bool = False
    is_by_event_time: bool = False
    keeps_broker_entry_metadata: bool = False


class Counts(Struct):
    """What one compaction did; for statistics."""

    messages_read: int = 0
    messages_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def messages_removed(self) -> int:
        """Messages that were read and did not stay."""
        return self.messages_read - self.messages_written


class Compactor:
    """One compaction; made for it, and closed by its owner at the end."""

    def __init__(
        self,
        source: CompactionInput,
        rules: CompactionRules,
        new_disk: Callable[[], Disk],
        name: str,
        *,
        memory_bytes: int,
    ) -> None:
        """Beyond `memory_bytes` keys go to sorted runs in files of this `name`."""
        self._source = source
        self._rules = rules
        self._latest = LatestMessages(new_disk, name, memory_bytes=memory_bytes)
        self._chunked = ChunkedMessages()
        self._survivors = Survivors()
        self.counts = Counts()
        self.compacted_to: Position | None = None
        """The last entry with a message that is neither a tombstone nor dropped for its key."""

    @property
    def runs_count(self) -> int:
        """Sorted runs that were written to disk."""
        return self._latest.runs_count

    # Phase one

    async def find_survivors(self) -> None:
        """Phase one.

        Raises:
            StorageError: Something can't be read, or written to disk.
        """
        seen = 0
        async for entries in self._source.entries():
            for entry in entries:
                keyed = examine(entry.data)
                self._take(entry, keyed)
                seen += len(keyed.messages) + 1
                if self._latest.is_full:
                    await self._latest.spill()
                if seen >= MESSAGES_A_TURN:
                    seen = 0
                    await asyncio.sleep(0)
        for places in self._chunked.incomplete():
            self._survivors.add(places)
        await self._latest.add_to(self._survivors)

    def _take(self, entry: Entry, keyed: KeyedEntry) -> None:
        position = entry.position
        self.counts.bytes_read += len(entry.data)
        self.counts.messages_read += len(keyed.messages) or keyed.is_opaque
        if keyed.is_opaque:
            self._survivors.add(pack_place(position, NO_BATCH_INDEX))
            self.compacted_to = position
        for message in keyed.messages:
            places = pack_place(position, message.batch_index)
            if keyed.chunk is not None:
                self.compacted_to = position
                joined = self._chunked.add(keyed.chunk, places)
                if joined is None:
                    continue
                places = joined
            if message.key is None:
                if self._rules.retains_null_keys:
                    self._survivors.add(places)
                    self.compacted_to = position
                continue
            order = message.event_time_millis if self._rules.is_by_event_time else 0
            self._latest.note(message.key, order, places, is_tombstone=message.is_tombstone)
            if not message.is_tombstone:
                self.compacted_to = position

    # Phase two

    async def write(self, writer: CompactedWriter, partition_index: int) -> None:
        """Phase two: append the messages that stay to a new ledger.

        Raises:
            StorageError: Something can't be read or written.
        """
        seen = 0
        async for entries in self._source.entries():
            for entry in entries:
                seen += 1
                if self._survivors.has_entry(entry.position):
                    kept, opened_count = self._kept_of(entry)
                    seen += opened_count
                    record = encode_record(entry.position, partition_index, kept)
                    self.counts.bytes_written += len(record)
                    await writer.append(record)
                if seen >= MESSAGES_A_TURN:
                    seen = 0
                    await asyncio.sleep(0)

    def _kept_of(self, entry: Entry) -> tuple[EntryBytes, int]:
        """What is stored of an entry, and how many messages of a batch were opened for it."""
        data = entry.data
        if not self._rules.keeps_broker_entry_metadata:
            data = strip_broker_entry_metadata(data)
        indexes = self._survivors.kept_indexes(entry.position)
        self.counts.messages_written += max(len(indexes), 1)
        return rebatch(data, indexes) if indexes else (data, 0)

    async def close(self) -> None:
        """Remove what is on disk."""
        await self._latest.close()
