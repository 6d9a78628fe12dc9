"""LedgerTrimmer: which ledgers go and when, seen through a ManagedLedger."""

import asyncio

from pulsar_py.common.errors import StorageError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger import ledger_trimmer
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.at_once import AtOnce
from tests.managed_ledger_parts import MANY, TRIMMING, World, append_all, settle, texts


async def test_consumed_ledgers_are_trimmed_once_the_position_is_written():
    world = World()
    ledger = await world.open(max_entries=2, **TRIMMING)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 5)
    cursor.acknowledge_cumulative(Position(4, 1))
    assert len(ledger.ledgers_info()) == 3
    await asyncio.sleep(1)
    assert [stats.ledger_id for stats in ledger.ledgers_info()] == [5]
    assert 3 not in world.store.ledgers
    assert cursor.mark_delete_position == Position(5, -1)
    assert cursor.backlog_count() == 1


async def test_a_durable_cursor_holds_ledgers_and_a_non_durable_one_does_not():
    world = World()
    ledger = await world.open(max_entries=2, **TRIMMING)
    reader = ledger.new_non_durable_cursor("reader", InitialPosition.EARLIEST)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 5)
    assert ledger.entries_count == 5
    await cursor.clear_backlog()
    await ledger.trim()
    assert ledger.entries_count == 1
    assert reader.mark_delete_position == Position(5, -1)
    assert texts(await reader.read(*MANY)) == ["m4"]


async def test_a_cursor_closed_before_its_ledger_goes_on_holding_ledgers():
    # A topic that is unloaded closes its subscriptions one by one, while the periodic trimming runs.
    world = World()
    ledger = await world.open(max_entries=2, **TRIMMING)
    slow = await ledger.open_cursor("slow", InitialPosition.EARLIEST)
    fast = await ledger.open_cursor("fast", InitialPosition.EARLIEST)
    await append_all(ledger, 5)
    await fast.clear_backlog()
    await slow.close()
    await ledger.trim()
    await fast.close()
    await ledger.trim()
    await ledger.close()
    again = await world.open()
    assert again.entries_count == 5
    assert again.cursors["slow"].backlog_count() == 5


async def test_deleting_the_slowest_cursor_lets_its_ledgers_go():
    world = World()
    ledger = await world.open(max_entries=2, **TRIMMING)
    await ledger.open_cursor("slow", InitialPosition.EARLIEST)
    await append_all(ledger, 5)
    assert ledger.slowest_durable_cursor().name == "slow"
    await ledger.delete_cursor("slow")
    await settle()
    assert ledger.entries_count == 1


async def test_a_ledger_that_cannot_be_deleted_is_left_over_for_the_collector():
    world = World()
    opener = world.opener()
    ledger = await world.open(max_entries=2, opener=opener, **TRIMMING)
    world.store.delete_error = StorageError("busy")
    await append_all(ledger, 5)
    await ledger.trim()
    assert set(world.store.ledgers) - await opener.named_ledgers() == {3, 4}


async def test_retention_by_time_is_checked_at_intervals():
    world = World()
    opener = world.opener()
    ledger = await world.open(
        max_entries=2, opener=opener, retention_seconds=60, retention_size_bytes=-1
    )
    await append_all(ledger, 5)
    await opener.check_ledgers()
    assert ledger.entries_count == 5
    await asyncio.sleep(61)
    await opener.check_ledgers()
    assert ledger.entries_count == 1


async def test_ledgers_are_deleted_beside_each_other_a_number_at_a_time(monkeypatch):
    monkeypatch.setattr(ledger_trimmer, "DELETIONS_AT_ONCE", 3)
    world = World()
    deletions = AtOnce(monkeypatch)
    deletions.watch(world.store, "delete")
    ledger = await world.open(max_entries=1, **TRIMMING)
    await append_all(ledger, 10)
    await ledger.trim()
    assert ledger.entries_count <= 1
    assert deletions.most == 3
