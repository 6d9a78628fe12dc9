"""MetadataLedgerIds: ids that grow whoever takes them, and keys that do not stay."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import MetadataOutcomeUnknownError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.ledger_ids import MAX_ATTEMPTS, MetadataLedgerIds
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.store import MUST_NOT_EXIST, Session


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


class OfThirtyOneBits(MemoryMetadataStore):
    """Counts the children of a parent as ZooKeeper does: below zero after 31 bits."""

    first = 0x7FFFFFFF - 2

    async def create_sequential(
        self, prefix: str, value: bytes, session: Session | None = None
    ) -> str:
        """A key with the next number."""
        made = await super().create_sequential(prefix, value, session)
        number = paths.sequence_number(made) + self.first
        await self.delete(made)
        path = f"{prefix}{number if number <= 0x7FFFFFFF else number - (1 << 32):010d}"
        await self.put(path, value, expected_version=MUST_NOT_EXIST, session=session)
        return path


async def test_beyond_31_bits_ids_grow_on_for_all_who_take_them() -> None:
    store = OfThirtyOneBits(SystemClock())
    ids = MetadataLedgerIds(store)
    assert [await ids.next() for _ in range(2)] == [0x7FFFFFFD, 0x7FFFFFFE]
    again = MetadataLedgerIds(store)
    assert [await again.next() for _ in range(2)] == [
        (1 << 32) + 0x7FFFFFFD,
        (1 << 32) + 0x7FFFFFFE,
    ]
    assert await ids.next() == (2 << 32) + 0x7FFFFFFD
    await ids.close()
    await again.close()


async def test_long_ids_go_on_where_bookkeepers_clients_are() -> None:
    store = MemoryMetadataStore(SystemClock())
    for directory, count in (("HOB-0000000001", 3), ("HOB-0000000002", 5)):
        for _ in range(count):
            await store.create_sequential(f"/ledgers/idgen-long/{directory}/ID-", b"")
    ids = MetadataLedgerIds(store)
    assert await ids.next() == (2 << 32) + 5
    await ids.close()
    assert await store.children("/ledgers/idgen") == []
