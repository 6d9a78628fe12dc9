from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.position import Position
from pulsar_py.server.dispatch.pending_acks import PendingAcks


def test_an_entry_is_pending_until_it_is_removed() -> None:
    pending = PendingAcks()
    assert pending.add((1, 0), 5) == 5
    assert Position(1, 0) in pending
    assert pending.remove(Position(1, 0)) == (5, 0)
    assert pending.remove((1, 0)) is None
    assert len(pending) == 0


def test_an_entry_sent_again_replaces_what_was_left_of_it() -> None:
    pending = PendingAcks()
    pending.add((1, 0), 5, 7)
    assert pending.add((1, 0), 2, 9) == -3
    assert pending.remaining((1, 0)) == 2
    assert dict(pending.hash_counts) == {9: 1}


def test_part_of_a_batch_shrinks_it() -> None:
    pending = PendingAcks()
    pending.add((1, 0), 5, 65535)
    assert pending.shrink((1, 0), 2) == 3
    assert pending.shrink((1, 0), 2) == 0
    assert pending.remove((1, 0)) == (2, 65535)


def test_hashes_are_counted_by_entry() -> None:
    pending = PendingAcks()
    pending.add((1, 0), 1, 7)
    pending.add((1, 1), 1, 7)
    pending.add((1, 2), 1, 8)
    pending.remove((1, 0))
    assert dict(pending.hash_counts) == {7: 1, 8: 1}
    pending.remove((1, 1))
    assert dict(pending.hash_counts) == {8: 1}
    pending.check()


@given(
    held=st.dictionaries(
        st.tuples(st.integers(1, 2), st.integers(0, 9)),
        st.tuples(st.integers(1, 2**31), st.integers(0, 3)),
    ),
    acknowledged=st.lists(st.tuples(st.integers(1, 2), st.integers(0, 9))),
    has_hashes=st.booleans(),
)
def test_settling_is_removing_each(
    held: dict[tuple[int, int], tuple[int, int]],
    acknowledged: list[tuple[int, int]],
    has_hashes: bool,  # noqa: FBT001
) -> None:
    pending, expected = PendingAcks(), PendingAcks()
    for position, (count, sticky_hash) in held.items():
        for each in (pending, expected):
            each.add(position, count, sticky_hash if has_hashes else 0)
    removed = [(position, expected.remove(position)) for position in acknowledged]
    settled = pending.settle(acknowledged)
    gone = [each for _, each in removed if each is not None]
    assert settled.messages_count == sum(count for count, _ in gone)
    assert list(settled.hashes) in ([sticky_hash for _, sticky_hash in gone], [])
    assert settled.hashes or not any(sticky_hash for _, sticky_hash in gone)
    assert list(settled.others) == [position for position, each in removed if each is None]
    assert list(pending) == list(expected)
    assert pending.hash_counts == expected.hash_counts
    pending.check()


def test_take_returns_only_what_was_pending() -> None:
    pending = PendingAcks()
    pending.add((1, 0), 1)
    pending.add((1, 1), 2)
    assert pending.take([(1, 1), (1, 9)]) == [((1, 1), 2, 0)]
    assert pending.take_all() == [((1, 0), 1, 0)]
    assert pending.messages_count == 0


def test_take_up_to_a_position_leaves_what_is_behind_it() -> None:
    pending = PendingAcks()
    for position in [(1, 5), (2, 0), (1, 7)]:
        pending.add(position, 1)
    assert sorted(key for key, _, _ in pending.take_up_to(Position(1, 7))) == [(1, 5), (1, 7)]
    assert list(pending) == [(2, 0)]


def test_clearing_forgets_entries_and_hashes() -> None:
    pending = PendingAcks()
    pending.add((1, 1), 1, sticky_hash=7)
    pending.clear()
    assert len(pending) == 0
    assert pending.hash_counts == {}
    pending.check()
