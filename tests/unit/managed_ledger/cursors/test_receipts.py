"""Receipts of acknowledgements: given once the cursor is written, and the writes are small."""

import asyncio
import random

import pytest

from pulsar_py.common.errors import CursorClosedError, StorageError
from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import CursorSnapshot
from pulsar_py.managed_ledger.cursors.segments import StoredChanges, decode_entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.proto.MLDataFormats_pb2 import PositionInfo
from tests.managed_ledger_parts import World, append_all, settle

HOLES = 40


async def with_holes(world, count=200, holes=HOLES, **options):
    """A cursor with every second entry acknowledged, written in a cursor ledger."""
    ledger = await world.open(**options)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, count)
    cursor.acknowledge([Position(3, 2 * each + 1) for each in range(holes)])
    await cursor.flush()
    return ledger, cursor


async def after_a_crash(world, **options):
    return (await world.open(**options)).cursors["sub"]


def asked(cursor):
    """A list that gets the outcome of what was acknowledged so far."""
    outcome = []
    cursor.when_durable(lambda _, error: outcome.append(error))
    return outcome


def entries_of(world, cursor):
    return world.store.ledgers[cursor.cursor_ledger_id].entries


async def test_a_receipt_follows_the_write_and_survives_a_crash():
    world = World()
    _, cursor = await with_holes(world, holes=1)
    cursor.acknowledge([Position(3, 9)])
    outcome = asked(cursor)
    assert outcome == []
    await settle()
    assert outcome == [None]
    assert world.clock.monotonic_seconds() == 0.0
    assert (await after_a_crash(world)).is_acknowledged(Position(3, 9))


async def test_what_is_durable_already_is_answered_at_once():
    world = World()
    _, cursor = await with_holes(world)
    assert asked(cursor) == [None]


async def test_acknowledgements_of_one_turn_share_a_write():
    world = World()
    _, cursor = await with_holes(world)
    before = len(entries_of(world, cursor))
    outcomes = []
    for entry_id in (100, 102, 104):
        cursor.acknowledge([Position(3, entry_id)])
        outcomes.append(asked(cursor))
    await settle()
    assert outcomes == [[None]] * 3
    assert len(entries_of(world, cursor)) == before + 1


async def test_the_next_write_begins_in_the_turn_in_which_the_one_before_ends():
    world = World()
    _, cursor = await with_holes(world)
    loop = asyncio.get_running_loop()
    are_under_way = []

    def on_durable(numbers, error):
        assert error is None
        # Before timers of the same turn, and those are how a first write begins.
        loop.call_soon(lambda: are_under_way.append(cursor.state.is_write_in_flight))

    cursor.acknowledge([Position(3, 100)])
    cursor.when_durable(on_durable)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert cursor.state.is_write_in_flight
    cursor.acknowledge([Position(3, 102)])
    cursor.when_durable(on_durable)
    await settle()
    assert are_under_way == [True, False]


