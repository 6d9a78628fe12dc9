"""CursorStore: what recovery makes of whatever it finds."""

import asyncio

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.cursors.format import encode_cursor_record
from pulsar_py.managed_ledger.cursors.state import CursorState
from pulsar_py.managed_ledger.log.ledger_format import cursor_path
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import NAME, World, append_all


async def written(world):
    """A cursor with two states in its ledger, whose owner died."""
    ledger = await world.open()
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 10)
    for entry_id in (0, 1):
        cursor.acknowledge([Position(3, entry_id)])
        await asyncio.sleep(1.1)
    return world.store.ledgers[cursor.cursor_ledger_id]


async def test_the_last_state_counts():
    world = World()
    await written(world)
    ledger = await world.open()
    assert ledger.cursors["sub"].mark_delete_position == Position(3, 1)


async def test_an_unreadable_last_state_gives_the_one_before():
    world = World()
    cursor_ledger = await written(world)
    cursor_ledger.entries[-1] = b"\xff\xff"
    ledger = await world.open()
    assert ledger.cursors["sub"].mark_delete_position == Position(3, 0)


async def test_without_a_readable_state_the_record_counts():
    world = World()
    cursor_ledger = await written(world)
    cursor_ledger.entries[:] = [b"\xff", b"\xff"]
    ledger = await world.open()
    assert ledger.cursors["sub"].mark_delete_position == Position(3, 0)


async def test_without_a_ledger_the_record_counts():
    world = World()
    cursor_ledger = await written(world)
    del world.store.ledgers[cursor_ledger.ledger_id]
    ledger = await world.open()
    cursor = ledger.cursors["sub"]
    assert cursor.mark_delete_position == Position(3, 0)
    cursor.acknowledge_cumulative(Position(3, 5))
    await asyncio.sleep(1)
    assert cursor.cursor_ledger_id not in (-1, cursor_ledger.ledger_id)


async def test_an_empty_ledger_rolls_back_to_the_record():
    world = World()
    cursor_ledger = await written(world)
    cursor_ledger.entries.clear()
    cursor_ledger.last_confirmed = -1
    ledger = await world.open()
    assert ledger.cursors["sub"].mark_delete_position == Position(3, 0)


async def test_positions_that_do_not_exist_are_brought_back():
    world = World()
    ledger = await world.open(max_entries=5)
    await append_all(ledger, 10)
    await ledger.close()
    path = cursor_path(NAME, "sub")
    for stored, expected in (
        (Position(9, 9), Position(4, 4)),
        (Position(-1, -1), Position(3, -1)),
        (Position(2, 7), Position(3, -1)),
        (Position(3, 2), Position(3, 2)),
    ):
        state = CursorState(ledger.ledgers, stored)
        state.individual_deleted_messages.add_range(8, 1, 4)
        state.individual_deleted_messages.add_range(4, 1, 9)
        await world.metadata.put(path, encode_cursor_record(state, {}, max_ranges=9).data)
        again = await world.open(max_entries=5)
        cursor = again.cursors["sub"]
        cursor.state.check()
        assert cursor.mark_delete_position == expected, stored


async def test_names_with_any_characters_are_found_again():
    world = World()
    ledger = await world.open()
    names = ["a b", "ü/x%", "#", "~*-._", "+"]
    for name in names:
        await ledger.open_cursor(name)
    again = await world.open()
    assert sorted(again.cursors) == sorted(names)
