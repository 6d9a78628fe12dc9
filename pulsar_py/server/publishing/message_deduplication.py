"""`MessageDeduplication`: a topic's sequence ids, stored in the cursor `pulsar.dedup` (edge).

The cursor's mark-delete position and properties are a snapshot; opening loads them and replays
newer entries. New snapshots are taken after a number of entries, periodically by the topic's
upkeep, and when the topic closes. `Deduplication` decides.

Source: MessageDeduplication in Pulsar's broker.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pulsar_py.common.errors import (
    CursorNotFoundError,
    ManagedLedgerError,
    RemoteProtocolError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition, ManagedLedger
from pulsar_py.server.publishing.deduplication import CURSOR_NAME, Deduplication, DuplicateStatus
from pulsar_py.wire.payload import parse_metadata

if TYPE_CHECKING:
    from pulsar_py.server.policies.topic_settings import TopicSettings
    from pulsar_py.server.publishing.producer import PublishContext

logger = logging.getLogger(__name__)

_REPLAY_ENTRIES = 100
_REPLAY_BYTES = 5 * 1024 * 1024


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
        self.state.recover(dict(cursor.properties), clock.monotonic_seconds())
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
        now = self._clock.monotonic_seconds()
        for name in self.state.persisted:
            self.state.on_producer_removed(name, now)

    def _replay_entry(self, entry: Entry) -> None:
        self._last_position = entry.position
        try:
            metadata = parse_metadata(entry.data)
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
            self.state.replay(name, highest)

    def decide(self, name: str, sequence_id: int, highest_id: int | None) -> DuplicateStatus:
        """Decide whether to store a message."""
        return self.state.decide(name, sequence_id, highest_id or sequence_id)

    def on_persisted(self, name: str, sequence_id: int, highest_id: int | None) -> None:
        """Note that a message is stored."""
        self.state.on_persisted(name, max(sequence_id, highest_id or sequence_id))

    def on_group_persisted(self, last_position: Position) -> None:
        """Note that entries up to this one are counted; take a snapshot if one is due."""
        self._last_position = last_position
        if self.state.entries_since_snapshot >= self._snapshot_entries:
            self.take_snapshot()

    def take_snapshot(self) -> None:
        """Move the cursor to the newest counted entry, with the sequence ids up to it."""
        if self._last_position is None or not self.state.entries_since_snapshot:
            return
        self._snapshot_seconds = self._clock.monotonic_seconds()
        try:
            self.cursor.acknowledge_cumulative(
                self._last_position, properties=self.state.snapshot()
            )
        except ManagedLedgerError as error:
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
        try:
            await self._ledger.delete_cursor(CURSOR_NAME)
        except CursorNotFoundError:
            return
