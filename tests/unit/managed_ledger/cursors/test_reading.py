"""CursorReading: runs from memory and storage, without what is acknowledged."""

import asyncio

import pytest

from pulsar_py.common.errors import CursorClosedError, LedgerNotFoundError
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import MANY, World, append_all, texts


async def opened(world, count=10, **options):
    ledger = await world.open(**options)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, count)
    return ledger, cursor


async def read_all(cursor, max_entries=1000):
    found = []
    while entries := await cursor.read(max_entries, 1_000_000):
        found += texts(entries)
    return found


async def test_reads_go_on_over_ledgers_to_the_end():
    _, cursor = await opened(World(), max_entries=3)
    assert await read_all(cursor) == [f"m{each}" for each in range(10)]
    assert cursor.read_cached(*MANY) == []
    assert cursor.read_position == Position(6, 1)
    assert not cursor.has_more_entries()


async def test_what_is_not_in_memory_has_to_be_awaited():
    world = World()
    _, cursor = await opened(world)
    world.store.is_cold = True
    assert cursor.read_cached(*MANY) is None
    assert cursor.read_position == Position(3, 0)
    assert len(await cursor.read(*MANY)) == 10


async def test_a_read_of_what_is_sent_again_is_seen_while_it_is_under_way():
    world = World()
    _, cursor = await opened(world)
    await read_all(cursor, 10)
    world.store.is_cold = True
    seen = []

    async def look():
        seen.append(cursor.stats().pending_replay_reads_count)

    entries, _ = await asyncio.gather(cursor.read_replay([Position(3, 0)]), look())
    assert (len(entries), seen) == (1, [1])
    assert cursor.stats().pending_replay_reads_count == 0


async def test_reading_ahead_reads_storage_once():
    world = World()
    _, cursor = await opened(world, count=100)
    world.store.is_cold = True
    assert texts(await cursor.read(10, 1000)) == [f"m{each}" for each in range(10)]
    assert world.store.reads_count == 1
    assert await read_all(cursor, 10) == [f"m{each}" for each in range(10, 100)]
    assert world.store.reads_count == 1


async def test_what_is_read_ahead_counts_in_the_budget_and_is_given_back():
    world = World()
    ledger, cursor = await opened(world, count=100)
    world.store.is_cold = True
    await cursor.read(10, 1000)
    assert ledger.cache_manager.used_bytes > 0
    cursor.rewind()
    assert ledger.cache_manager.used_bytes == 0


async def test_without_room_in_the_budget_nothing_is_read_ahead():
    world = World()
    opener = world.opener(cache_size_bytes=0)
    ledger = await world.open(opener=opener)
    cursor = await ledger.open_cursor("sub", InitialPosition.EARLIEST)
    await append_all(ledger, 30)
    world.store.is_cold = True
    assert await read_all(cursor, 10) == [f"m{each}" for each in range(30)]
    assert world.store.reads_count == 3
    assert ledger.cache_manager.used_bytes == 0


async def test_entries_and_bytes_are_limited_but_one_always_comes():
    _, cursor = await opened(World())
    assert texts(await cursor.read(3, 1000)) == ["m0", "m1", "m2"]
    assert texts(await cursor.read(100, 5)) == ["m3", "m4"]
    assert texts(await cursor.read(100, 1)) == ["m5"]


async def test_a_maximum_position_is_respected():
    _, cursor = await opened(World(), max_entries=4)
    until = Position(4, 1)
    found = texts(await cursor.read(100, 1000, until)) + texts(await cursor.read(100, 1000, until))
    assert found == [f"m{each}" for each in range(6)]
    assert cursor.read_cached(100, 1000, until) == []
    assert texts(await cursor.read(100, 1000, LATEST)) == ["m6", "m7"]


async def test_acknowledged_entries_are_left_out():
    _, cursor = await opened(World(), max_entries=4)
    cursor.acknowledge([Position(3, 1), Position(3, 2), Position(4, 0), Position(4, 3)])
    assert await read_all(cursor) == ["m0", "m3", "m5", "m6", "m8", "m9"]


async def test_entries_acknowledged_after_reading_ahead_are_left_out():
    world = World()
    _, cursor = await opened(world)
    world.store.is_cold = True
    await cursor.read(1, 1)
    cursor.acknowledge([Position(3, 1), Position(3, 5), Position(3, 9)])
    assert await read_all(cursor, 3) == ["m2", "m3", "m4", "m6", "m7", "m8"]


async def test_a_read_overtaken_by_a_move_has_no_effect():
    world = World()
    _, cursor = await opened(world)
    world.store.is_cold = True
    reading = asyncio.ensure_future(cursor.read(*MANY))  # noqa: TID251  (a test's own task)
    await asyncio.sleep(0)
    cursor.seek(Position(3, 7))
    assert await reading == []
    assert texts(await cursor.read(*MANY)) == ["m7", "m8", "m9"]


async def test_a_read_overtaken_by_closing_fails():
    world = World()
    _, cursor = await opened(world)
    world.store.is_cold = True
    reading = asyncio.ensure_future(cursor.read(*MANY))  # noqa: TID251  (a test's own task)
    await asyncio.sleep(0)
    await cursor.close()
    with pytest.raises(CursorClosedError):
        await reading
    with pytest.raises(CursorClosedError):
        cursor.read_cached(*MANY)


async def test_a_lost_ledger_fails_reads_or_is_skipped():
    world = World()
    ledger, cursor = await opened(world, max_entries=4)
    world.store.is_cold = True
    del world.store.ledgers[4]
    await cursor.read(*MANY)
    with pytest.raises(LedgerNotFoundError):
        await cursor.read(*MANY)
    await ledger.close()
    ledger = await world.open(max_entries=4, skips_non_recoverable_data=True)
    cursor = ledger.cursors["sub"]
    assert await read_all(cursor) == ["m0", "m1", "m2", "m3", "m8", "m9"]
    assert cursor.is_acknowledged(Position(4, 2))


async def test_replays_come_in_the_order_asked_for_without_what_is_gone():
    world = World()
    _, cursor = await opened(world, max_entries=4)
    await read_all(cursor)
    cursor.acknowledge([Position(3, 1)])
    wanted = [Position(4, 0), Position(3, 0), Position(3, 1), Position(3, 2), Position(3, 3)]
    assert texts(await cursor.read_replay(wanted)) == ["m4", "m0", "m2", "m3"]
    assert texts(cursor.read_replay_cached(wanted)) == ["m4", "m0", "m2", "m3"]
    world.store.is_cold = True
    assert cursor.read_replay_cached(wanted) is None
    assert await cursor.read_replay([Position(9, 9), Position(3, 1)]) == []


async def test_what_is_acknowledged_while_a_replay_is_read_is_left_out():
    world = World()
    _, cursor = await opened(world)
    world.store.is_cold = True
    wanted = [Position(3, each) for each in range(3)]
    reading = asyncio.ensure_future(cursor.read_replay(wanted))  # noqa: TID251  (a test's own)
    await asyncio.sleep(0)
    cursor.acknowledge([Position(3, 1)])
    assert texts(await reading) == ["m0", "m2"]
