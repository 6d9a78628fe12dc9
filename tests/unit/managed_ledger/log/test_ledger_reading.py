"""LedgerReading: the cache first, then memory, then storage."""

from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from tests.managed_ledger_parts import MANY, World, append_all, texts


async def test_tailing_cursors_share_cached_entries():
    world = World()
    ledger = await world.open()
    first, second = [await ledger.open_cursor(name) for name in ("a", "b")]
    for cursor in (first, second):
        cursor.set_active()
    await append_all(ledger, 3)
    world.store.is_cold = True
    one, other = first.read_cached(*MANY), second.read_cached(*MANY)
    assert texts(one) == ["m0", "m1", "m2"]
    assert all(left is right for left, right in zip(one, other, strict=True))


async def test_nothing_is_cached_without_an_active_cursor():
    world = World()
    ledger = await world.open()
    await ledger.open_cursor("a")
    await append_all(ledger, 3)
    assert ledger.cache_manager.used_bytes == 0


async def test_nothing_is_cached_for_a_cursor_far_behind():
    world = World()
    ledger = await world.open(cursor_backlogged_threshold_entries=2)
    cursor = await ledger.open_cursor("a", InitialPosition.EARLIEST)
    cursor.set_active()
    await append_all(ledger, 10)
    assert ledger.cache_manager.used_bytes > 0
    before = ledger.cache_manager.used_bytes
    await append_all(ledger, 10)
    assert ledger.cache_manager.used_bytes == before


async def test_what_all_active_cursors_have_read_leaves_the_cache():
    world = World()
    ledger = await world.open()
    cursor = await ledger.open_cursor("a")
    cursor.set_active()
    await append_all(ledger, 5)
    cursor.read_cached(*MANY)
    await append_all(ledger, 1)
    assert len(ledger._cache.groups) == 1
    cursor.set_inactive()
    assert ledger.cache_manager.used_bytes == 0


async def test_the_open_ledger_is_read_through_its_writer():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 3)
    assert texts(ledger.reading.run_cached(3, 0, 2, 100)) == ["m0", "m1", "m2"]
    world.store.is_cold = True
    assert ledger.reading.run_cached(3, 0, 2, 100) is None
    assert texts(await ledger.reading.run(3, 1, 2, 100)) == ["m1", "m2"]


async def test_what_was_read_is_counted_and_what_was_not_in_memory():
    world = World()
    ledger = await world.open()
    await append_all(ledger, 3)
    reading = ledger.reading
    reading.run_cached(3, 0, 2, 100)
    assert (reading.entries_read_count, reading.stored_entries_read_count) == (3, 0)
    world.store.is_cold = True
    assert reading.run_cached(3, 0, 2, 100) is None
    await reading.run(3, 1, 2, 100)
    assert (reading.entries_read_count, reading.stored_entries_read_count) == (5, 2)