async def test_changes_are_written_alone_and_recovered():
    world = World()
    _, cursor = await with_holes(world)
    for entry_id in (100, 103, 106):
        cursor.acknowledge([Position(3, entry_id)])
        cursor.acknowledge([Position(3, 110)], [[0b111 << (entry_id - 100) // 3 & 0b111]])
        assert asked(cursor) == []
        await settle()
    kinds = [type(decode_entry(bytes(each))) for each in entries_of(world, cursor)]
    assert kinds[-2:] == [StoredChanges, StoredChanges]
    again = await after_a_crash(world)
    assert again.individual_ranges_count() == HOLES + 3
    assert again.batch_ack_set(Position(3, 110)) == cursor.batch_ack_set(Position(3, 110))
    assert again.mark_delete_position == cursor.mark_delete_position


async def test_every_entry_is_a_position_for_apache_pulsar_and_ranges_follow_in_a_second():
    world = World()
    _, cursor = await with_holes(world)
    cursor.set_properties({"a": 7})
    for entry_id in (100, 103, 106):
        cursor.acknowledge([Position(3, entry_id)])
        asked(cursor)
        await settle()
    last = PositionInfo.FromString(bytes(entries_of(world, cursor)[-1]))
    assert (last.ledgerId, last.entryId) == cursor.mark_delete_position
    assert [(each.name, each.value) for each in last.properties] == [("a", 7)]
    assert not last.individualDeletedMessages
    count = len(entries_of(world, cursor))
    await asyncio.sleep(1.01)
    assert len(entries_of(world, cursor)) == count + 1
    shown = PositionInfo.FromString(bytes(entries_of(world, cursor)[-1]))
    assert shown.individualDeletedMessages or shown.individualDeletedMessageRanges
    assert [(each.name, each.value) for each in shown.properties] == [("a", 7)]
    await asyncio.sleep(10)
    assert len(entries_of(world, cursor)) == count + 1


async def test_segments_have_the_properties_too():
    world = World()
    _, cursor = await with_holes(world, max_ranges_in_cursor_entry=5)
    cursor.set_properties({"a": 7})
    cursor.acknowledge([Position(3, 100)])
    await asyncio.sleep(1.1)
    for entry in entries_of(world, cursor)[-2:]:
        info = PositionInfo.FromString(bytes(entry))
        assert [(each.name, each.value) for each in info.properties] == [("a", 7)]


async def test_many_holes_at_random_places_cost_few_bytes_an_entry():
    world = World()
    options = {"max_entries": 5000, "max_ranges_in_cursor_entry": 100}
    _, cursor = await with_holes(world, count=2000, holes=900, **options)
    chance = random.Random(1)
    cursor.acknowledge([Position(3, 1999)])
    asked(cursor)
    await settle()
    before = len(entries_of(world, cursor))
    groups = 50
    for _ in range(groups):
        cursor.acknowledge([Position(3, 2 * chance.randrange(10, 1000)) for _ in range(4)])
        asked(cursor)
        await settle()
    written = entries_of(world, cursor)[before:]
    assert len(written) == groups
    assert sum(map(len, written)) <= groups * 4 * 64
    again = await after_a_crash(world, **options)
    assert again.backlog_count() == cursor.backlog_count()


async def test_with_few_holes_nothing_is_noted_and_many_new_ones_are_written_as_a_whole():
    world = World()
    _, cursor = await with_holes(world, holes=1)
    kinds = []
    for group in ([100], [102], list(range(104, 184, 2)), [190], [192]):
        cursor.acknowledge([Position(3, entry_id) for entry_id in group])
        outcome = asked(cursor)
        log = cursor._persister.changes
        await settle()
        assert outcome == [None]
        kinds.append((type(decode_entry(bytes(entries_of(world, cursor)[-1]))), log.is_complete))
    again = await after_a_crash(world)
    assert again.individual_ranges_count() == cursor.individual_ranges_count() == 45
    assert kinds == [
        (CursorSnapshot, False),
        (CursorSnapshot, False),
        (CursorSnapshot, True),
        (StoredChanges, True),
        (StoredChanges, True),
    ]


async def test_a_reset_that_was_answered_is_not_undone_by_later_receipts():
    world = World()
    _, cursor = await with_holes(world)
    cursor.acknowledge([Position(3, 120)])
    asked(cursor)
    await settle()
    await cursor.reset(Position(3, 0))
    cursor.acknowledge([Position(3, 50)])
    outcome = asked(cursor)
    await settle()
    assert outcome == [None]
    again = await after_a_crash(world)
    assert again.backlog_count() == 199
    assert not again.is_acknowledged(Position(3, 120))


async def test_a_failed_write_goes_to_a_new_ledger_before_the_receipt():
    world = World()
    _, cursor = await with_holes(world)
    old_id = cursor.cursor_ledger_id
    cursor.acknowledge([Position(3, 100)])
    outcome = asked(cursor)
    world.store.fail_writers(StorageError("gone"))
    await settle()
    assert outcome == [None]
    assert cursor.cursor_ledger_id != old_id
    assert (await after_a_crash(world)).is_acknowledged(Position(3, 100))


async def test_a_receipt_becomes_an_error_when_nothing_can_be_written():
    world = World()
    limit = {"max_unacked_ranges_to_persist_in_metadata": 2}
    _, cursor = await with_holes(world, **limit)
    world.store.append_error = world.store.create_error = StorageError("full")
    cursor.acknowledge([Position(3, each) for each in range(100, 200, 2)])
    outcome = asked(cursor)
    await settle()
    assert isinstance(outcome[0], StorageError)
    world.store.append_error = world.store.create_error = None
    await asyncio.sleep(30)
    cursor.acknowledge([Position(3, 131)])
    later = asked(cursor)
    await settle()
    assert later == [None]


@pytest.mark.parametrize("ends", ["close", "abandon"])
async def test_the_end_of_a_cursor_answers_all(ends):
    world = World()
    ledger, cursor = await with_holes(world)
    cursor.acknowledge([Position(3, 100)])
    outcome = asked(cursor)
    if ends == "close":
        await ledger.close()
        assert outcome == [None]
        assert (await after_a_crash(world)).is_acknowledged(Position(3, 100))
    else:
        cursor.abandon()
        assert isinstance(outcome[0], CursorClosedError)


async def test_without_receipts_nothing_is_noted_any_more():
    world = World()
    _, cursor = await with_holes(world, holes=60)
    cursor.acknowledge([Position(3, 150)])
    asked(cursor)
    await settle()
    assert cursor._persister.changes is not None
    for _ in range(2):
        cursor.acknowledge([Position(3, random.Random(2).randrange(151, 200))])
        await cursor.flush()
        cursor.acknowledge([Position(3, 152)])
        await cursor.flush()
    assert cursor._persister.changes is None


async def test_changes_of_a_large_state_show_the_ranges_that_fit_a_second_later():
    world = World()
    _, cursor = await with_holes(world, count=900, holes=400, max_ranges_in_cursor_entry=10)
    for entry_id in (850, 852):
        cursor.acknowledge([Position(3, entry_id)])
        asked(cursor)
        await settle()
    await asyncio.sleep(1.2)
    last = bytes(entries_of(world, cursor)[-1])
    assert isinstance(decode_entry(last), StoredChanges)
    assert len(PositionInfo.FromString(last).individualDeletedMessages) == 300
    assert len(last) < 8192
    again = await after_a_crash(world, max_ranges_in_cursor_entry=10)
    assert again.backlog_count() == cursor.backlog_count()
