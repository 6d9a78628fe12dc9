"""LedgerListStore: each write replaces what this owner wrote before, or fails for good."""

import pytest

from pulsar_py.common.errors import ManagedLedgerFencedError
from pulsar_py.managed_ledger.ledger_format import (
    LedgerList,
    LedgerRecord,
    decode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.ledger_list_store import LedgerListStore
from pulsar_py.metadata.store import MUST_NOT_EXIST
from tests.managed_ledger_parts import NAME, World


def store_on(world, *, version=MUST_NOT_EXIST):
    """A store, and what it tells of losing the list."""
    lost = []
    return LedgerListStore(NAME, world.metadata, version=version, on_lost=lost.append), lost


async def stored_ids(world):
    found = await world.metadata.get(ledger_path(NAME))
    return [record.ledger_id for record in decode_ledger_list(found.value).ledgers]


async def test_one_write_follows_another():
    world = World()
    store, lost = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    await store.write(LedgerList([LedgerRecord(4)]))
    assert await stored_ids(world) == [4]
    assert not lost


async def test_a_list_that_another_owner_wrote_is_left_alone():
    world = World()
    store, lost = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    found = await world.metadata.get(ledger_path(NAME))
    other, _ = store_on(world, version=found.version)
    await other.write(LedgerList([LedgerRecord(3, is_closed=True), LedgerRecord(4)]))
    for work in (store.write(LedgerList()), store.delete(LedgerList())):
        with pytest.raises(ManagedLedgerFencedError, match=NAME):
            await work
    assert await stored_ids(world) == [3, 4]
    assert len(lost) == 2


async def test_of_two_who_make_a_new_one_the_second_loses():
    world = World()
    store, _ = store_on(world)
    late, lost = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    with pytest.raises(ManagedLedgerFencedError):
        await late.write(LedgerList([LedgerRecord(4)]))
    assert await stored_ids(world) == [3]
    assert len(lost) == 1


async def test_deleting_takes_the_records_of_cursors_along():
    world = World()
    store, _ = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    cursor = ledger_path(NAME) + "/sub"
    await world.metadata.put(cursor, b"", expected_version=MUST_NOT_EXIST)
    await store.delete(LedgerList())
    assert not await world.metadata.exists(cursor)
    assert not await world.metadata.exists(ledger_path(NAME))
