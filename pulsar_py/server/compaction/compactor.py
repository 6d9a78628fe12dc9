"""`Compactor`: one compaction of one topic, in two phases (edge).

Phase one reads everything and finds the newest message of each key, phase two reads it again and
writes those to a new ledger. `keyed_messages` says what an entry holds, `latest_messages` and
`chunked_messages` which of it stay.

Source: AbstractTwoPhaseCompactor in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, ParamSpec, TypeVar

from msgspec import Struct

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import StorageError
from pulsar_py.common.loops.pace import Pace
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.compaction.chunked_messages import ChunkedMessages
from pulsar_py.server.compaction.compacted_writer import CompactedWriter
from pulsar_py.server.compaction.compaction_input import CompactionInput
from pulsar_py.server.compaction.keyed_messages import (
    ChunkPart,
    KeyedEntry,
    KeyedMessage,
    examine,
    examine_small,
    numbers_count,
    rebatch,
)
from pulsar_py.server.compaction.latest_messages import LatestMessages
from pulsar_py.server.compaction.record_format import encode_record
from pulsar_py.server.compaction.survivors import Survivors
from pulsar_py.wire.payload import strip_broker_entry_metadata

P = ParamSpec("P")
T = TypeVar("T")

MESSAGES_A_TURN: Final = 100
"""Messages that are looked at before others have a turn: about half a millisecond."""

LARGE_BATCH: Final = 500
"""Messages beyond which a thread opens a batch: that many take some milliseconds, and a client may
send tens of thousands at once."""

MESSAGES_AN_ENTRY: Final = 5
"""What an entry counts for in phase two that is not opened: its metadata are read."""


class _Numbering(Struct):
    """The numbers of one phase: equal if both have read the same entries."""

    next: int = 0
    digest: int = 0

    def take(self, position: Position, count: int) -> int:
        """The first number of an entry that has so many."""
        first = self.next
        self.next = first + count
        self.digest = hash((self.digest, *position, count))
        return first


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
        pace: Pace,
    ) -> None:
        """Beyond `memory_bytes` keys go to sorted runs in files of this `name`."""
        self._source = source
        self._rules = rules
        self._pace = pace
        self._latest = LatestMessages(new_disk, name, memory_bytes=memory_bytes, pace=pace)
        self._survivors = Survivors()
        # Out of what the merge needs, which begins when no chunk is held any more.
        self._chunked = ChunkedMessages(self._survivors.add, memory_bytes=memory_bytes // 8)
        self._numbering = _Numbering()  # of phase one
        self.counts = Counts()
        self.compacted_to: Position | None = None
        """The last entry with a message that is neither dropped for its key nor a tombstone."""

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
            self._pace.resume()
            for entry in entries:
                keyed = examine_small(entry.data, LARGE_BATCH)
                if keyed is None:
                    keyed = await self._in_thread(examine, entry.data)
                first = self._numbering.take(entry.position, keyed.numbers_count)
                self._count(entry, keyed, first)
                seen += 1
                for messages in _some_at_a_time(keyed.messages):
                    self._take(entry.position, messages, keyed.chunk, first)
                    seen += len(messages)
                    if self._latest.is_full:
                        await self._latest.spill()
                    if seen >= MESSAGES_A_TURN:
                        seen = 0
                        await self._pace.rest()
        self._chunked.keep_incomplete()
        await self._latest.add_to(self._survivors, keeps_tombstones=self._chunked.has_let_go)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what takes long beside the loop; it has to be pure."""
        self._pace.pause()
        result = await asyncio.to_thread(work, *args, **kwargs)
        self._pace.resume()
        return result

    def _count(self, entry: Entry, keyed: KeyedEntry, first: int) -> None:
        """Take in an entry whose number is `first`, but for its messages."""
        self.counts.bytes_read += len(entry.data)
        self.counts.messages_read += len(keyed.messages) or keyed.is_opaque
        if keyed.is_opaque:
            self._survivors.add((first,))
            self.compacted_to = entry.position

    def _take(
        self,
        position: Position,
        messages: Sequence[KeyedMessage],
        chunk: ChunkPart | None,
        first: int,
    ) -> None:
        """Take in messages of an entry whose number is `first`."""
        for message in messages:
            numbers: Sequence[int] = (first + 1 + message.batch_index,)
            if chunk is not None:
                self.compacted_to = position
                joined = self._chunked.add(chunk, first)
                if joined is None:
                    continue
                numbers = joined
            if message.key is None:
                if self._rules.retains_null_keys:
                    self._survivors.add(numbers)
                    self.compacted_to = position
                continue
            order = message.event_time_millis if self._rules.is_by_event_time else 0
            self._latest.note(message.key, order, numbers, is_tombstone=message.is_tombstone)
            if not message.is_tombstone or self._chunked.has_let_go:
                self.compacted_to = position

    # Phase two

    async def write(self, writer: CompactedWriter, partition_index: int) -> None:
        """Phase two: append the messages that stay to a new ledger.

        Raises:
            StorageError: Something can't be read or written, or is not what phase one has read.
        """
        seen = 0
        numbering = _Numbering()
        async for entries in self._source.entries():
            self._pace.resume()
            for entry in entries:
                seen += MESSAGES_AN_ENTRY
                count = numbers_count(entry.data)
                indexes = self._survivors.kept_of(numbering.take(entry.position, count), count)
                if indexes is not None:
                    is_large = indexes and count > LARGE_BATCH + 1
                    if is_large:
                        kept, _ = await self._in_thread(self._kept_of, entry, indexes)
                    else:
                        kept, opened_count = self._kept_of(entry, indexes)
                        seen += opened_count
                    self.counts.messages_written += max(len(indexes), 1)
                    record = encode_record(entry.position, partition_index, kept)
                    self.counts.bytes_written += len(record)
                    self._pace.pause()
                    await writer.append(record)
                    self._pace.resume()
                if seen >= MESSAGES_A_TURN:
                    seen = 0
                    await self._pace.rest()
        if numbering != self._numbering:
            raise StorageError(
                f"the second phase of the compaction has read up to number {numbering.next}, the "
                f"first one up to {self._numbering.next}: the topic was changed meanwhile; "
                "try again"
            )

    def _kept_of(self, entry: Entry, indexes: frozenset[int]) -> tuple[EntryBytes, int]:
        """What is stored of an entry, and how many messages of a batch were opened for it."""
        data = entry.data
        if not self._rules.keeps_broker_entry_metadata:
            data = strip_broker_entry_metadata(data)
        return rebatch(data, indexes) if indexes else (data, 0)

    async def close(self) -> None:
        """Remove what is on disk."""
        await self._latest.close()


def _some_at_a_time(messages: Sequence[KeyedMessage]) -> Iterator[Sequence[KeyedMessage]]:
    if len(messages) <= MESSAGES_A_TURN:
        yield messages
        return
    for start in range(0, len(messages), MESSAGES_A_TURN):
        yield messages[start : start + MESSAGES_A_TURN]
