"""LedgerListStore: each write replaces what this owner wrote before, or fails for good."""

import pytest

from pulsar_py.common.errors import ManagedLedgerFencedError, MetadataError
from pulsar_py.managed_ledger.log.ledger_format import (
    LedgerList,
    LedgerRecord,
    decode_ledger_list,
    ledger_path,
)
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.metadata.store import MUST_NOT_EXIST
from tests.managed_ledger_parts import NAME, World


def store_on(world, *, version=MUST_NOT_EXIST):
    """A store, and what it tells of losing the list."""
    lost = []
    store = LedgerListStore(
        NAME,
        world.metadata,
        version=version,
        owner_mark="1",
        current=lambda: LedgerList([LedgerRecord(3)]),
        on_lost=lost.append,
    )
    return store, lost


async def late_store(world):
    """A store that knows of no list and has lost to another one's, and what it told of that."""
    first, _ = store_on(world)
    late, lost = store_on(world)
    await first.write(LedgerList([LedgerRecord(3)]))
    with pytest.raises(ManagedLedgerFencedError):
        await late.write(LedgerList([LedgerRecord(4)]))
    return late, lost


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
    _, lost = await late_store(world)
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


async def test_a_deletion_cut_short_says_so_in_the_list(monkeypatch):
    world = World()
    store, _ = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))

    async def stop(*_, **__):
        raise MetadataError("connection lost")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "delete", stop)
        with pytest.raises(MetadataError):
            await store.delete(LedgerList([LedgerRecord(3)]))
    found = await world.metadata.get(ledger_path(NAME))
    stored = decode_ledger_list(found.value)
    assert stored.is_being_deleted
    assert not stored.properties


async def fail_write(store, world, monkeypatch, *, is_stored):
    """A write that fails, be it stored or not."""
    put = world.metadata.put

    async def fail(*arguments, **options):
        if is_stored:
            await put(*arguments, **options)
        patched.setattr(world.metadata, "get", fail_too)
        raise MetadataError("connection lost")

    async def fail_too(_):
        raise MetadataError("not connected")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", fail)
        async with store.lock:
            with pytest.raises(MetadataError, match="connection lost"):
                await store.write(LedgerList([LedgerRecord(4)]))


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_write_that_was_not_stored_leaves_the_list_settled(monkeypatch, is_new):
    world = World()
    store, lost = store_on(world)
    if not is_new:
        await store.write(LedgerList([LedgerRecord(3)]))
    await fail_write(store, world, monkeypatch, is_stored=False)
    async with store.settled():
        assert store.lock.locked()
        await store.write(LedgerList([LedgerRecord(5)]))
    assert await stored_ids(world) == [5]
    assert not lost


async def test_a_failed_write_that_was_stored_after_all_is_our_own(monkeypatch):
    world = World()
    store, lost = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    await fail_write(store, world, monkeypatch, is_stored=True)
    async with store.settled():
        assert await stored_ids(world) == [3], "what is in memory counts"
    assert not lost


async def test_confirming_takes_no_lock_and_finds_another_owner():
    world = World()
    store, lost = store_on(world)
    await store.write(LedgerList([LedgerRecord(3)]))
    async with store.lock:
        await store.confirm()
    await world.metadata.put(ledger_path(NAME), b"")
    with pytest.raises(ManagedLedgerFencedError, match=r"expected version 0, it has 1"):
        await store.confirm()
    assert len(lost) == 1


async def test_who_lost_the_list_can_not_rely_on_it():
    late, lost = await late_store(World())
    with pytest.raises(ManagedLedgerFencedError, match=r"expected version -1, it has 0"):
        await late.confirm()
    assert len(lost) == 2
