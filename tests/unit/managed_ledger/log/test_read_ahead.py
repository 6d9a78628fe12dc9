"""ReadAhead: entries kept for the next reads, within the budget."""

import sys

from pulsar_py.common.packed_entries import LENT_BYTES, PackedEntries
from pulsar_py.managed_ledger.log.entry_cache import ENTRY_OVERHEAD_BYTES, EntryCacheManager
from pulsar_py.managed_ledger.log.entry_run import EntryRun
from pulsar_py.managed_ledger.log.read_ahead import ReadAhead
from pulsar_py.testing.clock import VirtualClock
from tests.managed_ledger_parts import texts


def ahead_with(first, count, *, budget_bytes=1_000_000):
    manager = EntryCacheManager(
        VirtualClock(),
        budget_bytes=budget_bytes,
        watermark=0.9,
        max_age_seconds=1,
        eviction_interval_seconds=1,
    )
    ahead = ReadAhead(manager)
    run = EntryRun(5, first, [str(each).encode() for each in range(first, first + count)])
    ahead.keep_at_least(run, 2)
    return ahead, manager


def test_entries_are_taken_in_order_and_the_budget_given_back_at_the_end():
    ahead, manager = ahead_with(3, 5)
    assert manager.used_bytes > 0
    assert texts(ahead.take(5, 3, 4, 100)) == ["3", "4"]
    assert texts(ahead.take(5, 6, 99, 100)) == ["6", "7"]
    assert manager.used_bytes == 0
    assert ahead.take(5, 8, 99, 100) is None


def test_bytes_are_limited_but_one_always_comes():
    ahead, _ = ahead_with(0, 5)
    assert texts(ahead.take(5, 0, 4, 2)) == ["0", "1"]
    assert texts(ahead.take(5, 2, 4, 0)) == ["2"]


def test_whoever_reads_elsewhere_lets_the_rest_go():
    for ledger_id, first in ((6, 0), (5, 2), (5, 99)):
        ahead, manager = ahead_with(3, 5)
        assert ahead.take(ledger_id, first, 100, 100) is None
        assert manager.used_bytes == 0
        assert ahead.take(5, 3, 100, 100) is None


def test_without_room_only_what_was_asked_for_is_kept():
    ahead, manager = ahead_with(3, 5, budget_bytes=0)
    assert texts(ahead.take(5, 3, 99, 100)) == ["3", "4"]
    assert ahead.take(5, 5, 99, 100) is None
    assert manager.used_bytes == 0


def test_what_is_kept_keeps_no_more_than_is_counted():
    stretch = bytes(1 << 20)
    packed = PackedEntries(stretch, 0, 1 << 10, 1 << 10)
    _, manager = ahead_with(0, 1)
    ahead = ReadAhead(manager)
    held = sys.getrefcount(stretch)

    run = EntryRun(5, 0, packed[:3])
    ahead.keep_at_least(run, 1)
    del run, packed

    assert sys.getrefcount(stretch) == held - 1
    assert len(ahead.take(5, 0, 99, 1 << 20)) == 3


def test_of_what_is_lent_all_that_is_kept_is_counted():
    stretch = bytes(4 * LENT_BYTES)
    packed = PackedEntries(stretch, 0, 4, LENT_BYTES)
    ahead, manager = ahead_with(0, 1, budget_bytes=1 << 30)
    ahead.clear()

    ahead.keep_at_least(EntryRun(5, 0, [*packed[:2], b"tiny"]), 1)

    assert manager.used_bytes == len(stretch) + 4 + 3 * ENTRY_OVERHEAD_BYTES
    ahead.clear()
    assert manager.used_bytes == 0
