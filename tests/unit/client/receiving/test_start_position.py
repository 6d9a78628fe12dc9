from __future__ import annotations

import pytest

from pulsar_py.client.receiving.start_position import StartPosition, before
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId


@pytest.mark.parametrize("start", [EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID])
def test_earliest_and_latest_leave_nothing_out(start: MessageId) -> None:
    assert StartPosition(start).wanted((3, 0), 1, 0) == 1


def test_a_plain_message_is_left_out_unless_included() -> None:
    after, at = StartPosition(MessageId(3, 5)), StartPosition(MessageId(3, 5), is_inclusive=True)
    assert [after.wanted((3, entry_id), 1, 0) for entry_id in (5, 6)] == [0, 1]
    assert [at.wanted((3, entry_id), 1, 0) for entry_id in (5, 6)] == [1, 1]
    assert after.wanted((4, 0), 1, 0) == 1


def test_what_comes_from_before_is_wanted_unless_it_was_read() -> None:
    moved = StartPosition(MessageId(3, 5))
    assert [moved.wanted(key, 1, 0) for key in ((2, 9), (3, 4))] == [1, 1]
    read = StartPosition(MessageId(3, 5), is_floor=True)
    assert [read.wanted(key, 1, 0) for key in ((2, 9), (3, 4), (3, 5), (3, 6))] == [0, 0, 0, 1]


def test_within_a_batch_the_index_counts() -> None:
    start = MessageId(3, 5, batch_index=1, batch_size=4)
    assert StartPosition(start).wanted((3, 5), 0b1111, 4) == 0b1100
    assert StartPosition(start, is_inclusive=True).wanted((3, 5), 0b1111, 4) == 0b1110


def test_before_a_message() -> None:
    assert before((3, 5), 2, 4) == MessageId(3, 5, batch_index=1)
    assert before((3, 5), 0, 4) == MessageId(3, 4)
    assert before((3, 5), -1, 0) == MessageId(3, 4)
