"""ManagedCursor: what a subscription does with it."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    CursorClosedError,
    InvalidCursorPositionError,
    ManagedLedgerError,
    MetadataError,
    MetadataOutcomeUnknownError,
    StorageError,
)
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import (
    MANY,
    TRIMMING,
    World,
    append_all,
    rolling,
    settle,
    texts,
)


async def opened(count=10, **options):
    ledger = await World().open(**options)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, count)
    return cursor


async def test_whoever_asked_hears_once_a_call_that_the_mark_moved():
    cursor = await opened()
    moved = []
    cursor.on_mark_delete_moved = lambda: moved.append(str(cursor.mark_delete_position))
    cursor.acknowledge([Position(3, 1)])
    cursor.acknowledge([Position(3, 0), Position(3, 2)])
    cursor.acknowledge_cumulative(Position(3, 5))
    assert moved == ["3:2", "3:5"]


async def test_positions_before_the_first_one_past_the_end_are_acknowledged():
    cursor = await opened()
    assert cursor.acknowledge([Position(3, 0), Position(3, 100), Position(3, 1)]) == 1
    assert cursor.mark_delete_position == Position(3, 0)
    with pytest.raises(InvalidCursorPositionError):
        cursor.acknowledge_cumulative(Position(9, 9))


async def test_rewinding_reads_what_is_not_acknowledged_again():
    cursor = await opened(4)
    cursor.read_cached(*MANY)
    cursor.acknowledge([Position(3, 0), Position(3, 2)])
    cursor.rewind()
    assert texts(cursor.read_cached(*MANY)) == ["m1", "m3"]


async def test_resetting_delivers_from_there():
    cursor = await opened(4)
    cursor.acknowledge_cumulative(Position(3, 3))
    await cursor.reset(Position(3, 1), [0b10])
    assert cursor.batch_ack_set(Position(3, 1)) == [0b10]
    assert texts(cursor.read_cached(*MANY)) == ["m1", "m2", "m3"]
    await cursor.reset(EARLIEST)
    assert cursor.backlog_count() == 4
    assert cursor.batch_ack_set(Position(3, 1)) is None
    await cursor.reset(LATEST)
    assert (cursor.backlog_count(), cursor.read_cached(*MANY)) == (0, [])


async def test_an_empty_one_can_be_reset():
    cursor = await opened(0)
    for position in (EARLIEST, LATEST, Position(3, 0), Position(7, 7)):
        await cursor.reset(position)
        assert cursor.mark_delete_position == Position(3, -1)


async def test_skipping_and_clearing():
    cursor = await opened(10, max_entries=4)
    cursor.acknowledge([Position(3, 1)])
    await cursor.skip(2)
    assert cursor.backlog_count() == 7
    await cursor.skip(100)
    assert cursor.backlog_count() == 0
    await cursor.clear_backlog()


async def test_clearing_an_empty_one_is_fine():
    cursor = await opened(0)
    await cursor.clear_backlog()
    await cursor.skip(1)
    assert cursor.backlog_count() == 0


async def test_numbers_of_the_backlog():
    cursor = await opened(10)
    cursor.read_cached(3, 1000)
    cursor.acknowledge([Position(3, 0), Position(3, 4)])
    assert cursor.backlog_count() == 8
    assert cursor.backlog_bytes() == 18
    assert cursor.entries_to_read_count() == 7
    assert cursor.has_more_entries()
    assert cursor.individual_ranges_count() == 1


async def test_a_closed_one_takes_nothing():
    cursor = await opened()
    await cursor.close()
    await cursor.close()
    assert cursor.is_closed
    with pytest.raises(CursorClosedError):
        cursor.acknowledge([Position(3, 0)])
    with pytest.raises(CursorClosedError):
        cursor.wait_for_entries(lambda: None)
    with pytest.raises(CursorClosedError):
        await cursor.reset(EARLIEST)
    with pytest.raises(CursorClosedError):
        cursor.set_properties({})
    cursor.set_active()
    assert not cursor.is_active


async def test_a_non_durable_one_stores_nothing():
    ledger = await World().open()
    reader = ledger.new_non_durable_cursor("reader", InitialPosition.EARLIEST)
    await append_all(ledger, 3)
    reader.acknowledge([Position(3, 0)])
    await reader.reset(Position(3, 0))
    await reader.flush()
    with pytest.raises(ManagedLedgerError):
        await reader.set_cursor_properties({"a": "b"})
    assert reader.cursor_properties == {}
    assert reader.stats().cursor_ledger_id == -1
    await reader.close()
    assert dict(ledger.cursors) == {}


async def test_a_reset_waits_for_trimming_that_was_decided_before():
    ledger = await World().open()
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    async with ledger.change_lock:
        resetting = asyncio.ensure_future(cursor.reset(LATEST))  # noqa: TID251  (a test's own)
        await settle()
        assert not resetting.done()
    await resetting


async def test_nothing_goes_back_to_what_may_have_been_trimmed(monkeypatch):
    world = World()
    ledger = await world.open(max_entries=2)
    positions = await append_all(ledger, 3)
    ledger.config = rolling(2, **TRIMMING)
    cursor = await ledger.open_cursor("sub", InitialPosition.LATEST)
    put = world.metadata.put

    async def lose_the_answer(*arguments, **options):
        await put(*arguments, **options)
        patched.setattr(world.metadata, "get", fail)
        raise MetadataError("connection lost")

    async def fail(*_):
        raise MetadataError("not connected")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lose_the_answer)
        with pytest.raises(MetadataError, match="connection lost"):
            await ledger.trim()
        assert ledger.contains(positions[0])  # as far as it knows
        with pytest.raises(MetadataError):
            await cursor.reset(positions[0])
        assert cursor.mark_delete_position == positions[2]

    # What was not deleted is named again before anybody goes back to it.
    await cursor.reset(positions[0])
    assert (await world.open()).contains(positions[0])


async def test_trimming_whose_answer_is_lost_finds_out_that_it_is_written(monkeypatch):
    world = World()
    ledger = await world.open(max_entries=2)
    positions = await append_all(ledger, 3)
    ledger.config = rolling(2, **TRIMMING)
    put = world.metadata.put

    async def lose_the_answer(*arguments, **options):
        await put(*arguments, **options)
        raise MetadataOutcomeUnknownError("connection lost")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", lose_the_answer)
        await ledger.trim()
    assert not ledger.contains(positions[0])
    await append_all(ledger, 3)
    assert not ledger.is_fenced


async def test_after_a_reset_that_failed_the_state_is_written_again(monkeypatch):
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    positions = await append_all(ledger, 5)
    cursor.acknowledge_cumulative(positions[1])
    await cursor.flush()
    world.store.append_error = world.store.create_error = StorageError("full")

    async def refuse(path, *arguments, **options):
        raise MetadataError("in doubt")

    with monkeypatch.context() as patched:
        patched.setattr(world.metadata, "put", refuse)
        with pytest.raises(MetadataError):
            await cursor.reset(positions[4])
    world.store.append_error = world.store.create_error = None
    assert cursor.state.is_dirty
    await asyncio.sleep(2.5)
    assert not cursor.state.is_dirty
    assert cursor.mark_delete_position == positions[1]
