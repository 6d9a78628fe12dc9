"""`SequenceIdLog`: many sequence ids of a topic's producers, in ledgers of their own (edge).

Apache Pulsar keeps them as properties of the cursor `pulsar.dedup`, so each snapshot writes all.
That is done here, too, as long as they fit. Beyond, a snapshot appends what has changed to a
ledger:

    entry   a PositionInfo: the position of the snapshot, and as properties names with their newest
            sequence id, -1 for a name that was forgotten

An internal property of the cursor lists the ledgers, in decimal, in the order in which they are
read; later entries count more. The first begins with all names. When as many changes as names were
written, or the list is long, all names are written into a new ledger, which then is the list.

What always holds: a listed ledger follows on those before it without a gap, because the cursor's
position moves only after what was appended is durable. Ledgers that are no more in the list are
deleted; what a crash leaves between these steps is named by nobody, and goes to the collector.

Source: none; Apache Pulsar has at most what fits one entry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError

from pulsar_py.common.errors import CorruptDataError, MetadataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import INTERNAL_PREFIX, SEQUENCE_ID_LEDGERS
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.whole_ledger import WholeLedgerWriter
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.proto.MLDataFormats_pb2 import PositionInfo
from pulsar_py.server.publishing.deduplication import name_bytes

logger = logging.getLogger(__name__)

NAMES_AT_ONCE: Final = 1000
"""Names of one entry, which is encoded in one turn of the loop."""

ENTRY_MAX_BYTES: Final = 256 * 1024
"""Names of an entry have at most so many bytes together, save for a single longer one."""

MAX_LEDGERS: Final = 8
_READ_BYTES: Final = 1 << 20


class SequenceIdLog:
    """Owned by the topic's `MessageDeduplication`."""

    def __init__(
        self,
        cursor: ManagedCursor,
        ledger: ManagedLedger[Any],  # Any: the context of appends belongs to producers
        clock: Clock,
    ) -> None:
        """`cursor` is one of `ledger`'s; its properties name the log's ledgers."""
        self._cursor = cursor
        self._ledger = ledger
        self._ledger_store = ledger.ledger_store
        self._clock = clock
        self._writer: WholeLedgerWriter | None = None  # of the last ledger of the list, or None
        self._since_base = 0  # names that were written after the first ledger's
        text = cursor.cursor_properties.get(INTERNAL_PREFIX + SEQUENCE_ID_LEDGERS, "")
        self.ledger_ids = [int(each) for each in text.split(",") if each.isdecimal()]

    @property
    def is_used(self) -> bool:
        """Whether there are ledgers."""
        return bool(self.ledger_ids)

    def is_rewrite_due(self, names_count: int) -> bool:
        """Whether all names should be written again, or for the first time."""
        return not self.is_used or (
            self._since_base > names_count or len(self.ledger_ids) >= MAX_LEDGERS
        )

    async def read(self) -> AsyncIterator[Mapping[str, int]]:
        """All that was written, in order.

        Raises:
            StorageError, MetadataError: It can't be read.
        """
        password = self._ledger.config.ledger_options.password
        for ledger_id in self.ledger_ids:
            reader = await self._ledger_store.open(ledger_id, password=password)
            try:
                following = 0
                while following <= reader.last_add_confirmed:
                    some = await reader.read(following, reader.last_add_confirmed, _READ_BYTES)
                    following += len(some)
                    for data in some:
                        ids = _decoded(bytes(data), ledger_id)
                        self._since_base += len(ids)
                        yield ids
                        await asyncio.sleep(0)
            finally:
                await reader.close()

    async def append(
        self, names: Sequence[str], id_of: Callable[[str], int], position: Position
    ) -> None:
        """Write what these names have now; it is durable when this returns.

        Raises:
            StorageError, MetadataError, ManagedLedgerError: They may not be, and are to be written
                again.
        """
        if self._writer is None:
            writer = await self._filled(names, id_of, position)
            await self._list([*self.ledger_ids, writer.ledger_id])
            self._writer = writer
        else:
            try:
                await _write(self._writer, names, id_of, position)
            except StorageError:
                self._writer = None  # the next ones go to another ledger
                raise
        self._since_base += len(names)

    async def rewrite(
        self, names: Sequence[str], id_of: Callable[[str], int], position: Position
    ) -> None:
        """Write all names, in place of what was written before.

        Raises:
            StorageError, MetadataError, ManagedLedgerError: The former ledgers still count.
        """
        writer = await self._filled(names, id_of, position)
        former, former_writer = self.ledger_ids, self._writer
        await self._list([writer.ledger_id])
        self._writer = writer
        self._since_base = 0
        if former_writer is not None:
            await _close(former_writer)
        await self._delete(former)

    async def _filled(
        self, names: Sequence[str], id_of: Callable[[str], int], position: Position
    ) -> WholeLedgerWriter:
        """A new ledger with these names, listed nowhere yet."""
        writer = WholeLedgerWriter(self._ledger_store, self._clock)
        ledger = self._ledger
        ledger_id = await writer.create_with(ledger.config.sequence_id_ledger_options(ledger.name))
        try:
            await _write(writer, names, id_of, position)
        except StorageError:
            await self._delete((ledger_id,))
            raise
        return writer

    async def _list(self, ledger_ids: list[int]) -> None:
        text = ",".join(map(str, ledger_ids))
        await self._cursor.set_internal_property(SEQUENCE_ID_LEDGERS, text)
        self.ledger_ids = ledger_ids

    async def leave(self, position: Position, properties: Mapping[str, int]) -> None:
        """Go back to properties of the cursor, which get all that is known, up to `position`.

        Raises:
            MetadataError, ManagedLedgerError: Perhaps the ledgers still count.
        """
        await self._cursor.mark_delete_in_record(position, properties, without=SEQUENCE_ID_LEDGERS)
        former, self.ledger_ids = self.ledger_ids, []
        await self.close()
        await self._delete(former)

    async def close(self) -> None:
        """Close the ledger that is written."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await _close(writer)

    async def _delete(self, ledger_ids: Iterable[int]) -> None:
        for ledger_id in ledger_ids:
            try:
                await self._ledger_store.delete(ledger_id)
            except (StorageError, MetadataError) as error:
                logger.warning(
                    "ledger of sequence ids left over",
                    extra={"ledger_id": ledger_id, "error": str(error)},
                )


async def _close(writer: WholeLedgerWriter) -> None:
    try:
        await writer.close()
    except (StorageError, MetadataError) as error:
        logger.info(
            "ledger of sequence ids not closed",
            extra={"ledger_id": writer.ledger_id, "error": str(error)},
        )


async def _write(
    writer: WholeLedgerWriter,
    names: Sequence[str],
    id_of: Callable[[str], int],
    position: Position,
) -> None:
    """Append entries and wait until they are durable."""
    start = 0
    while start < len(names):
        info = PositionInfo(ledgerId=position.ledger_id, entryId=position.entry_id)
        size = 0
        for name in names[start : start + NAMES_AT_ONCE]:
            size += name_bytes(name)
            if size > ENTRY_MAX_BYTES and info.properties:
                break
            info.properties.add(name=name, value=id_of(name))
            start += 1
        await writer.append(info.SerializeToString())
        await asyncio.sleep(0)
    await writer.flush()


def _decoded(data: bytes, ledger_id: int) -> dict[str, int]:
    info = PositionInfo()
    try:
        info.ParseFromString(data)
    except DecodeError as error:
        raise CorruptDataError(
            f"ledger {ledger_id}: sequence ids can't be read: {error}"
        ) from error
    return {each.name: each.value for each in info.properties}
