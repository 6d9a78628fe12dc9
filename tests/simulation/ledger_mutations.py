"""Bugs put back on purpose, each of which the simulation of ledgers over hostile stores has to find.

A mutation replaces one function of the managed ledger, or of what it uses, as long as its context
lasts. What each is found by stands in `FOUND_BY`: a seed, and the invariant that breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

from pulsar_py.common.errors import (
    LedgerFencedError,
    ManagedLedgerFencedError,
    StorageError,
)
from pulsar_py.managed_ledger import opener as opener_module
from pulsar_py.managed_ledger.cursors import state_reading as state_reading_module
from pulsar_py.managed_ledger.cursors import store as cursor_store_module
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.managed_ledger.cursors.registry import CursorRegistry
from pulsar_py.managed_ledger.cursors.store import CursorStore, encode_state
from pulsar_py.managed_ledger.ledger_trimmer import LedgerTrimmer
from pulsar_py.managed_ledger.log import ledger_list_store as ledger_list_store_module
from pulsar_py.managed_ledger.log.appender import Appender
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.ledger_format import decode_ledger_list
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.managed_ledger.opener import ManagedLedgerOpener
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.server.ledger_collector import LedgerCollector
from pulsar_py.testing.hostile_ledger_client import HostileWriter
from pulsar_py.testing.hostile_metadata import HostileClient

Mutation = Callable[[], AbstractContextManager[None]]

BLOCK = 100


@contextmanager
def ids_leased_in_blocks() -> Iterator[None]:
    """Each process has a block of ids: unique, and not growing."""
    begun: dict[Any, Any] = {}

    async def mutated(self: Any) -> int:
        blocks = begun.setdefault(self._metadata.service, count())
        left = getattr(self, "left", [])
        if not left:
            first = next(blocks) * BLOCK + 1
            left = list(range(first, first + BLOCK))
        number, self.left = left[0], left[1:]
        await asyncio.sleep(0)
        return number

    with patch.object(MetadataLedgerIds, "next", mutated):
        yield


@contextmanager
def ids_counted_in_a_key() -> Iterator[None]:
    """A number is read and written back; two processes get the same."""

    async def mutated(self: Any) -> int:
        found = await self._metadata.get("/ledger-ids")
        number = 1 if found is None else int(found.value) + 1
        await self._metadata.put("/ledger-ids", str(number).encode())
        return number

    with patch.object(MetadataLedgerIds, "next", mutated):
        yield


@contextmanager
def collector_takes_what_it_does_not_know() -> Iterator[None]:
    async def mutated(self: Any, ledger_id: int) -> bool:
        return True

    with patch.object(LedgerCollector, "_is_ours", mutated):
        yield


@contextmanager
def ledgers_without_labels() -> Iterator[None]:
    with patch.object(ManagedLedgerConfig, "_labelled", lambda self, own: self.ledger_options):
        yield


@contextmanager
def collector_knows_no_cursor_ledgers() -> Iterator[None]:
    async def mutated(self: Any, path: str) -> list[int]:
        return []

    with patch.object(ManagedLedgerOpener, "_named_by_cursor", mutated):
        yield


@contextmanager
def the_end_is_what_a_reader_knows() -> Iterator[None]:
    """Who opens a topic opens its last ledger, and takes what that handle says for the end."""
    original = ManagedLedgerOpener._end_last_ledger

    async def mutated(self: Any, *arguments: Any) -> None:
        store, self.ledger_store = self.ledger_store, SimpleNamespace()
        self.ledger_store.recover = store.open
        try:
            await original(self, *arguments)
        finally:
            self.ledger_store = store

    with patch.object(ManagedLedgerOpener, "_end_last_ledger", mutated):
        yield


@contextmanager
def a_busy_store_ends_the_ledger() -> Iterator[None]:
    """Whatever an append is refused for, it goes to the next ledger."""

    def mutated(self: Any, data: bytes, context: Any, error: StorageError) -> None:
        self._on_writer_failed(error)
        self._append_waiting(data, context)

    with patch.object(Appender, "_on_append_error", mutated):
        yield


@contextmanager
def a_fence_is_another_owner() -> Iterator[None]:
    """Whoever repairs a replica ends the ownership."""
    original = Appender._on_writer_failed

    def mutated(self: Any, error: StorageError) -> None:
        if isinstance(error, LedgerFencedError):
            self._owner.fence(error)
        original(self, error)

    with patch.object(Appender, "_on_writer_failed", mutated):
        yield


@contextmanager
def a_fence_of_a_cursor_ledger_is_another_owner() -> Iterator[None]:
    original = CursorStore.on_failed

    def mutated(self: Any, ledger_id: int, error: StorageError) -> None:
        fenced = isinstance(error, LedgerFencedError)
        original(self, ledger_id, ManagedLedgerFencedError(str(error)) if fenced else error)  # type: ignore[arg-type]

    with patch.object(CursorStore, "on_failed", mutated):
        yield


@contextmanager
def a_close_without_answer_counts_as_made() -> Iterator[None]:
    """The end that its writer knows is taken for the ledger's."""

    async def mutated(self: Any, writer: Any) -> tuple[int, int]:
        with suppress(StorageError):
            await writer.close()
        return writer.last_add_confirmed, writer.length_bytes

    with patch.object(Appender, "_end_of", mutated):
        yield


