from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.client.acknowledging.ack_grouping import (
    CHUNKED_MESSAGES_LIMIT,
    FOREIGN_BATCHES_LIMIT,
    AckGroup,
    AcknowledgmentsGroupingTracker,
    NoAcknowledgmentsTracker,
)
from pulsar_py.common.message_id import MessageId
from tests.unit.client.entries import entry


def test_a_plain_message_is_done_at_once() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    assert tracker.is_empty
    assert tracker.acknowledge(entry((1, 5)), -1)
    assert tracker.take() == AckGroup(None, {(1, 5): 0})
    assert tracker.is_empty


def test_a_batch_is_done_with_its_last_message() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    batch = entry((1, 5), batch_size=3)
    assert not tracker.acknowledge(batch, 2)
    assert not tracker.acknowledge(batch, 0)
    assert tracker.is_empty
    assert not tracker.acknowledge(batch, 0)
    assert tracker.acknowledge(batch, 1)
    assert tracker.take().individual == {(1, 5): 0}


def test_batch_index_acknowledgements_say_what_still_waits() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    batch = entry((1, 5), batch_size=3)
    tracker.acknowledge(batch, 0)
    assert tracker.take().individual == {(1, 5): 0b110}
    tracker.acknowledge(batch, 2)
    tracker.acknowledge(batch, 1)
    assert tracker.take().individual == {(1, 5): 0}


def test_all_chunks_are_acknowledged_with_their_message() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    tracker.acknowledge(entry((1, 7), chunk_ids=((1, 5), (1, 7))), -1)
    assert tracker.take().individual == {(1, 5): 0, (1, 7): 0}


def test_ids_from_elsewhere_complete_a_batch_together() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    assert not tracker.acknowledge_id(MessageId(1, 5, batch_index=0, batch_size=2))
    assert tracker.is_empty
    assert tracker.acknowledge_id(MessageId(1, 5, batch_index=1, batch_size=2))
    assert tracker.take().individual == {(1, 5): 0}
    first = MessageId(1, 6)
    assert tracker.acknowledge_id(MessageId(1, 8, first_chunk=first))
    assert tracker.take().individual == {(1, 6): 0, (1, 8): 0}


def test_ids_from_elsewhere_name_all_chunks_of_a_message_that_was_handed_out() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    chunks = ((1, 5), (1, 6), (1, 7))
    elsewhere = MessageId(1, 7, first_chunk=MessageId(1, 5))
    tracker.remember_chunks((1, 7), chunks)
    assert tracker.entries_of(elsewhere) == tracker.entries_of(MessageId(1, 7)) == chunks
    assert tracker.acknowledge_id(elsewhere)
    assert tracker.take().individual == dict.fromkeys(chunks, 0)
    assert tracker.entries_of(elsewhere) == ((1, 5), (1, 7)), "not known any more"


def test_chunks_are_forgotten_with_their_message() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    for entry_id in (3, 7, 9):
        tracker.remember_chunks((1, entry_id), ((1, entry_id - 1), (1, entry_id)))
    tracker.acknowledge(entry((1, 3), chunk_ids=((1, 2), (1, 3))), -1)
    tracker.acknowledge_cumulative(MessageId(1, 8))
    known = [len(tracker.entries_of(MessageId(1, entry_id))) for entry_id in (3, 7, 9)]
    assert known == [1, 1, 2]
    tracker.clear()
    assert len(tracker.entries_of(MessageId(1, 9))) == 1
    for entry_id in range(CHUNKED_MESSAGES_LIMIT + 1):
        tracker.remember_chunks((2, entry_id), ((1, 0), (2, entry_id)))
    assert len(tracker.entries_of(MessageId(2, 0))) == 1
    assert len(tracker.entries_of(MessageId(2, 1))) == 2


def test_batch_indexes_of_both_kinds_of_ids_add_up() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    tracker.acknowledge_id(MessageId(1, 5, batch_index=0, batch_size=4))
    tracker.acknowledge(entry((1, 5), batch_size=4), 1)
    assert tracker.take().individual == {(1, 5): 0b1100}


