"""CursorStore: where one durable cursor's state is kept: its record, and its cursor ledger (edge).

The record in the metadata store is there from the cursor's creation to its deletion. States of a
running cursor go to a cursor ledger, one entry each, of which the last whole one counts. It is made
at the first write, and a new one when it is full, old or failed; the record names it only once it
holds a state, and the old one is deleted after that. On a clean close a small state goes into the
record and the cursor ledger goes too.

What always holds: whatever moment the process stops, the record leads to the last state of which a
write was reported done, or to a newer one.

Source: persistPositionToLedger, persistPositionMetaStore, createNewMetadataLedger in
ManagedCursorImpl.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    LedgerFencedError,
    LedgerNotFoundError,
    ManagedLedgerFencedError,
    MetadataBadVersionError,
    MetadataError,
    MetadataExistsError,
    MetadataNotFoundError,
    StorageError,
)
from pulsar_py.common.position import EARLIEST
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.cursor_format import (
    NO_LEDGER,
    CursorContent,
    CursorSnapshot,
    Encoded,
    decode_cursor_record,
    decode_position_info,
    encode_cursor_record,
    encode_position_info,
)
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore
from pulsar_py.storage.ledger_store import LedgerReader, LedgerStore, LedgerWriter

logger = logging.getLogger(__name__)

OnWritten = Callable[[Exception | None], None]
"""Told once whether a state is durable."""

_READ_BACK_ENTRIES = 100  # how far to look back for a whole state


class CursorStore:
    """The record and the cursor ledger of one cursor. Owned by its ManagedCursor."""

    def __init__(
        self, path: str, metadata: MetadataStore, ledger_store: LedgerStore, clock: Clock
    ) -> None:
        self._path = path
        self._metadata = metadata
        self._ledger_store = ledger_store
        self._clock = clock
        self._record_version = MUST_NOT_EXIST
        self._writer: LedgerWriter | None = None  # the cursor ledger, if this process made it
        self._writes: deque[tuple[int, OnWritten]] = deque()  # under way: entry id, whom to tell
        self._ledger_since_seconds = 0.0  # when the writer was made
        self.ledger_id = NO_LEDGER  # which the record names
        self.last_switch_millis = 0  # when it last named another one; 0 never
        self.cursor_properties: dict[str, str] = {}

    @property
    def last_entry_id(self) -> int:
        """The last entry of the cursor ledger, -1 if it has none or is only read."""
        return -1 if self._writer is None else self._writer.last_add_pushed

    # The record

    async def create(self, content: CursorContent) -> None:
        """Make the record of a new cursor.

        Raises:
            MetadataError: It could not be stored.
            ManagedLedgerFencedError: Someone else made it.
        """
        await self.write_record(content)

    async def write_record(
        self,
        content: CursorContent,
        *,
        ledger_id: int = NO_LEDGER,
        max_ranges: int = 1 << 62,
        max_batches: int = 1 << 62,
    ) -> Encoded:
        """Replace the record: with the whole state, or with the name of a cursor ledger.

        Raises:
            ManagedLedgerFencedError: Someone else changed it.
            MetadataError: It could not be stored.
        """
        encoded = encode_cursor_record(
            content,
            self.cursor_properties,
            cursor_ledger_id=ledger_id,
            max_ranges=max_ranges,
            max_batches=max_batches,
        )
        try:
            self._record_version = await self._metadata.put(
                self._path, encoded.data, expected_version=self._record_version
            )
        except (MetadataBadVersionError, MetadataExistsError) as error:
            raise ManagedLedgerFencedError(f"{self._path}: {error}") from error
        if self.ledger_id != ledger_id:
            self.last_switch_millis = self._clock.wall_time_millis()
        self.ledger_id = ledger_id
        return encoded

    async def recover(self, config: ManagedLedgerConfig) -> CursorSnapshot:
        """Read the record, and the cursor ledger if it names one.

        A cursor ledger that is gone, or holds nothing readable, rolls the cursor back to the
        record's position.

        Raises:
            MetadataNotFoundError: There is no record.
            MetadataError, StorageError: It can't be read now.
        """
        stored = await self._metadata.get(self._path)
        if stored is None:
            raise MetadataNotFoundError(f"{self._path}: no such cursor")
        self._record_version = stored.version
        record = decode_cursor_record(stored.value)
        self.cursor_properties = record.cursor_properties
        self.ledger_id = record.cursor_ledger_id
        if record.cursor_ledger_id == NO_LEDGER:
            return record.snapshot
        found = await self._read_ledger(record.cursor_ledger_id, config)
        if found is not None:
            return found
        logger.warning(
            "cursor rolled back",
            extra={"cursor": self._path, "position": str(record.snapshot.mark_delete_position)},
        )
        assert record.snapshot.mark_delete_position >= EARLIEST
        return record.snapshot

    async def _read_ledger(
        self, ledger_id: int, config: ManagedLedgerConfig
    ) -> CursorSnapshot | None:
        try:
            reader = await self._ledger_store.recover(
                ledger_id, password=config.ledger_options.password
            )
        except LedgerNotFoundError:
            return None
        try:
            return await _last_whole_state(reader)
        finally:
            await reader.close()

    # States

    def try_append(self, data: bytes, config: ManagedLedgerConfig, on_written: OnWritten) -> bool:
        """Append a state to the cursor ledger; False if there is none that takes it.

        Then nothing was done, and `switch_ledger` has to be awaited.
        """
        writer = self._writer
        if writer is None or self._is_full(writer, config):
            return False
        try:
            entry_id = writer.append(data)
        except StorageError:
            return False
        self._writes.append((entry_id, on_written))
        return True

    def _is_full(self, writer: LedgerWriter, config: ManagedLedgerConfig) -> bool:
        age_seconds = self._clock.monotonic_seconds() - self._ledger_since_seconds
        return (
            writer.last_add_pushed + 1 >= config.cursor_max_entries_per_ledger
            or age_seconds >= config.cursor_rollover_seconds
        )

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """States up to there are durable."""
        if self._writer is None or ledger_id != self._writer.ledger_id:
            return
        while self._writes and self._writes[0][0] <= last_add_confirmed:
            self._writes.popleft()[1](None)

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """The cursor ledger takes no more; the next write makes a new one."""
        if self._writer is None or ledger_id != self._writer.ledger_id:
            return
        self._writer = None
        failure: Exception = error
        if isinstance(error, LedgerFencedError):
            failure = ManagedLedgerFencedError(f"{self._path}: {error}")
        writes, self._writes = self._writes, deque()
        for _, on_written in writes:
            on_written(failure)

    async def append_and_wait(self, data: bytes, config: ManagedLedgerConfig) -> bool:
        """As `try_append`, and wait until the state is durable.

        Raises:
            StorageError, ManagedLedgerFencedError: It may not be.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.try_append(data, config, lambda error: _settle(done, error)):
            return False
        await done
        return True

    async def switch_ledger(self, content: CursorContent, config: ManagedLedgerConfig) -> Encoded:
        """Begin a new cursor ledger with the state as it is now, and let the old one go.

        Raises:
            StorageError, MetadataError: The state may not be durable; the old ledger still counts.
            ManagedLedgerFencedError: Someone else changed the record.
        """
        encoded = encode_state(content, config)
        writer = await self._ledger_store.create(self, config.ledger_options)
        old_writer, old_ledger_id = self._writer, self.ledger_id
        self._writer = writer
        self._ledger_since_seconds = self._clock.monotonic_seconds()
        try:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._writes.append((writer.append(encoded.data), lambda error: _settle(done, error)))
            await done
            await self.write_record(content, ledger_id=writer.ledger_id)
        except MetadataError:
            self._writer = None  # the record may name the ledger all the same: it has to stay
            raise
        except (StorageError, ManagedLedgerFencedError):
            self._writer = None
            await self._delete_ledger(writer, writer.ledger_id)
            raise
        await self._delete_ledger(old_writer, old_ledger_id)
        return encoded

    async def _delete_ledger(self, writer: LedgerWriter | None, ledger_id: int) -> None:
        """Let a ledger go that the record does not name any more; what fails is left over."""
        try:
            if writer is not None:
                await writer.close()
            if ledger_id != NO_LEDGER:
                await self._ledger_store.delete(ledger_id)
        except StorageError as error:
            logger.warning(
                "cursor ledger left over", extra={"ledger_id": ledger_id, "error": str(error)}
            )

    async def drop_ledger(self, ledger_id: int) -> None:
        """Delete the former cursor ledger after the record took the whole state."""
        writer, self._writer = self._writer, None
        await self._delete_ledger(writer, ledger_id)

    async def close_ledger(self) -> None:
        """Close the cursor ledger; it stays the one that counts."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close()

    async def delete(self) -> None:
        """Remove the record, then the cursor ledger."""
        try:
            await self._metadata.delete(self._path, expected_version=self._record_version)
        except MetadataNotFoundError:
            logger.info("cursor record was gone", extra={"cursor": self._path})
        except MetadataBadVersionError as error:
            raise ManagedLedgerFencedError(f"{self._path}: {error}") from error
        await self.drop_ledger(self.ledger_id)


def encode_state(content: CursorContent, config: ManagedLedgerConfig) -> Encoded:
    """A state as an entry of a cursor ledger, within the limits of the settings."""
    return encode_position_info(
        content,
        max_ranges=config.max_unacked_ranges_to_persist,
        max_batches=config.max_batch_deleted_indexes_to_persist,
        as_long_arrays=config.persists_ranges_as_long_arrays,
    )


async def _last_whole_state(reader: LedgerReader) -> CursorSnapshot | None:
    """The newest entry that can be read; None if the last ones can't."""
    last = reader.last_add_confirmed
    for entry_id in range(last, max(-1, last - _READ_BACK_ENTRIES), -1):
        try:
            (data, *_) = await reader.read(entry_id, entry_id, 1)
            return decode_position_info(data)
        except (CorruptDataError, EntryNotFoundError) as error:
            logger.warning(
                "cursor state can't be read",
                extra={"ledger_id": reader.ledger_id, "entry_id": entry_id, "error": str(error)},
            )
    return None


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
