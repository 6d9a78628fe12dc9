"""`CursorStore`: stores one durable cursor's state in its record and its cursor ledger (edge).

The record in the metadata store exists from the cursor's creation to its deletion. States of a
running cursor go to a cursor ledger, one entry each, of which the last whole one counts. It is made
at the first write, and a new one when it is full, old or failed; the record names it only once it
holds a state, and the old one is deleted after that. On a clean close a small state goes into the
record and the cursor ledger is deleted.

A large state is many entries: segments, and a marker that lists them (`segments`). Recovery takes
the last whole state and the changes written after it; segments after it belong to a write that was
cut off.

If no cursor ledger can be created, the record takes the whole state if it is small enough; if not,
it goes on naming the old ledger and adds as much as fits: recovery joins the two.

A fenced cursor ledger counts as failed if the managed ledger is still ours: repair of a lost
replica fences ledgers, too. The record is never written on top of a version that another owner
wrote: finding one ends the ownership. A new owner that has not written this record yet would lose
to our write; so the list of ledgers, which every opener writes, is read first.

What always holds: at whatever moment the process stops, the record leads to the last state whose
write was reported as durable, or to a newer one.

Source: persistPositionToLedger, persistPositionMetaStore, createNewMetadataLedger in
ManagedCursorImpl.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence

from pulsar_py.common.errors import (
    LedgerFencedError,
    LedgerNotFoundError,
    ManagedLedgerFencedError,
    MetadataError,
    MetadataNotFoundError,
    StorageError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import EARLIEST
from pulsar_py.ledgers.store import LedgerReader, LedgerStore, LedgerWriter
from pulsar_py.managed_ledger.cursors.format import (
    NO_LEDGER,
    CursorContent,
    CursorRecord,
    CursorSnapshot,
    decode_cursor_record,
    encode_cursor_record,
    encode_position_info,
)
from pulsar_py.managed_ledger.cursors.record_part import part_that_fits
from pulsar_py.managed_ledger.cursors.segments import SegmentKey, SegmentRef, StoredSegment
from pulsar_py.managed_ledger.cursors.state_reading import (
    join_states,
    last_whole_state,
    read_stored_segments,
)
from pulsar_py.managed_ledger.log.appender import create_ledger
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore

logger = logging.getLogger(__name__)

OnWritten = Callable[[Exception | None], None]
"""Called once: with None when a state is durable, else with the error."""

_ALL = 1 << 62


class CursorStore:
    """The record and the cursor ledger of one cursor. Owned by its ManagedCursor."""

    def __init__(
        self,
        path: str,
        metadata: MetadataStore,
        ledger_store: LedgerStore,
        clock: Clock,
        *,
        prove_ownership: Callable[[], Awaitable[None]],
        confirm_newest: Callable[[], Awaitable[None]],
        check_owner: Callable[[], None] | None = None,
        written: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """The first three callables raise if the managed ledger may be another owner's.

        `prove_ownership` is awaited after a cursor ledger was fenced, `confirm_newest` before the
        record is replaced (it finds an owner that opened the managed ledger since), and
        `check_owner`, which does not wait, is called before each change of the record. `written`
        makes the value to store of an encoded record: it may be compressed.
        """
        self._path = path
        self._written = written
        self._metadata = metadata
        self._ledger_store = ledger_store
        self._clock = clock
        self._prove_ownership = prove_ownership
        self._confirm_newest = confirm_newest
        self._was_fenced = False  # the last cursor ledger was: ownership has to be proven
        self._record = OwnedRecord(metadata, path, check_owner=check_owner)
        self._writer: LedgerWriter | None = None  # the cursor ledger, if this process made it
        self._writes: deque[tuple[int, OnWritten]] = deque()  # under way: entry id, callback
        self._ledger_since_seconds = 0.0  # when the writer was made
        self.ledger_id = NO_LEDGER  # the cursor ledger that the record names
        self.last_switch_millis = 0  # when the record last named another one; 0 never
        self.cursor_properties: dict[str, str] = {}
        self._unknown_fields = b""  # of the record, from a newer version
        # The places of the last state's segments in the ledger that the record names.
        self.refs: dict[SegmentKey, SegmentRef] = {}
        self._old_reader: LedgerReader | None = None  # of a ledger that the writer is not of
        self._addition: CursorSnapshot | None = None  # what the record adds to the ledger's state

    @property
    def last_entry_id(self) -> int:
        """The last entry of the cursor ledger, -1 if it has none or is only read."""
        return -1 if self._writer is None else self._writer.last_add_pushed

    @property
    def may_be_stored(self) -> bool:
        """Whether there is a record of this store's, as far as is known.

        That of an earlier attempt to create it counts: only this store knows whose it is.
        """
        return self._record.is_in_doubt or self._record.version != MUST_NOT_EXIST

    # The record

    async def create(self, content: CursorContent) -> None:
        """Make the record of a new cursor.

        Raises:
            MetadataError: It could not be stored.
            ManagedLedgerFencedError: Another owner made it.
        """
        await self.write_record(content)

    async def write_record(
        self,
        content: CursorContent,
        *,
        ledger_id: int = NO_LEDGER,
    ) -> None:
        """Replace the record: with the whole state, or with the name of a cursor ledger.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: It could not be stored.
        """
        addition = self._addition if self.ledger_id == ledger_id != NO_LEDGER else None
        encoded = encode_cursor_record(
            content if addition is None else addition,
            self.cursor_properties,
            cursor_ledger_id=ledger_id,
            max_ranges=_ALL,
            max_batches=_ALL,
            adds_to_ledger=addition is not None,
            unknown=self._unknown_fields,
        )
        await self._confirm_newest()
        await self._record.write(self._written(encoded.data))
        if self.ledger_id != ledger_id:
            self.last_switch_millis = self._clock.wall_time_millis()
        self.ledger_id = ledger_id
        self._addition = addition

    async def write_part(self, content: CursorContent, limit: int) -> int:
        """Store as much of a state in the record as fits, and never less than it has.

        If the record names a ledger, the part is added to the ledger's state. Returns how many
        ranges and batches are left out.

        Raises:
            ManagedLedgerFencedError: Another owner changed it.
            MetadataError: It could not be stored.
            CorruptDataError: The record can't be read.
        """
        part, left_out_count = part_that_fits(content, await self._recorded(), limit)
        before, self._addition = self._addition, part
        try:
            await self.write_record(part, ledger_id=self.ledger_id)
        except (MetadataError, ManagedLedgerFencedError):
            self._addition = before
            raise
        return left_out_count

    async def _recorded(self) -> CursorSnapshot | None:
        """The state in the record itself, without the ledger that it names."""
        if self.ledger_id != NO_LEDGER:
            return self._addition
        stored = await self._metadata.get(self._path)
        return None if stored is None else decode_cursor_record(stored.value).snapshot

    async def recover(
        self, config: ManagedLedgerConfig, *, room_bytes: int = 1 << 62
    ) -> CursorSnapshot:
        """Read the record, and the cursor ledger if it names one.

        Of a large state the oldest ledgers are loaded, at most `room_bytes` but at least the first
        two; the others are cold.

        If the cursor ledger is gone, or has no readable state, the cursor goes back to the record's
        position.

        Raises:
            MetadataNotFoundError: There is no record.
            MetadataError, StorageError: It can't be read now.
        """
        stored = await self._metadata.get(self._path)
        if stored is None:
            raise MetadataNotFoundError(f"{self._path}: no such cursor")
        self._record.found(stored)
        record = decode_cursor_record(stored.value)
        self.cursor_properties = record.cursor_properties
        self._unknown_fields = record.unknown_fields
        self.ledger_id = record.cursor_ledger_id
        if record.cursor_ledger_id == NO_LEDGER:
            return record.snapshot
        found = await self._read_ledger(record, config, room_bytes)
        if found is not None:
            return found
        logger.warning(
            "cursor rolled back",
            extra={"cursor": self._path, "position": str(record.snapshot.mark_delete_position)},
        )
        assert record.snapshot.mark_delete_position >= EARLIEST
        return record.snapshot

    async def _read_ledger(
        self, record: CursorRecord, config: ManagedLedgerConfig, room_bytes: int
    ) -> CursorSnapshot | None:
        try:
            reader = await self._ledger_store.recover(
                record.cursor_ledger_id, password=config.ledger_options.password
            )
        except LedgerNotFoundError:
            return None
        found = await last_whole_state(reader, room_bytes)
        if found is None:
            await reader.close()
            return None
        snapshot, self.refs = found
        if record.adds_to_ledger:
            self._addition = record.snapshot
            join_states(snapshot, record.snapshot)
        if self.refs:
            self._old_reader = reader
        else:
            await reader.close()
        return snapshot

    async def read_segments(
        self, keys: Sequence[SegmentKey], config: ManagedLedgerConfig
    ) -> list[StoredSegment]:
        """The stored segments of these pages.

        Raises:
            StorageError: They can't be read.
        """
        reader: LedgerReader | None = self._writer
        if reader is None or reader.ledger_id != self.ledger_id:
            if self._old_reader is None:
                self._old_reader = await self._ledger_store.open(
                    self.ledger_id, password=config.ledger_options.password
                )
            reader = self._old_reader
        return await read_stored_segments(reader, {key: self.refs[key] for key in keys})

    # States

    def try_append(
        self, entries: Sequence[bytes], config: ManagedLedgerConfig, on_written: OnWritten
    ) -> bool:
        """Append entries to the cursor ledger; False if there is none, or it takes no more.

        After False no complete state was written, and `switch_ledger` has to be awaited.
        `on_written` is called once, for all of them.
        """
        writer = self._writer
        if writer is None or writer.ledger_id != self.ledger_id or self._is_full(writer, config):
            return False
        return self._append(writer, entries, on_written)

    def _append(
        self, writer: LedgerWriter, entries: Sequence[bytes], on_written: OnWritten
    ) -> bool:
        try:
            for data in entries:
                entry_id = writer.append(data)
        except StorageError as error:
            self._was_fenced |= isinstance(error, LedgerFencedError)
            return False
        self._writes.append((entry_id, on_written))
        return True

    def can_append(self, config: ManagedLedgerConfig) -> bool:
        """Whether `try_append` would try."""
        writer = self._writer
        return (
            writer is not None
            and writer.ledger_id == self.ledger_id
            and not self._is_full(writer, config)
        )

    def _is_full(self, writer: LedgerWriter, config: ManagedLedgerConfig) -> bool:
        age_seconds = self._clock.monotonic_seconds() - self._ledger_since_seconds
        return (
            writer.last_add_pushed + 1 >= config.cursor_max_entries_per_ledger
            or age_seconds >= config.cursor_rollover_seconds
        )

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        """Report the states up to this entry as durable."""
        if self._writer is None or ledger_id != self._writer.ledger_id:
            return
        while self._writes and self._writes[0][0] <= last_add_confirmed:
            self._writes.popleft()[1](None)

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        """Note that the cursor ledger takes no more entries: the next write makes a new one."""
        if self._writer is None or ledger_id != self._writer.ledger_id:
            return
        self._writer = None
        self._was_fenced |= isinstance(error, LedgerFencedError)
        writes, self._writes = self._writes, deque()
        _answer(writes, error)

    async def append_and_wait(self, entries: Sequence[bytes], config: ManagedLedgerConfig) -> bool:
        """As `try_append`, and wait until the entries are durable.

        Raises:
            StorageError, ManagedLedgerFencedError: They may not be durable.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.try_append(entries, config, lambda error: _settle(done, error)):
            return False
        await done
        return True

    async def append_new(self, entries: Sequence[bytes]) -> None:
        """Append to the ledger that `switch_ledger` begins, and wait until that is durable.

        Raises:
            StorageError, ManagedLedgerFencedError: The entries may not be durable.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._writer is None or not self._append(
            self._writer, entries, lambda error: _settle(done, error)
        ):
            raise StorageError(f"{self._path}: the new cursor ledger takes no entries")
        await done

    async def switch_ledger(
        self,
        content: CursorContent,
        config: ManagedLedgerConfig,
        write_state: Callable[[], Awaitable[dict[SegmentKey, SegmentRef]]],
    ) -> None:
        """Begin a new cursor ledger with the state that `write_state` appends; delete the old one.

        `write_state` appends with `append_new`, and returns the places of the segments, if any.

        Raises:
            StorageError, MetadataError: The state may not be durable; the old ledger still counts.
            ManagedLedgerFencedError: Another owner changed the record.
        """
        if self._was_fenced:
            await self._prove_ownership()
            self._was_fenced = False
        writer = await create_ledger(
            self._ledger_store,
            self,
            config.cursor_ledger_options(self._path),
            timeout_seconds=config.ledger_creation_timeout_seconds,
        )
        old_writer, old_ledger_id = self._writer, self.ledger_id
        # Writes under way in the old ledger: its confirmations are not listened to any more.
        overtaken, self._writes = self._writes, deque()
        self._writer = writer
        self._ledger_since_seconds = self._clock.monotonic_seconds()
        try:
            refs = await write_state()
            await self.write_record(content, ledger_id=writer.ledger_id)
        except MetadataError as error:
            self._writer = None  # the ledger is not deleted: the record may name it all the same
            _answer(overtaken, error)
            raise
        except (StorageError, ManagedLedgerFencedError) as error:
            self._writer = None
            _answer(overtaken, error)
            await self._delete_ledger(writer, writer.ledger_id)
            raise
        _answer(overtaken, None)  # the new state, which is durable, includes theirs
        self.refs = refs
        await self._close_old_reader()
        await self._delete_ledger(old_writer, old_ledger_id)

    async def _close_old_reader(self) -> None:
        reader, self._old_reader = self._old_reader, None
        if reader is not None:
            await reader.close()

    async def _delete_ledger(self, writer: LedgerWriter | None, ledger_id: int) -> None:
        """Delete a ledger that the record no longer names; failures are left to the collector."""
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
        overtaken, self._writes = self._writes, deque()
        _answer(overtaken, None)
        await self._close_old_reader()
        await self._delete_ledger(writer, ledger_id)

    async def close_ledger(self) -> None:
        """Close the cursor ledger, which the record goes on naming."""
        writer, self._writer = self._writer, None
        await self._close_old_reader()
        if writer is not None:
            await writer.close()

    async def delete(self, owned_ledger_ids: Sequence[int] = ()) -> None:
        """Remove the record, then the cursor ledger, and those that the record named.

        Raises:
            MetadataError: The record may still be there.
            ManagedLedgerFencedError: Another owner changed it.
        """
        await self._confirm_newest()
        await self._record.delete()
        await self.drop_ledger(self.ledger_id)
        for ledger_id in owned_ledger_ids:
            await self._delete_ledger(None, ledger_id)


def encode_state(content: CursorContent, config: ManagedLedgerConfig) -> bytes:
    """A small state as one entry of a cursor ledger."""
    limit = config.max_ranges_in_cursor_entry
    encoded = encode_position_info(
        content,
        max_ranges=limit,
        max_batches=limit,
        as_long_arrays=config.persists_ranges_as_long_arrays,
    )
    assert not encoded.ranges_left_out_count + encoded.batches_left_out_count, "it is not small"
    return encoded.data


def _answer(writes: Iterable[tuple[int, OnWritten]], error: Exception | None) -> None:
    """Call the callbacks of writes that have ended."""
    for _, on_written in writes:
        on_written(error)


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
