"""`MessageDeduplication`: a topic's sequence ids, stored in the cursor `pulsar.dedup` (edge).

The cursor's mark-delete position and properties are a snapshot; opening loads them and replays
newer entries. New snapshots are taken after a number of entries, periodically by the topic's
upkeep, and when the topic closes. `Deduplication` decides. Where the sequence ids don't fit the
properties, they are in a `SequenceIdLog`, and the cursor moves when they are durable there.

Source: MessageDeduplication in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from pulsar_py.common.errors import (
    CursorNotFoundError,
    ManagedLedgerError,
    MetadataError,
    RemoteProtocolError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from pulsar_py.server.publishing.deduplication import CURSOR_NAME, Deduplication
from pulsar_py.server.publishing.producer import CHUNK_PART, MARKER
from pulsar_py.server.publishing.sequence_id_log import SequenceIdLog
from pulsar_py.wire.payload import parse_fields

if TYPE_CHECKING:
    from pulsar_py.server.policies.topic_settings import TopicSettings
    from pulsar_py.server.publishing.producer import AppendRun, PublishContext

logger = logging.getLogger(__name__)

_REPLAY_ENTRIES = 100
_REPLAY_BYTES = 5 * 1024 * 1024
_UNCOUNTED = (MARKER, CHUNK_PART)
# Of a PublishContext:
_PRODUCER = itemgetter(0)
_SEQUENCE_ID = itemgetter(1)
_HIGHEST = itemgetter(2)
_KIND = itemgetter(5)  # 0 is MESSAGE

FEW_NAMES: Final = 5000
"""With so many names at most they go back from the log into the cursor's properties."""