@contextmanager
def silent_appends_are_waited_for() -> Iterator[None]:
    """Neither the store nor who waits for it has a deadline."""

    async def wait(self: Any) -> None:
        await self._drained.wait()

    with ExitStack() as stack:
        stack.enter_context(patch.object(HostileWriter, "_look_at_deadline", lambda self: None))
        stack.enter_context(patch.object(Appender, "_wait_drained", wait))
        yield


@contextmanager
def an_unknown_outcome_is_a_failure() -> Iterator[None]:
    """Our own write is found, and taken for another owner's."""

    async def mutated(self: Any) -> None:
        return None

    with patch.object(OwnedRecord, "_own_write", mutated):
        yield


@contextmanager
def another_owners_version_is_taken_over() -> Iterator[None]:
    async def mutated(self: Any, refusal: Any) -> bytes:
        stored = await self._read()
        if stored is None:
            raise ManagedLedgerFencedError(self.path)
        self._is_now(stored.version, None)
        return b""

    async def nobody_looks(self: Any) -> None:
        return None

    with ExitStack() as stack:
        stack.enter_context(patch.object(OwnedRecord, "_adopt", mutated))
        stack.enter_context(patch.object(OwnedRecord, "confirm", nobody_looks))
        yield


@contextmanager
def readback_without_sync() -> Iterator[None]:
    """What became of a write is read from a follower that lags."""

    async def mutated(self: Any) -> Any:
        return await self._metadata.get(self.path)

    with patch.object(OwnedRecord, "_read", mutated):
        yield


@contextmanager
def writes_that_are_overtaken_have_no_answer() -> Iterator[None]:
    """A cursor's write stays under way when another ledger takes its place."""
    with patch.object(cursor_store_module, "_answer", lambda writes, error: None):
        yield


@contextmanager
def topics_opened_from_late_reads() -> Iterator[None]:
    """What the former owner wrote last may not be seen."""
    original = ManagedLedgerOpener._load

    async def mutated(self: Any, *arguments: Any, **options: Any) -> Any:
        class Late:
            def __getattr__(self, name: str) -> Any:
                return getattr(metadata, "get" if name == "get_newest" else name)

        metadata, self.metadata = self.metadata, Late()
        try:
            return await original(self, *arguments, **options)
        finally:
            self.metadata = metadata

    with patch.object(ManagedLedgerOpener, "_load", mutated):
        yield


@contextmanager
def deletions_are_not_marked() -> Iterator[None]:
    async def mutated(self: Any, stored: Any) -> None:
        await self.write(stored)
        await self._metadata.delete_recursive(self._record.path)

    with patch.object(LedgerListStore, "delete", mutated):
        yield


@contextmanager
def a_late_deletion_takes_what_it_finds() -> Iterator[None]:
    """What is below a marked path is removed, whoever has made it since."""

    async def mutated(metadata: Any, marked: Any, check_owner: Any) -> None:
        await metadata.delete_recursive(marked.path)

    with ExitStack() as stack:
        for module in (ledger_list_store_module, opener_module):
            stack.enter_context(patch.object(module, "remove_marked", mutated))
        yield


@contextmanager
def marks_of_deletions_are_not_seen() -> Iterator[None]:
    def mutated(value: bytes) -> Any:
        stored = decode_ledger_list(value)
        stored.is_being_deleted = False
        return stored

    with patch.object(opener_module, "decode_ledger_list", mutated):
        yield


@contextmanager
def a_clean_open_writes_nothing() -> Iterator[None]:
    """A former owner without a ledger to fence goes on."""
    write = LedgerListStore.write
    has_written: WeakSet[Any] = WeakSet()

    async def mutated(self: Any, stored: Any) -> None:
        is_first = self not in has_written
        has_written.add(self)
        if not (is_first and stored.ledgers and stored.ledgers[-1].is_closed):
            await write(self, stored)

    with patch.object(LedgerListStore, "write", mutated):
        yield


