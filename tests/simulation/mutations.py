"""Bugs put in on purpose, each of which the simulation has to find.

A mutation replaces one function of the engine or the managed ledger as long as its context lasts.
Left-out syncs are mutations of the disk and come with `tests.crash.storage.sync_mutations`.
"""

from __future__ import annotations

import asyncio
import posixpath
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from pulsar_py.common.errors import StorageError
from pulsar_py.common.hashing import crc32c
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.managed_ledger.cursors.registry import CursorRegistry
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.cursors.store import CursorStore
from pulsar_py.managed_ledger.ledger_trimmer import LedgerTrimmer
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.storage.entry_logs import run_reader
from pulsar_py.storage.entry_logs.entry_log_format import decode_run
from pulsar_py.storage.entry_logs.ledger_storage import LedgerStorage
from pulsar_py.storage.entry_logs.run_reader import RunReader
from pulsar_py.storage.housekeeper import Housekeeper
from pulsar_py.storage.journal import journal_reader
from pulsar_py.storage.journal.file_header import FileHeader
from pulsar_py.storage.journal.journal import Journal
from pulsar_py.storage.journal.journal_files import SPARE, journal_path
from pulsar_py.testing.disk import SimulatedDisk

Mutation = Callable[[], Any]
"""A context manager."""


@contextmanager
def receipts_before_sync() -> Iterator[None]:
    original = Journal._write_block

    class Eager:
        def __init__(self, file: Any) -> None:
            self._file = file

        @property
        def size_bytes(self) -> int:
            return self._file.size_bytes

        def append_and_sync(self, buffers: Any, on_synced: Any) -> None:
            self._file.append_and_sync(buffers, lambda error: None)
            asyncio.get_running_loop().call_soon(on_synced, None)

    with patch.object(
        Journal, "_write_block", lambda self, file, group: original(self, Eager(file), group)
    ):
        yield


@contextmanager
def journal_errors_ignored() -> Iterator[None]:
    original = Journal._on_synced
    with patch.object(Journal, "_on_synced", lambda self, error: original(self, None)):
        yield


@contextmanager
def journal_file_kept_after_an_error() -> Iterator[None]:
    with patch.object(Journal, "_give_up_file", lambda self: None):
        yield


@contextmanager
def journals_removed_before_the_checkpoint() -> Iterator[None]:
    original = Housekeeper._flush_sealed

    async def mutated(self: Any) -> None:
        if (sealed := self._cache.sealed) is not None:
            while self.oldest_journal_id < sealed.mark[0]:
                await self._disk.remove(journal_path(self.oldest_journal_id))
                self.oldest_journal_id += 1
        await original(self)

    with patch.object(Housekeeper, "_flush_sealed", mutated):
        yield


@contextmanager
def mark_moved_before_the_flush() -> Iterator[None]:
    original = LedgerStorage.flush

    async def mutated(self: Any, generation: Any) -> None:
        await self.set_mark(generation.mark)
        await original(self, generation)

    with patch.object(LedgerStorage, "flush", mutated):
        yield


@contextmanager
def checksum_skipped() -> Iterator[None]:
    def mutated(data: bytes, path: str, offset: int, *, start: int, length: int) -> Any:
        run = data[start : start + length]
        return decode_run(run[:4] + struct.pack(">I", crc32c(run[8:])) + run[8:], path, offset)

    with patch.object(run_reader, "decode_run", mutated):
        yield


@contextmanager
def wrong_entry_of_a_run() -> Iterator[None]:
    original = RunReader.load

    async def mutated(self: Any, ledger_id: int, entry_id: int, ahead_bytes: int) -> Any:
        entries, place = await original(self, ledger_id, entry_id, ahead_bytes)
        return entries, min(place + 1, len(entries) - 1)

    with patch.object(RunReader, "load", mutated):
        yield


@contextmanager
def ledgers_deleted_before_metadata() -> Iterator[None]:
    original = LedgerTrimmer.trim

    async def mutated(self: Any) -> None:
        await self.delete_ledgers(self._trimmable())
        await original(self)

    with patch.object(LedgerTrimmer, "trim", mutated):
        yield


@contextmanager
def trimming_ignores_cursors() -> Iterator[None]:
    with patch.object(CursorRegistry, "slowest_durable", lambda self: None):
        yield


@contextmanager
def ledger_ids_reused() -> Iterator[None]:
    numbers = count()

    async def mutated(self: Any, prefix: str, value: bytes, session: Any = None) -> str:
        return f"{prefix}{50 - next(numbers) % 50:010d}"

    with patch.object(MemoryMetadataStore, "create_sequential", mutated):
        yield


