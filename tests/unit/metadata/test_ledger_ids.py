"""MetadataLedgerIds: ids that grow whoever takes them, and keys that do not stay."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import MetadataOutcomeUnknownError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.ledger_ids import MAX_ATTEMPTS, MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import Session


class Forgetful(MemoryMetadataStore):
    """Makes sequential keys, and forgets to answer for the first `failures` of them."""

    failures = 0

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """As it is, but for the answer."""
        path = await super().create_sequential(prefix, value, session)
        if self.failures:
            self.failures -= 1
            raise MetadataOutcomeUnknownError(f"{prefix}: no answer")
        return path


async def test_ids_begin_at_one_and_grow_over_all_who_take_them() -> None:
    store = MemoryMetadataStore(SystemClock())
    one, other = MetadataLedgerIds(store), MetadataLedgerIds(store.connect())
    taken = [await ids.next() for _ in range(3) for ids in (one, other)]
    assert taken == [1, 2, 3, 4, 5, 6]
    await one.close()
    await other.close()


async def test_ids_taken_at_once_differ() -> None:
    ids = MetadataLedgerIds(MemoryMetadataStore(SystemClock()))
    taken = await asyncio.gather(*(ids.next() for _ in range(50)))
    assert len(set(taken)) == 50
    assert min(taken) == 1
    await ids.close()


async def test_numbers_of_bookkeepers_clients_are_not_given_again() -> None:
    store = MemoryMetadataStore(SystemClock())
    for number in range(3):
        path = await store.create_sequential(paths.LEDGER_ID_PREFIX, b"")
        assert paths.sequence_number(path) == number
        await store.delete(path)
    ids = MetadataLedgerIds(store)
    assert await ids.next() == 3
    await ids.close()


async def test_no_key_is_left_after_closing() -> None:
    store = MemoryMetadataStore(SystemClock())
    ids = MetadataLedgerIds(store)
    await ids.next()
    assert await store.children(paths.LEDGER_ID_COUNTER) != []
    await ids.close()
    assert await store.children(paths.LEDGER_ID_COUNTER) == []


async def test_a_crash_leaves_no_key_behind_its_session() -> None:
    store = MemoryMetadataStore(SystemClock())
    client = store.connect()
    ids = MetadataLedgerIds(client)
    await ids.next()
    await client.close()  # ends the session, before anything was deleted
    assert await store.children(paths.LEDGER_ID_COUNTER) == []


async def test_an_unknown_outcome_costs_a_number_and_no_id() -> None:
    store = Forgetful(SystemClock())
    ids = MetadataLedgerIds(store)
    assert await ids.next() == 1
    store.failures = MAX_ATTEMPTS - 1
    assert await ids.next() == 1 + MAX_ATTEMPTS
    store.failures = MAX_ATTEMPTS
    with pytest.raises(MetadataOutcomeUnknownError):
        await ids.next()
    assert await ids.next() == 2 + 2 * MAX_ATTEMPTS
    await ids.close()