def test_what_was_sent_can_be_forgotten_and_what_was_not_stays() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    tracker.acknowledge_cumulative(MessageId(1, 5))
    tracker.forget_sent()
    assert tracker.still_waiting((1, 4), 1) == 0
    tracker.take()
    tracker.forget_sent()
    assert tracker.still_waiting((1, 4), 1) == 1


def test_ids_from_elsewhere_are_forgotten_beyond_a_limit() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    for entry_id in range(FOREIGN_BATCHES_LIMIT + 1):
        tracker.acknowledge_id(MessageId(1, entry_id, batch_index=0, batch_size=2))
    assert not tracker.acknowledge_id(MessageId(1, 0, batch_index=1, batch_size=2))
    assert tracker.acknowledge_id(MessageId(1, 500, batch_index=1, batch_size=2))


def test_ids_from_elsewhere_with_batch_indexes() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    tracker.acknowledge_id(MessageId(1, 5, batch_index=0, batch_size=3))
    tracker.acknowledge_id(MessageId(1, 5, batch_index=1, batch_size=3))
    assert tracker.take().individual == {(1, 5): 0b100}


def test_the_furthest_cumulative_acknowledgement_counts() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    assert tracker.acknowledge_cumulative(MessageId(1, 5)) == (1, 5)
    assert tracker.acknowledge_cumulative(MessageId(1, 9)) == (1, 9)
    assert tracker.acknowledge_cumulative(MessageId(1, 7)) is None
    assert tracker.take().cumulative == ((1, 9), 0)
    assert tracker.is_empty
    assert tracker.acknowledge_cumulative(MessageId(1, 9)) is None


@given(
    st.integers(1, 2**12 - 1),
    st.lists(st.one_of(st.just(None), st.integers(0, 11)), max_size=40),
)
def test_any_order_of_acknowledgements_ends_with_the_last_one(
    wanted: int, indexes: list[int | None]
) -> None:
    """None: the next in order, as an application does it that receives and acknowledges."""
    tracker = AcknowledgmentsGroupingTracker()
    batch = entry((1, 5), batch_size=12)
    batch.unacked_bits = left = wanted
    for chosen in indexes:
        in_order = [i for i in range(12) if left >> i & 1]
        index = chosen if chosen is not None else (in_order or [0])[0]
        if not wanted >> index & 1:
            continue  # nobody was given that one
        left &= ~(1 << index)
        assert tracker.acknowledge(batch, index) is (left == 0)
        assert batch.unacked_bits == left
        assert tracker.is_empty is (left != 0)


@given(
    st.integers(1, 2**12 - 1),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), max_size=12),
    st.booleans(),
)
def test_acknowledgements_in_order_are_those_of_each(
    wanted: int,
    runs: list[tuple[int, int]],
    is_batch_index_enabled: bool,  # noqa: FBT001
) -> None:
    trackers = [
        AcknowledgmentsGroupingTracker(is_batch_index_enabled=is_batch_index_enabled)
        for _ in range(2)
    ]
    batches = [entry((1, 5), batch_size=12) for _ in range(2)]
    for each in batches:
        each.unacked_bits = wanted
    for start, count in runs:
        indexes = [i for i in range(12) if wanted >> i & 1][start : start + count]
        if not indexes:
            continue
        by_each = [trackers[0].acknowledge(batches[0], index) for index in indexes]
        done = trackers[1].count_in_order(batches[1], indexes)
        rest = [trackers[1].acknowledge(batches[1], index) for index in indexes[done:]]
        assert [False] * done + rest == by_each
        assert batches[1].unacked_bits == batches[0].unacked_bits
    assert trackers[1].take() == trackers[0].take()


def test_many_acknowledgements_in_order_are_counted() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    batch = entry((1, 5), batch_size=3)
    assert tracker.count_in_order(batch, [0, 1, 2]) == 2
    assert tracker.is_empty
    assert tracker.acknowledge(batch, 2)
    assert tracker.take().individual == {(1, 5): 0}
    for other in (
        AcknowledgmentsGroupingTracker(is_batch_index_enabled=True),
        NoAcknowledgmentsTracker(),
    ):
        assert other.count_in_order(entry((1, 6), batch_size=3), [0, 1]) == 0