@contextmanager
def recovery_loses_the_last_entry() -> Iterator[None]:
    original = ManagedLedgerOpener._end_last_ledger

    async def mutated(self: Any, ledger: Any) -> None:
        await original(self, ledger)
        ledgers = ledger.ledgers
        if ledgers.ledgers and (count := ledgers.last_ledger.entries_count):
            ledgers.ledger_closed(count - 1, ledgers.last_ledger.size_bytes, 1)

    with patch.object(ManagedLedgerOpener, "_end_last_ledger", mutated):
        yield


def _recovered(change: Callable[[Any], None]) -> Any:
    original = CursorStore.recover

    async def mutated(self: Any, *arguments: Any, **options: Any) -> Any:
        snapshot = await original(self, *arguments, **options)
        change(snapshot)
        return snapshot

    return patch.object(CursorStore, "recover", mutated)


@contextmanager
def mark_delete_recovered_backwards() -> Iterator[None]:
    def change(snapshot: Any) -> None:
        ledger_id, entry_id = snapshot.mark_delete_position
        snapshot.mark_delete_position = Position(ledger_id, max(entry_id - 1, -1))

    with _recovered(change):
        yield


@contextmanager
def mark_delete_recovered_too_far() -> Iterator[None]:
    def change(snapshot: Any) -> None:
        ledger_id, entry_id = max(snapshot.mark_delete_position, EARLIEST)
        snapshot.mark_delete_position = Position(ledger_id, entry_id + 1)

    with _recovered(change):
        yield


@contextmanager
def individual_acks_forgotten() -> Iterator[None]:
    original = CursorState.settle

    def mutated(self: Any) -> None:
        self.individual_deleted_messages = type(self.individual_deleted_messages)()
        original(self)

    with patch.object(CursorState, "settle", mutated):
        yield


@contextmanager
def cursor_flush_does_nothing() -> Iterator[None]:
    async def mutated(self: Any) -> None:
        return None

    with patch.object(CursorPersister, "flush", mutated):
        yield


@contextmanager
def reset_is_not_written() -> Iterator[None]:
    async def mutated(self: Any, target: Any) -> None:
        return None

    with patch.object(CursorPersister, "write_reset", mutated):
        yield


@contextmanager
def cursor_record_outlives_deletion() -> Iterator[None]:
    async def mutated(self: Any, owned_ledger_ids: Sequence[int] = ()) -> None:
        del owned_ledger_ids
        await self.drop_ledger(self.ledger_id)

    with patch.object(CursorStore, "delete", mutated):
        yield


@contextmanager
def topic_outlives_deletion() -> Iterator[None]:
    async def mutated(self: Any) -> list[int]:
        self._registry.abandon()
        await self._close_ledger()
        return []

    with patch.object(ManagedLedger, "_delete_metadata", mutated):
        yield


@contextmanager
def a_full_disk_is_for_ever() -> Iterator[None]:
    async def mutated(self: Any) -> int:
        return 1 << 40

    with patch.object(Housekeeper, "check_room", mutated):
        yield


@contextmanager
def a_failed_flush_is_taken_for_done() -> Iterator[None]:
    original = LedgerStorage.flush

    async def mutated(self: Any, generation: Any) -> None:
        try:
            await original(self, generation)
        except StorageError:
            return

    with patch.object(LedgerStorage, "flush", mutated):
        yield


@contextmanager
def blocks_of_earlier_lives_read() -> Iterator[None]:
    original = journal_reader.block_length

    def mutated(data: Any, at: int, life: FileHeader, offset: int) -> int | None:
        file_id = int.from_bytes(data[at + 16 : at + 24], "big")
        return original(data, at, replace(life, generation=None, file_id=file_id), offset)

    with patch.object(journal_reader, "block_length", mutated):
        yield


@contextmanager
def prepared_header_not_synced() -> Iterator[None]:
    original = SimulatedDisk.open_again

    class Forgetful:
        def __init__(self, file: Any) -> None:
            self.append, self.close = file.append, file.close

        async def sync(self) -> None:
            return None

    async def mutated(self: SimulatedDisk, path: str, **options: Any) -> Any:
        file = await original(self, path, **options)
        return Forgetful(file) if posixpath.basename(path).startswith(SPARE) else file

    with patch.object(SimulatedDisk, "open_again", mutated):
        yield


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        receipts_before_sync,
        journal_errors_ignored,
        journal_file_kept_after_an_error,
        journals_removed_before_the_checkpoint,
        mark_moved_before_the_flush,
        checksum_skipped,
        wrong_entry_of_a_run,
        ledgers_deleted_before_metadata,
        trimming_ignores_cursors,
        ledger_ids_reused,
        recovery_loses_the_last_entry,
        mark_delete_recovered_backwards,
        mark_delete_recovered_too_far,
        individual_acks_forgotten,
        cursor_flush_does_nothing,
        reset_is_not_written,
        cursor_record_outlives_deletion,
        topic_outlives_deletion,
        a_full_disk_is_for_ever,
        a_failed_flush_is_taken_for_done,
        blocks_of_earlier_lives_read,
        prepared_header_not_synced,
    )
}
