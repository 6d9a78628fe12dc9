from __future__ import annotations

from collections.abc import Callable

from pulsar_py.server.dispatch.draining_hashes import DrainingHash, DrainingHashes


class Holder:
    def __init__(self, **counts: int) -> None:
        self.pending_hash_counts = {int(key[1:]): count for key, count in counts.items()}


def always(holder: Holder) -> Callable[[int], Holder]:
    return lambda _: holder


def test_a_hash_with_pending_entries_drains_when_it_moves() -> None:
    a, b = Holder(h7=2), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    assert draining.refuses(7, b)
    assert not draining.refuses(7, a)
    assert not draining.refuses(8, b)
    assert draining.draining_from(a) == [DrainingHash(7, unacked_entries_count=2, refused_count=1)]


def test_draining_ends_with_the_last_entry_and_tells_if_somebody_waits() -> None:
    a, b = Holder(h7=2), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    draining.refuses(7, b)
    a.pending_hash_counts[7] = 1
    assert not draining.on_released(a, 7)
    del a.pending_hash_counts[7]
    assert draining.on_released(a, 7)
    assert not draining.refuses(7, b)
    assert draining.cleared_total(a) == 1


def test_nobody_is_woken_for_a_hash_that_blocked_nobody() -> None:
    a, b = Holder(h7=1), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    a.pending_hash_counts.clear()
    assert not draining.on_released(a, 7)


def test_a_hash_that_comes_back_stops_draining() -> None:
    a, b = Holder(h7=1), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    draining.refuses(7, b)
    assert draining.reassign([a], always(a))
    assert len(draining) == 0


def test_a_consumer_that_leaves_drains_nothing_any_more() -> None:
    a, b = Holder(h7=1, h8=1), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    draining.refuses(8, b)
    assert draining.on_consumer_removed(a)
    assert not draining.refuses(7, b)


def test_the_first_holder_keeps_a_hash_that_moves_twice() -> None:
    a, b, c = Holder(h7=1), Holder(), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    draining.reassign([a, b, c], always(c))
    assert draining.owner(7) is a
    assert draining.refuses(7, b)
    assert draining.refuses(7, c)


def test_clear_forgets_all() -> None:
    a, b = Holder(h7=1), Holder()
    draining: DrainingHashes[Holder] = DrainingHashes()
    draining.reassign([a, b], always(b))
    draining.clear()
    assert not draining.refuses(7, b)