class MessageDeduplication:
    """Owned by a `PersistentTopic` while deduplication is on."""

    def __init__(
        self, ledger: ManagedLedger[PublishContext], cursor: ManagedCursor, clock: Clock
    ) -> None:
        self.cursor = cursor
        self.state = Deduplication(max_producers=0)
        self._ledger = ledger
        self._clock = clock
        self._snapshot_seconds = clock.monotonic_seconds()  # when the last one was taken
        self._snapshot_entries = 0
        self._last_position: Position | None = None  # of the newest counted entry
        self._log = SequenceIdLog(cursor, ledger, clock)
        self._writing: asyncio.Task[None] | None = None  # a snapshot into the log
        self._has_failed = False  # the last one

    @classmethod
    async def open(
        cls, ledger: ManagedLedger[PublishContext], settings: TopicSettings, clock: Clock
    ) -> MessageDeduplication:
        """Load the snapshot and replay the entries after it.

        Raises:
            ManagedLedgerError, StorageError, MetadataError: They can't be read; no message must be
                published before they are.
        """
        cursor = await ledger.open_cursor(CURSOR_NAME, InitialPosition.LATEST)
        self = cls(ledger, cursor, clock)
        self.apply_settings(settings)
        now = clock.monotonic_seconds()
        self.state.recover(cursor.properties, now)
        async for ids in self._log.read():
            self.state.recover(ids, now)
        await self._replay()
        return self

    def apply_settings(self, settings: TopicSettings) -> None:
        """Use changed limits and intervals."""
        self.state.max_producers = settings.deduplication_max_producers
        self._snapshot_entries = settings.deduplication_snapshot_entries

    async def _replay(self) -> None:
        self.cursor.rewind()
        while entries := await self.cursor.read(_REPLAY_ENTRIES, _REPLAY_BYTES):
            for entry in entries:
                self._replay_entry(entry)

    def _replay_entry(self, entry: Entry) -> None:
        self._last_position = entry.position
        try:
            metadata = parse_fields(entry.data)
        except RemoteProtocolError:
            return  # unreadable metadata was stored without a check
        is_part = metadata.num_chunks_from_msg > metadata.chunk_id + 1
        if is_part or metadata.HasField("marker_type"):
            return
        highest = metadata.sequence_id
        if metadata.HasField("highest_sequence_id"):
            highest = max(highest, metadata.highest_sequence_id)
        name = metadata.producer_name
        if isinstance(name, str):  # bytes if it is not UTF-8: the name of no producer
            self.state.replay(name, highest, self._clock.monotonic_seconds())

    def append_run(
        self, append_run: AppendRun, datas: list[bytes], contexts: Sequence[PublishContext]
    ) -> int:
        """Append the first entries of a run by a function, if all are new; returns how many.

        It is 0 for a run of which each message has to be decided by itself.
        """
        # Hot path: publish-1k with deduplication, once a run.
        producer = contexts[0][0]
        if any(map(_KIND, contexts)) or not self.state.is_new_run(
            producer.name, list(map(_SEQUENCE_ID, contexts)), list(map(_HIGHEST, contexts))
        ):
            return 0
        taken_count = append_run(datas, contexts)
        if taken_count:
            _, sequence_id, highest, *_ = contexts[taken_count - 1]
            self.state.on_pushed(producer.name, max(sequence_id, highest or 0))
        return taken_count

    def on_group_persisted(
        self, contexts: Sequence[PublishContext], last_position: Position
    ) -> None:
        """Note that a group is stored, up to this entry; take a snapshot if one is due."""
        # Hot path: publish-1k with deduplication
        for producer, its in groupby(contexts, _PRODUCER):
            run = list(its)
            if any(map(_KIND, run)):
                run = [context for context in run if context[5] not in _UNCOUNTED]
                if not run:
                    continue
            newest = max(map(_SEQUENCE_ID, run))
            if any(map(_HIGHEST, run)):
                newest = max(newest, *filter(None, map(_HIGHEST, run)))
            self.state.on_persisted(producer.name, newest, len(run))
        self._last_position = last_position
        if self.state.entries_since_snapshot >= self._snapshot_entries:
            self.take_snapshot()

    def take_snapshot(self) -> None:
        """Move the cursor to the newest counted entry, with the sequence ids up to it.

        With more names than fit its properties that goes on in the background, once at a time.
        """
        if self._last_position is None or not self.state.entries_since_snapshot:
            return
        if self._log.is_used or not self.state.fits_properties:
            if self._writing is None or self._writing.done():
                self._writing = self._ledger.tasks.spawn(self._write(), "write sequence ids")
            return
        self._snapshot_seconds = self._clock.monotonic_seconds()
        try:
            self.cursor.acknowledge_cumulative(
                self._last_position, properties=self.state.snapshot()
            )
        except ManagedLedgerError as error:
            self._log_failure(error)

    async def finish_snapshot(self) -> None:
        """Take a snapshot, and return when the cursor has it: before the topic is closed."""
        self.take_snapshot()
        while self._writing is not None and not self._writing.done():
            await asyncio.wait((self._writing,))
            self._writing = None
            if self._has_failed:
                break
            self.take_snapshot()
        await self._log.close()

    async def _write(self) -> None:
        """Write a snapshot into the log of sequence ids, or back into properties."""
        state, log, position = self.state, self._log, self._last_position
        assert position is not None
        self._snapshot_seconds = self._clock.monotonic_seconds()
        changed = state.begin_snapshot()
        self._has_failed = False
        try:
            if state.fits_properties and len(state) <= FEW_NAMES:
                await log.leave(position, state.persisted_ids(state.newest_names()))
                return
            if log.is_rewrite_due(len(state)):
                await log.rewrite(state.newest_names(), state.persisted_id, position)
            else:
                await log.append(changed, state.persisted_id, position)
            self.cursor.acknowledge_cumulative(position, properties={})
        except (StorageError, MetadataError, ManagedLedgerError) as error:
            self._has_failed = True
            state.snapshot_failed(changed)
            self._log_failure(error)

    def _log_failure(self, error: Exception) -> None:
        logger.warning(
            "deduplication snapshot failed",
            extra={"ledger": self._ledger.name, "error": str(error)},
        )

    def maintain(self, settings: TopicSettings) -> None:
        """Forget producers that left long ago; take a snapshot if the last one is old."""
        now = self._clock.monotonic_seconds()
        self.state.forget_inactive(now, settings.deduplication_inactivity_seconds)
        interval = settings.deduplication_snapshot_seconds
        if interval > 0 and now - self._snapshot_seconds >= interval:
            self.take_snapshot()

    async def remove(self) -> None:
        """Delete the cursor, after deduplication was switched off."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait((self._writing,))
        await self._log.close()
        try:
            await self._ledger.delete_cursor(CURSOR_NAME)
        except CursorNotFoundError:
            return
