"""EntryCache: groups in, shared entries out, within a budget."""

import asyncio

from pulsar_py.common.position import Position
from pulsar_py.managed_ledger.log.entry_cache import (
    ENTRY_OVERHEAD_BYTES,
    EntryCache,
    EntryCacheManager,
)
from tests.managed_ledger_parts import texts


def manager_of(clock, budget_bytes=1_000_000):
    return EntryCacheManager(
        clock,
        budget_bytes=budget_bytes,
        watermark=0.9,
        max_age_seconds=1.0,
        eviction_interval_seconds=0.05,
    )


def datas(first, count, size=0):
    return [f"{number}".encode().ljust(size, b".") for number in range(first, first + count)]


def sizes(manager):
    return sum(group.size_bytes for group in manager._groups if group.cache is not None)


async def test_reads_span_groups_and_end_at_gaps(virtual_clock):
    cache = EntryCache(manager_of(virtual_clock))
    cache.insert(5, 0, datas(0, 3))
    cache.insert(5, 3, datas(3, 2))
    cache.insert(5, 7, datas(7, 1))
    cache.insert(6, 0, datas(0, 1))
    assert texts(cache.read(5, 1, 100, 1000)) == ["1", "2", "3", "4"]
    assert texts(cache.read(5, 0, 3, 1000)) == ["0", "1", "2", "3"]
    assert texts(cache.read(5, 2, 2, 1000)) == ["2"]
    assert cache.read(5, 5, 9, 1000) is None
    assert cache.read(4, 0, 9, 1000) is None
    assert texts(cache.read(6, 0, 9, 1000)) == ["0"]


async def test_all_readers_share_one_entry(virtual_clock):
    cache = EntryCache(manager_of(virtual_clock))
    cache.insert(5, 0, datas(0, 3))
    first = cache.read(5, 0, 2, 1000)
    second = cache.read(5, 1, 2, 1000)
    assert first[1] is second[0]


async def test_bytes_are_limited_but_one_entry_always_comes(virtual_clock):
    cache = EntryCache(manager_of(virtual_clock))
    cache.insert(5, 0, datas(0, 10, size=100))
    assert len(cache.read(5, 0, 9, 250)) == 2
    assert len(cache.read(5, 0, 9, 1)) == 1
    assert len(cache.read(5, 0, 9, 1000)) == 10


async def test_what_it_holds_counts_as_allocated(virtual_clock):
    manager = manager_of(virtual_clock)
    cache = EntryCache(manager)
    cache.insert(5, 0, datas(0, 10, size=100))
    assert manager.used_bytes == 10 * (100 + ENTRY_OVERHEAD_BYTES)
    cache.clear()
    assert manager.used_bytes == 0


async def test_old_groups_go(virtual_clock):
    manager = manager_of(virtual_clock)
    cache = EntryCache(manager)
    cache.insert(5, 0, datas(0, 1))
    await asyncio.sleep(0.9)
    cache.insert(5, 1, datas(1, 1))
    await asyncio.sleep(0.2)
    assert cache.read(5, 0, 0, 10) is None
    assert texts(cache.read(5, 1, 1, 10)) == ["1"]
    await asyncio.sleep(1)
    assert manager.used_bytes == 0
    assert manager.evicted_entries_count == 2
    assert manager._timer is None


async def test_below_the_slowest_reader_groups_go_as_a_whole(virtual_clock):
    manager = manager_of(virtual_clock)
    cache = EntryCache(manager)
    cache.insert(5, 0, datas(0, 2))
    cache.insert(5, 2, datas(2, 2))
    cache.evict_below(Position(5, 3))
    assert cache.read(5, 1, 1, 10) is None
    assert texts(cache.read(5, 2, 9, 10)) == ["2", "3"]
    cache.evict_below(Position(6, 0))
    assert manager.used_bytes == 0


async def test_the_budget_is_never_exceeded_and_the_oldest_go_first(virtual_clock):
    size = 10 * (100 + ENTRY_OVERHEAD_BYTES)
    manager = manager_of(virtual_clock, budget_bytes=5 * size)
    caches = [EntryCache(manager) for _ in range(3)]
    for number in range(20):
        caches[number % 3].insert(5, number * 10, datas(0, 10, size=100))
        assert manager.used_bytes <= manager.budget_bytes
        assert manager.used_bytes == sizes(manager)
    assert manager.evictions_count == 16  # the first four groups fit
    assert caches[19 % 3].read(5, 190, 199, 10_000) is not None
    assert caches[0].read(5, 0, 9, 10_000) is None


async def test_a_group_too_large_for_the_budget_is_not_kept(virtual_clock):
    manager = manager_of(virtual_clock, budget_bytes=100)
    cache = EntryCache(manager)
    cache.insert(5, 0, datas(0, 10))
    assert manager.used_bytes == 0
    assert not manager.reserve(100)
    assert manager.reserve(50)
    manager.release(50)
    manager.close()


async def test_a_closed_manager_holds_nothing(virtual_clock):
    manager = manager_of(virtual_clock)
    EntryCache(manager).insert(5, 0, datas(0, 10))
    manager.close()
    assert manager.used_bytes == 0
