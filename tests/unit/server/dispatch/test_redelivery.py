from __future__ import annotations

from pulsar_py.server.dispatch.redelivery import RedeliveryController


def test_the_lowest_positions_come_first() -> None:
    redelivery = RedeliveryController()
    for position in [(2, 0), (1, 7), (1, 3)]:
        redelivery.add(position)
    assert redelivery.lowest == (1, 3)
    assert redelivery.select(2) == [(1, 3), (1, 7)]
    assert len(redelivery) == 3


def test_select_passes_over_what_is_not_accepted() -> None:
    redelivery = RedeliveryController()
    redelivery.add((1, 0), 5)
    redelivery.add((1, 1), 6)
    redelivery.add((1, 2), 5)
    assert redelivery.select(9, lambda _, sticky_hash: sticky_hash == 5) == [(1, 0), (1, 2)]


def test_a_hash_waits_as_long_as_an_entry_of_it_does() -> None:
    redelivery = RedeliveryController()
    redelivery.add((1, 0), 5)
    redelivery.add((1, 1), 5)
    redelivery.discard((1, 0))
    assert redelivery.has_hash(5)
    redelivery.discard((1, 1))
    assert not redelivery.has_hash(5)
    redelivery.check()


def test_a_hash_learnt_later_is_kept_and_not_forgotten() -> None:
    redelivery = RedeliveryController()
    redelivery.add((1, 0))
    redelivery.add((1, 0), 5)
    redelivery.add((1, 0))
    assert redelivery.has_hash(5)
    redelivery.check()


def test_counts_grow_and_are_forgotten_on_acknowledgement() -> None:
    redelivery = RedeliveryController()
    redelivery.count_redelivery([(1, 0), (1, 1)])
    redelivery.count_redelivery([(1, 0)])
    assert redelivery.redelivery_count((1, 0)) == 2
    redelivery.forget([(1, 0)])
    assert redelivery.redelivery_count((1, 0)) == 0
    assert redelivery.has_counts


def test_everything_up_to_the_mark_delete_position_is_dropped() -> None:
    redelivery = RedeliveryController()
    for entry_id in range(4):
        redelivery.add((1, entry_id), 5)
    redelivery.count_redelivery([(1, 0), (1, 3)])
    redelivery.discard_up_to((1, 2))
    assert redelivery.select(9) == [(1, 3)]
    assert redelivery.redelivery_count((1, 0)) == 0
    assert redelivery.redelivery_count((1, 3)) == 1


def test_clear_forgets_all() -> None:
    redelivery = RedeliveryController()
    redelivery.add((1, 0), 5)
    redelivery.count_redelivery([(1, 0)])
    redelivery.clear()
    assert (len(redelivery), redelivery.lowest, redelivery.has_counts) == (0, None, False)
    assert not redelivery.has_hash(5)


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    taken = [((1, entry_id % 300), 1, entry_id % 7) for entry_id in range(300, 0, -1)]
    many, single = RedeliveryController(), RedeliveryController()
    for redelivery in (many, single):
        redelivery.add((1, 5), 9)  # waits already, under another hash
        redelivery.add((1, 7))  # ... or under none
    many.add_all(taken)
    for position, _, sticky_hash in taken:
        single.add(position, sticky_hash)
    many.check()
    assert many.select(1000) == single.select(1000)
    for sticky_hash in range(10):
        assert many.has_hash(sticky_hash) == single.has_hash(sticky_hash)