def test_cumulative_within_a_batch_means_the_entry_before() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    middle = MessageId(1, 5, batch_index=1, batch_size=3)
    assert tracker.acknowledge_cumulative(middle) == (1, 4)
    last = MessageId(1, 5, batch_index=2, batch_size=3)
    assert tracker.acknowledge_cumulative(last) == (1, 5)


def test_cumulative_within_a_batch_with_batch_indexes() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    batch = entry((1, 5), batch_size=4)
    assert tracker.acknowledge_cumulative(batch.message_id(1)) == (1, 4)
    assert tracker.take().cumulative == ((1, 5), 0b1100)
    assert batch.unacked_bits == 0b1100
    tracker.acknowledge_cumulative(batch.message_id(2))
    assert tracker.take().cumulative == ((1, 5), 0b1000)
    assert tracker.acknowledge_cumulative(batch.message_id(0)) is None


def test_a_cumulative_acknowledgement_covers_individual_ones() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    for entry_id in (3, 5, 6):
        tracker.acknowledge(entry((1, entry_id)), -1)
    tracker.acknowledge_cumulative(MessageId(1, 5))
    assert tracker.take() == AckGroup(((1, 5), 0), {(1, 5): 0, (1, 6): 0})


def test_what_is_acknowledged_is_not_wanted_again() -> None:
    tracker = AcknowledgmentsGroupingTracker(is_batch_index_enabled=True)
    tracker.acknowledge(entry((1, 8)), -1)
    tracker.acknowledge(entry((1, 9), batch_size=3), 1)
    tracker.acknowledge_cumulative(MessageId(1, 5))
    assert tracker.still_waiting((1, 8), 1) == 0
    assert tracker.still_waiting((1, 9), 0b111) == 0b101
    assert tracker.still_waiting((1, 5), 0b111) == 0
    assert tracker.still_waiting((0, 9), 1) == 0
    assert tracker.still_waiting((1, 6), 1) == 1


def test_what_was_sent_is_wanted_again_save_what_was_cumulative() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    tracker.acknowledge(entry((1, 8)), -1)
    tracker.acknowledge_cumulative(MessageId(1, 5))
    tracker.take()
    assert tracker.still_waiting((1, 8), 1) == 1
    assert tracker.is_empty
    assert tracker.still_waiting((1, 4), 1) == 0
    assert tracker.take().cumulative == ((1, 5), 0), "it was lost: sent again"


def test_it_is_full_by_entries() -> None:
    tracker = AcknowledgmentsGroupingTracker(max_size=2)
    tracker.acknowledge(entry((1, 0)), -1)
    assert not tracker.is_full
    tracker.acknowledge_entries([(1, 1)])
    assert tracker.is_full


def test_clear_forgets_everything() -> None:
    tracker = AcknowledgmentsGroupingTracker()
    tracker.acknowledge(entry((1, 8)), -1)
    tracker.acknowledge_cumulative(MessageId(1, 9))
    tracker.clear()
    assert tracker.is_empty
    assert tracker.still_waiting((1, 8), 1) == 1


def test_non_persistent_topics_have_nothing_to_send() -> None:
    tracker = NoAcknowledgmentsTracker()
    batch = entry((0, 0), batch_size=2)
    assert not tracker.acknowledge(batch, 0)
    assert tracker.acknowledge(batch, 1)
    assert tracker.acknowledge(entry((0, 1)), -1)
    assert tracker.acknowledge_id(MessageId(0, 0))
    assert tracker.acknowledge_cumulative(MessageId(0, 3)) == (0, 3)
    tracker.acknowledge_entries([(0, 0)])
    assert tracker.is_empty
    assert not tracker.is_full
    assert tracker.take() == AckGroup()
    tracker.clear()
    assert tracker.still_waiting((0, 0), 0b11) == 0b11
