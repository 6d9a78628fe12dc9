"""`TopicCompaction`: what a topic has compacted, and the compaction that is under way (edge).

The subscription `__compaction` holds the topic's entries until they are compacted; its mark-delete
position is the last one that was, and a number stored with it names the compacted ledger. A
compaction takes these steps:

    1  the record of the cursor names the new ledger as unfinished (internal property)
    2  the new ledger is written and closed
    3  one write of the record moves the cursor, names the new ledger and forgets the unfinished one
    4  readers change to the new ledger
    5  the former ledger is deleted

So after a crash the record names a complete ledger; an unfinished one that it also names is deleted
when the topic is loaded; one that no record names (a crash before 1, or before 5) is left to the
ledger collector.
Apache Pulsar deletes the former ledger while the new one may be named nowhere but in memory.

Source: PersistentTopic.triggerCompaction, CompactedTopicImpl, CompactorSubscription in Pulsar's
broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import (
    LedgerNotFoundError,
    ManagedLedgerError,
    MetadataError,
    NotAllowedError,
    PulsarError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.pace import Pace
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.format import (
    COMPACTED_LEDGER_PROPERTY,
    COMPACTING_LEDGER_PROPERTY,
    COMPACTION_CURSOR,
    INTERNAL_PREFIX,
)
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.server.compaction.compacted_ledger import CompactedLedger
from pulsar_py.server.compaction.compacted_writer import CompactedWriter
from pulsar_py.server.compaction.compaction_input import CompactionInput
from pulsar_py.server.compaction.compaction_status import (
    CompactionState,
    CompactionStats,
    CompactionTotals,
)
from pulsar_py.server.compaction.compactor import CompactionRules, Compactor, Counts
from pulsar_py.server.compaction.record_format import encode_compacted_to

logger = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES: Final = 64 * 1024 * 1024
DEFAULT_READ_TIMEOUT_SECONDS: Final = 30.0

COMMIT_TRIES: Final = 3


class CompactionParts(Struct, frozen=True, kw_only=True):
    """The parts that the compactions of one broker share.

    Attributes:
        ledger_store: Where compacted ledgers are.
        disk: Where keys go that do not fit in memory; asked for with the first file.
        memory_bytes: What one compaction may hold, roughly.
        read_timeout_seconds: How long it waits for one read.
        rules: What stays; asked for with the first file.
        totals: Their figures.
        numbers: They name the files of each compaction, in the broker's own directory.
    """

    ledger_store: LedgerStore
    disk: Callable[[], Disk]
    clock: Clock
    rules: Callable[[], CompactionRules] = CompactionRules
    memory_bytes: Callable[[], int] = lambda: DEFAULT_MEMORY_BYTES
    read_timeout_seconds: Callable[[], float] = lambda: DEFAULT_READ_TIMEOUT_SECONDS
    totals: CompactionTotals = field(default_factory=CompactionTotals)
    numbers: Iterator[int] = field(default_factory=count)


class CompactionOwner(Protocol):
    """The part of a topic that its compaction uses."""

    name: TopicName
    ledger: ManagedLedger[Any]  # Any: the context of appends belongs to producers

    def last_readable_entry(self) -> Position:
        """The last entry that may be dispatched, or the gap before the first."""

    async def open_compaction_cursor(self) -> ManagedCursor:
        """The cursor of the subscription `__compaction`, created at the earliest entry."""


class TopicCompaction:
    """The compactions of one topic; owned by it."""

    def __init__(self, owner: CompactionOwner, parts: CompactionParts) -> None:
        self._owner = owner
        self._parts = parts
        self._clock = parts.clock
        self._tasks = TaskOwner(f"compaction of {owner.name}")
        self._task: asyncio.Task[None] | None = None  # the last compaction
        self._stats = CompactionStats()
        self.compacted: CompactedLedger | None = None
        """What readers get up to its horizon; None where the topic was never compacted."""

    @property
    def is_running(self) -> bool:
        """Whether a compaction is under way."""
        return self._stats.state is CompactionState.RUNNING

    # Loading

    async def load(self) -> None:
        """Take over what the cursor names, and delete what a crash left unfinished."""
        cursor = self._owner.ledger.cursors.get(COMPACTION_CURSOR)
        if cursor is None:
            return
        named = cursor.properties.get(COMPACTED_LEDGER_PROPERTY)
        if named is not None:
            self.compacted = CompactedLedger(
                self._parts.ledger_store, named, cursor.mark_delete_position
            )
        unfinished = cursor.cursor_properties.get(INTERNAL_PREFIX + COMPACTING_LEDGER_PROPERTY)
        if unfinished is not None:
            await self._drop_unfinished(cursor, unfinished)

    async def _drop_unfinished(self, cursor: ManagedCursor, text: str) -> None:
        """Delete the ledger of a compaction that was cut short, and its name after it."""
        ledger_id = int(text) if text.isdecimal() else -1
        if ledger_id == cursor.properties.get(COMPACTED_LEDGER_PROPERTY):
            return  # it is in use: the write that says so may have failed, and comes again
        try:
            if ledger_id >= 0:
                await self._parts.ledger_store.delete(ledger_id)
            await cursor.set_internal_property(COMPACTING_LEDGER_PROPERTY, None)
        except (StorageError, MetadataError, ManagedLedgerError) as error:
            self._log("unfinished compacted ledger left over", error, ledger_id)

    def on_missing(self, compacted: CompactedLedger) -> None:
        """Note that the compacted ledger is gone: the topic counts as never compacted."""
        if self.compacted is compacted:
            logger.warning(
                "compacted ledger is gone",
                extra={"topic": str(self._owner.name), "ledger_id": compacted.ledger_id},
            )
            self.compacted = None

    def on_cursor_deleted(self) -> None:
        """Forget the compacted ledger, which was deleted with its cursor."""
        self.compacted = None

    # Compacting

    def begin(self) -> None:
        """Start a compaction.

        Raises:
            NotAllowedError: One is under way.
        """
        if self.is_running:
            raise NotAllowedError("Compaction already in progress")
        self._stats = replace(self._stats, state=CompactionState.RUNNING, last_error="")
        self._task = self._tasks.spawn(self._run(), "compact")

    async def finished(self) -> None:
        """Return when no compaction is under way; for tests and tools."""
        await self._tasks.drain()

    async def _run(self) -> None:
        try:
            await self._run_to_end()
        finally:
            if self.is_running:  # the topic closes, or a defect of ours: nobody waits for ever
                self._stats = replace(
                    self._stats,
                    state=CompactionState.ERROR,
                    last_error="the compaction was cut short; the broker's log says more",
                )

    async def _run_to_end(self) -> None:
        started_millis = self._clock.wall_time_millis()
        totals = self._parts.totals
        try:
            counts = await self._compact()
        except PulsarError as error:
            now = self._clock.wall_time_millis()
            totals.failed_count += 1
            self._stats = replace(
                self._stats,
                state=CompactionState.ERROR,
                last_error=f"{type(error).__name__}: {error}",
                failed_millis=now,
                failed_count=self._stats.failed_count + 1,
                duration_millis=now - started_millis,
            )
            self._log("compaction failed", error)
            return
        now = self._clock.wall_time_millis()
        self._stats = replace(self._stats, state=CompactionState.SUCCESS)
        if counts is None:
            return
        self._stats = replace(
            self._stats,
            removed_messages=counts.messages_removed,
            removed_count=self._stats.removed_count + counts.messages_removed,
            succeeded_millis=now,
            succeeded_count=self._stats.succeeded_count + 1,
            duration_millis=now - started_millis,
        )
        totals.succeeded_count += 1
        totals.removed_messages += counts.messages_removed
        totals.bytes_read += counts.bytes_read
        totals.bytes_written += counts.bytes_written
        totals.duration_millis += now - started_millis

    async def _compact(self) -> Counts | None:
        """Compact up to the last entry there is now; None if there is nothing new."""
        cursor = await self._owner.open_compaction_cursor()
        former = await self._former(cursor)
        last = self._owner.last_readable_entry()
        if last.entry_id < 0 or last <= cursor.mark_delete_position:
            return None
        parts = self._parts
        compactor = Compactor(
            CompactionInput(
                former, cursor, last, read_timeout_seconds=parts.read_timeout_seconds()
            ),
            parts.rules(),
            parts.disk,
            f"compaction-{next(parts.numbers)}",
            memory_bytes=parts.memory_bytes(),
            pace=Pace(self._clock),
        )
        try:
            await compactor.find_survivors()
            parts.totals.sorted_runs_count += compactor.runs_count
            writer = CompactedWriter(parts.ledger_store, self._clock)
            ledger_id = await self._create(writer, compactor.compacted_to or last)
            try:
                await cursor.set_internal_property(COMPACTING_LEDGER_PROPERTY, str(ledger_id))
                await compactor.write(writer, self._owner.name.partition_index)
                await writer.close()
            except PulsarError:
                await self._drop_unfinished(cursor, str(ledger_id))
                raise
        finally:
            await compactor.close()
        await self._take_over(cursor, last, ledger_id, former)
        return compactor.counts

    async def _former(self, cursor: ManagedCursor) -> CompactedLedger | None:
        """The former compacted ledger; if it is gone, the cursor goes back to the first entry."""
        if self.compacted is not None:
            try:
                await self.compacted.open()
            except LedgerNotFoundError:
                self.on_missing(self.compacted)
                await cursor.reset(EARLIEST)
        return self.compacted

    async def _create(self, writer: CompactedWriter, compacted_to: Position) -> int:
        config, name = self._owner.ledger.config, self._owner.name
        return await writer.create(
            config.ledger_options,
            cluster=config.cluster,
            topic=str(name),
            compacted_to=encode_compacted_to(compacted_to, name.partition_index),
        )

    async def _take_over(
        self,
        cursor: ManagedCursor,
        last: Position,
        ledger_id: int,
        former: CompactedLedger | None,
    ) -> None:
        """Let the record name the new ledger, then readers have it, then delete the former one.

        Raises:
            MetadataError: Whether the record names it is unknown: it names both ledgers, or the new
                one. Both stay, readers have the new one, and the cursor is written again later.
            ManagedLedgerError: The cursor could not be moved; the new ledger is gone.
        """
        try:
            await self._tried(
                lambda: cursor.mark_delete_in_record(
                    max(last, cursor.mark_delete_position),
                    {**cursor.properties, COMPACTED_LEDGER_PROPERTY: ledger_id},
                    without=COMPACTING_LEDGER_PROPERTY,
                )
            )
        except PulsarError:
            await self._drop_unfinished(cursor, str(ledger_id))
            raise
        finally:
            if cursor.properties.get(COMPACTED_LEDGER_PROPERTY) == ledger_id:
                horizon = cursor.mark_delete_position
                self.compacted = CompactedLedger(self._parts.ledger_store, ledger_id, horizon)
        if former is not None:
            try:
                await former.close()
                await self._parts.ledger_store.delete(former.ledger_id)
            except (StorageError, MetadataError) as error:
                self._log("former compacted ledger left over", error, former.ledger_id)

    async def _tried(self, write: Callable[[], Awaitable[None]]) -> None:
        for _ in range(COMMIT_TRIES - 1):
            try:
                await write()
            except MetadataError as error:
                self._log("compaction not recorded yet", error)
            else:
                return
        await write()

    def _log(self, event: str, error: Exception, ledger_id: int | None = None) -> None:
        extra = {"topic": str(self._owner.name), "error": str(error)}
        if ledger_id is not None:
            extra["ledger_id"] = str(ledger_id)
        logger.warning(event, extra=extra)

    # Statistics

    def stats(self) -> CompactionStats:
        """The figures now, without those of the ledger that have to be read."""
        return self._stats

    async def stats_with_ledger(self) -> CompactionStats:
        """The figures now, with those of the compacted ledger if it can be opened."""
        compacted = self.compacted
        if compacted is None:
            return self._stats
        try:
            reader = await compacted.open()
        except LedgerNotFoundError:
            self.on_missing(compacted)
            return self._stats
        return replace(
            self._stats,
            ledger_id=compacted.ledger_id,
            ledger_entries_count=reader.last_add_confirmed + 1,
            ledger_bytes=reader.length_bytes,
        )

    async def stop(self) -> None:
        """Stop a compaction under way; what it has written is deleted with the cursor, or later."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
            self._stats = replace(self._stats, state=CompactionState.NOT_RUN)

    async def close(self) -> None:
        """Stop a compaction under way, which begins anew later, and release the ledger."""
        await self._tasks.close()
        if self.compacted is not None:
            await self.compacted.close()
