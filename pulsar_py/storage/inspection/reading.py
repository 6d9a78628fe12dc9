"""`SurveyedStore`: a read-only LedgerStore over the entries that a survey found (edge)."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NoReturn

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.disks.disk import Disk
from pulsar_py.common.errors import (
    CorruptDataError,
    EntryNotFoundError,
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.ledgers.store import (
    LedgerInfo,
    LedgerListener,
    LedgerOptions,
    LedgerReader,
    LedgerStore,
    LedgerWriter,
    StoreLimits,
)
from pulsar_py.storage.entry_logs.entry_log import log_path
from pulsar_py.storage.entry_logs.entry_log_format import decode_run
from pulsar_py.storage.inspection.survey import Survey, SurveyedLedger
from pulsar_py.storage.inspection.walking import FoundBlock, walk_blocks
from pulsar_py.storage.shared.write_cache import cut


class SurveyedStore(LedgerStore):
    """The ledgers of a stopped storage; recovering one only opens it."""

    limits = StoreLimits(max_entry_bytes=0, max_pinned_bytes=0, answer_timeout_seconds=math.inf)

    def __init__(self, disk: Disk, survey: Survey) -> None:
        self._disk = disk
        self._survey = survey

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:  # noqa: ARG002
        """Open for reading; the password is not checked."""
        return _Reader(self._disk, ledger_id, self._ledger(ledger_id))

    async def recover(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """The same as `open`: there is no writer to fence."""
        return await self.open(ledger_id, password=password)

    async def list_ledgers(self) -> AsyncIterator[Sequence[int]]:
        """Ids of all ledgers, in one page."""
        yield sorted(self._survey.ledgers)

    async def custom_metadata(self, ledger_id: int) -> Mapping[str, bytes]:
        """A ledger's labels."""
        return self._ledger(ledger_id).record.custom_metadata

    async def info(self, ledger_id: int) -> LedgerInfo:
        """The state, end and labels of one ledger."""
        ledger = self._ledger(ledger_id)
        end = ledger.record.at(ledger.last_entry_id, ledger.record.length_bytes)
        return end.info(ledger_id)

    async def create(
        self,
        listener: LedgerListener,  # noqa: ARG002
        options: LedgerOptions,  # noqa: ARG002
    ) -> LedgerWriter:
        """Raise StorageError: this store is read-only."""
        self._refuse()

    async def delete(self, ledger_id: int) -> None:  # noqa: ARG002
        """Raise StorageError: this store is read-only."""
        self._refuse()

    async def close(self) -> None:
        """Nothing to do."""

    def _refuse(self) -> NoReturn:
        raise StorageError("a surveyed storage is read-only")

    def _ledger(self, ledger_id: int) -> SurveyedLedger:
        ledger = self._survey.ledgers.get(ledger_id)
        if ledger is None:
            raise LedgerNotFoundError(f"there is no ledger {ledger_id}")
        return ledger


class _Reader(LedgerReader):
    def __init__(self, disk: Disk, ledger_id: int, ledger: SurveyedLedger) -> None:
        self.ledger_id = ledger_id
        self._disk = disk
        self._ledger = ledger

    @property
    def last_add_confirmed(self) -> int:
        return self._ledger.last_entry_id

    async def read_last_add_confirmed(self) -> int:
        return self._ledger.last_entry_id

    @property
    def length_bytes(self) -> int:
        return self._ledger.record.length_bytes

    @property
    def is_closed(self) -> bool:
        return True

    def read_cached(
        self,
        first_entry_id: int,  # noqa: ARG002
        last_entry_id: int,  # noqa: ARG002
        max_bytes: int,  # noqa: ARG002
    ) -> None:
        return None

    async def read(
        self, first_entry_id: int, last_entry_id: int, max_bytes: int
    ) -> Sequence[EntryBytes]:
        """Entries of one run or block."""
        if first_entry_id > self.last_add_confirmed:
            raise EntryNotFoundError(f"ledger {self.ledger_id} has no entry {first_entry_id}")
        start, entries = await self._piece(first_entry_id)
        return cut(entries, first_entry_id - start, last_entry_id - first_entry_id + 1, max_bytes)

    async def close(self) -> None:
        pass

    async def _piece(self, entry_id: int) -> tuple[int, Sequence[EntryBytes]]:
        """The run or section that holds an entry, and its first id."""
        ledger = self._ledger
        for first, location in ledger.runs.items():
            if first <= entry_id < first + location.count and first not in ledger.unreadable:
                path = log_path(location.log_id)
                file = await self._disk.open_read(path)
                try:
                    data = await file.read_at(location.offset, location.length)
                finally:
                    await file.close()
                return first, decode_run(data, path, location.offset).entries
        for first, last in ledger.journal:
            if first <= entry_id <= last:
                return first, await self._section(first)
        raise CorruptDataError(f"ledger {self.ledger_id}: entry {entry_id} is lost")

    async def _section(self, first_entry_id: int) -> list[bytes]:
        replay, offset = self._ledger.blocks[first_entry_id]
        file = await self._disk.open_read(replay.path)
        try:
            async for found in walk_blocks(file, replay.life, offset, None):
                assert isinstance(found, FoundBlock), "was whole a moment ago"
                for section in found.block.sections:
                    if (section.ledger_id, section.first_entry_id) == (
                        self.ledger_id,
                        first_entry_id,
                    ):
                        return section.entries
                break
        finally:
            await file.close()
        raise CorruptDataError(f"{replay.path}: offset {offset}: the block has changed")
