"""ManagedLedger: positions over a life, rollover, termination, properties, deletion."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    EntryNotFoundError,
    LedgerNotFoundError,
    ManagedLedgerClosedError,
    ManagedLedgerFencedError,
    StorageError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.ledger_format import cursor_path, ledger_path
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import MANY, NAME, World, append_all, settle, texts


async def test_append_and_wait_gives_positions_beside_a_listener():
    world = World()
    ledger = await world.open()
    ledger.append(b"a", "first")
    waiting = asyncio.ensure_future(ledger.append_and_wait(b"b"))  # noqa: TID251  (a test's own)
    await asyncio.sleep(0)
    ledger.append(b"c", "third")
    assert await waiting == Position(3, 1)
    assert ledger.listener.positions == {"first": (3, 0), "third": (3, 2)}


async def test_append_and_wait_raises_what_failed():
    world = World()
    ledger = await world.open(max_entries=1)
    world.store.create_error = StorageError("no")
    await ledger.append_and_wait(b"a")
    with pytest.raises(StorageError, match="no"):
        await ledger.append_and_wait(b"b")


async def test_an_empty_one_has_a_ledger_for_its_positions():
    ledger = await World().open()
    assert ledger.last_confirmed_entry == Position(3, -1)
    assert ledger.first_position == Position(3, 0)
    assert not ledger.contains(ledger.last_confirmed_entry)


async def test_after_closing_cleanly_the_next_ledger_comes_with_the_first_append():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 2)
    await ledger.close()
    again = await world.open()
    assert again.last_confirmed_entry == Position(3, 1)
    assert sorted(world.store.ledgers) == [3]
    assert await again.append_and_wait(b"x") == Position(4, 0)


async def test_an_empty_ledger_is_replaced_and_positions_are_never_reused():
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("sub")
    assert cursor.mark_delete_position == Position(3, -1)
    await ledger.close()
    again = await world.open()
    assert again.cursors["sub"].mark_delete_position == Position(3, -1)
    assert await again.append_and_wait(b"x") == Position(4, 0)
    await settle()
    assert sorted(world.store.ledgers) == [4]
    assert texts(await again.cursors["sub"].read(*MANY)) == ["x"]
    assert again.cursors["sub"].mark_delete_position == Position(4, -1)


async def test_after_a_crash_what_was_confirmed_is_there():
    world = World()
    ledger = await world.open(max_entries=3)
    await append_all(ledger, 5)
    again = await world.open(max_entries=3)
    assert again.entries_count == 5
    assert again.last_confirmed_entry == Position(4, 1)
    assert await again.append_and_wait(b"x") == Position(5, 0)


async def test_an_idle_ledger_is_rolled_if_told_so():
    world = World()
    ledger = await world.open(inactive_ledger_rollover_seconds=30)
    await append_all(ledger, 1)
    await ledger.roll_if_due()
    await asyncio.sleep(31)
    await ledger.roll_if_due()
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [1, 0]


async def test_an_old_ledger_is_rolled():
    world = World()
    ledger = await world.open(maximum_rollover_seconds=100)
    await append_all(ledger, 1)
    await asyncio.sleep(106)
    await ledger.roll_if_due()
    assert [stats.entries_count for stats in ledger.ledgers_info()] == [1, 0]


async def test_rolling_on_request_needs_entries():
    world = World()
    ledger = await world.open()
    await ledger.roll_ledger()
    assert len(ledger.ledgers_info()) == 1
    await append_all(ledger, 1)
    await ledger.roll_ledger()
    assert len(ledger.ledgers_info()) == 2


async def test_terminating_ends_after_the_last_entry_for_ever():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 2)
    woken = []
    cursor = await ledger.open_cursor("sub")
    cursor.wait_for_entries(lambda: woken.append(1))
    assert await ledger.terminate() == Position(3, 1)
    assert woken == [1]
    assert await ledger.terminate() == Position(3, 1)
    await ledger.close()
    again = await world.open()
    assert again.is_terminated
    assert again.terminated_position == Position(3, 1)
    assert again.cursors["sub"].backlog_count() == 0


async def test_properties_are_stored():
    world = World()
    ledger = await world.open()
    await ledger.set_property("epoch", "3")
    await ledger.set_property("other", "x")
    await ledger.delete_property("other")
    again = await world.open()
    assert again.properties == {"epoch": "3"}


async def test_properties_that_change_at_once_are_all_stored():
    world = World()
    ledger = await world.open()
    await ledger.set_property("old", "x")
    changes = (
        ledger.set_property("a", "1"),
        ledger.delete_property("old"),
        ledger.set_property("b", "2"),
    )
    async with ledger.change_lock:
        tasks = [TaskOwner("test").spawn(change, "change") for change in changes]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert ledger.properties == {"a": "1", "b": "2"}
    again = await world.open()
    assert again.properties == {"a": "1", "b": "2"}


async def test_reading_one_entry_says_what_is_missing():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 2)
    assert (await ledger.read_entry(Position(3, 1))).data == b"m1"
    with pytest.raises(EntryNotFoundError):
        await ledger.read_entry(Position(3, 2))
    with pytest.raises(LedgerNotFoundError):
        await ledger.read_entry(Position(9, 0))


async def test_the_newest_entry_of_a_kind_is_found_over_ledgers():
    world = World()
    ledger = await world.open(max_entries=3)
    positions = await append_all(ledger, 10)
    for number in range(10):
        found = await ledger.find_newest(lambda entry, n=number: int(entry.data[1:]) <= n)
        assert found == positions[number]
    assert await ledger.find_newest(lambda entry: False) is None
    assert await ledger.find_newest(lambda entry: True, after=positions[9]) is None
    after = await ledger.find_newest(lambda entry: entry.data <= b"m6", after=positions[4])
    assert after == positions[6]


async def test_deleting_leaves_nothing():
    world = World()
    opener = world.opener()
    ledger = await world.open(max_entries=2, opener=opener)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 5)
    cursor.acknowledge([Position(3, 1)])
    await asyncio.sleep(2)
    await ledger.delete()
    assert world.store.ledgers == {}
    assert await world.metadata.get(ledger_path(NAME)) is None
    assert await opener.named_ledgers() == set()
    new = await world.open(opener=opener)
    assert (new.entries_count, dict(new.cursors)) == (0, {})


async def test_one_that_belongs_to_another_is_not_deleted():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    other = await world.open()
    with pytest.raises(ManagedLedgerFencedError):
        await ledger.delete()
    await other.append_and_wait(b"x")
    assert other.entries_count == 2


async def test_nothing_works_on_a_closed_one():
    ledger = await World().open()
    await ledger.close()
    await ledger.close()
    for work in (
        ledger.open_cursor("sub"),
        ledger.trim(),
        ledger.set_property("a", "b"),
        ledger.roll_ledger(),
        ledger.terminate(),
    ):
        with pytest.raises(ManagedLedgerClosedError):
            await work


async def test_closing_with_a_failing_store_closes_all_the_same():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    world.store.close_error = StorageError("broken")
    recover, world.store.recover = world.store.recover, None

    async def failing_recover(ledger_id, **options):
        raise StorageError("broken too")

    world.store.recover = failing_recover
    with pytest.raises(StorageError, match="broken too"):
        await ledger.close()
    world.store.recover = recover
    world.store.close_error = None
    again = await world.open()
    assert again.entries_count == 1


async def test_one_that_is_lost_while_it_closes_writes_nothing_more():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 1)
    path = ledger_path(NAME)
    before = await world.metadata.get(path)
    await ledger.change_lock.acquire()  # as another change has it
    closing = asyncio.ensure_future(ledger.close())  # noqa: TID251  (a test's own task)
    await settle()
    ledger.fence(ManagedLedgerFencedError("another broker owns the bundle"))
    ledger.change_lock.release()
    with pytest.raises(ManagedLedgerFencedError):
        await closing
    assert await world.metadata.get(path) == before


async def test_statistics_have_ledgers_and_cursors():
    world = World()
    ledger = await world.open(max_entries=2)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST, properties={"n": 1})
    await append_all(ledger, 3)
    cursor.acknowledge([Position(3, 1)])
    stats = ledger.internal_stats()
    assert (stats.state, stats.entries_count, stats.size_bytes) == ("LedgerOpened", 3, 6)
    assert stats.current_ledger_entries_count == 1
    assert [each.ledger_id for each in stats.ledgers] == [3, 4]
    shown = stats.cursors["sub"]
    assert shown.individually_deleted_messages == "[(3:0..3:1]]"
    assert (shown.backlog_count, shown.properties) == (2, {"n": 1})


async def test_sizes_and_counts_between_positions():
    world = World()
    ledger = await world.open(max_entries=2)
    positions = await append_all(ledger, 5)
    assert ledger.count_entries_between(positions[0], positions[4]) == 4
    assert ledger.ledgers.position_after_entries(positions[0], 2) == positions[2]
    assert ledger.next_valid_position(positions[1]) == positions[2]
    assert ledger.previous_position(positions[2]) == positions[1]
    assert ledger.ledgers.size_after(positions[3]) == 2
    assert ledger.next_valid_position(LATEST) == Position(5, 1)
    assert ledger.backlog_size_bytes() == 0
    await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    assert ledger.backlog_size_bytes() == 10


async def test_a_new_cursor_does_not_begin_in_what_is_being_trimmed():
    ledger = await World().open()
    async with ledger.change_lock:
        opening = asyncio.ensure_future(ledger.open_cursor("sub"))  # noqa: TID251  (a test's own)
        await settle()
        assert not opening.done()
    await opening
    assert await ledger.open_cursor("sub") is ledger.cursors["sub"]


async def test_what_began_before_it_was_lost_writes_no_cursor_afterwards():
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("c")
    await append_all(ledger, 2)
    path = cursor_path(NAME, "c")
    before = await world.metadata.get(path)
    world.store.creations_may_proceed = asyncio.Event()
    cursor.acknowledge([ledger.first_position])
    await asyncio.sleep(2)  # it makes a cursor ledger by now
    ledger.fence(ManagedLedgerFencedError("another broker owns the bundle"))
    world.store.creations_may_proceed.set()
    await settle()
    assert await world.metadata.get(path) == before
    await ledger.close()
    assert await world.metadata.get(path) == before