@contextmanager
def cursor_records_written_by_overtaken_owners() -> Iterator[None]:
    original = CursorStore.__init__

    async def nobody_asks() -> None:
        return None

    def mutated(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **{**options, "confirm_newest": nobody_asks})

    with patch.object(CursorStore, "__init__", mutated):
        yield


@contextmanager
def a_state_is_encoded_when_its_ledger_is_there() -> Iterator[None]:
    async def mutated(self: Any, content: Any) -> None:
        store, config = self.store, self._owner.config

        async def write_state() -> dict[Any, Any]:
            await store.append_new([encode_state(content, config)])
            return {}

        if content is self._state:
            self._is_small()
        if not await store.append_and_wait([encode_state(content, config)], config):
            await store.switch_ledger(content, config, write_state)

    with patch.object(CursorPersister, "_write_small", mutated):
        yield


@contextmanager
def a_cursors_tail_is_read_entry_by_entry() -> Iterator[None]:
    """Each step back from the end of a cursor ledger is a read of its own."""
    with ExitStack() as stack:
        for name in ("_TAIL_ENTRIES", "_MAX_TAIL_ENTRIES"):
            stack.enter_context(patch.object(state_reading_module, name, 1))
        yield


@contextmanager
def metadata_is_waited_for_without_limit() -> Iterator[None]:
    """No operation of the metadata store has a deadline, whoever waits for it."""
    original = HostileClient._fail

    def mutated(self: Any, request: Any, why: str) -> None:
        if why != "no answer in time":
            original(self, request, why)

    with patch.object(HostileClient, "_fail", mutated):
        yield


@contextmanager
def ledgers_deleted_before_the_list_is_written() -> Iterator[None]:
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


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        ids_leased_in_blocks,
        ids_counted_in_a_key,
        collector_takes_what_it_does_not_know,
        ledgers_without_labels,
        collector_knows_no_cursor_ledgers,
        the_end_is_what_a_reader_knows,
        a_busy_store_ends_the_ledger,
        a_fence_is_another_owner,
        a_fence_of_a_cursor_ledger_is_another_owner,
        a_close_without_answer_counts_as_made,
        silent_appends_are_waited_for,
        an_unknown_outcome_is_a_failure,
        another_owners_version_is_taken_over,
        readback_without_sync,
        writes_that_are_overtaken_have_no_answer,
        topics_opened_from_late_reads,
        deletions_are_not_marked,
        a_late_deletion_takes_what_it_finds,
        marks_of_deletions_are_not_seen,
        a_clean_open_writes_nothing,
        cursor_records_written_by_overtaken_owners,
        a_state_is_encoded_when_its_ledger_is_there,
        a_cursors_tail_is_read_entry_by_entry,
        metadata_is_waited_for_without_limit,
        ledgers_deleted_before_the_list_is_written,
        trimming_ignores_cursors,
    )
}

FOUND_BY: dict[str, int] = {
    "ids_leased_in_blocks": 1,
    "ids_counted_in_a_key": 0,
    "collector_takes_what_it_does_not_know": 0,
    "ledgers_without_labels": 0,
    "collector_knows_no_cursor_ledgers": 1,
    "the_end_is_what_a_reader_knows": 2,
    "a_busy_store_ends_the_ledger": 2,
    "a_fence_is_another_owner": 9,
    "a_fence_of_a_cursor_ledger_is_another_owner": 10,
    "a_close_without_answer_counts_as_made": 2,
    "silent_appends_are_waited_for": 10,
    "an_unknown_outcome_is_a_failure": 5,
    "another_owners_version_is_taken_over": 13,
    "readback_without_sync": 39,
    "writes_that_are_overtaken_have_no_answer": 39,
    "topics_opened_from_late_reads": 168,
    "deletions_are_not_marked": 0,
    "a_late_deletion_takes_what_it_finds": 2,
    "marks_of_deletions_are_not_seen": 2,
    "a_clean_open_writes_nothing": 39,
    "cursor_records_written_by_overtaken_owners": 31,
    "a_state_is_encoded_when_its_ledger_is_there": 104,
    "a_cursors_tail_is_read_entry_by_entry": 54,
    "metadata_is_waited_for_without_limit": 647,
    "ledgers_deleted_before_the_list_is_written": 2,
    "trimming_ignores_cursors": 0,
}
"""The first seed that finds each, when it was last looked for."""
