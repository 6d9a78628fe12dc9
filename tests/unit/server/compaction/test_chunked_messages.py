"""Which chunks are a message."""

from __future__ import annotations

import pytest

from pulsar_py.server.compaction.chunked_messages import ChunkedMessages
from pulsar_py.server.compaction.keyed_messages import ChunkPart


def added(*parts: tuple[str, int, int]) -> tuple[list[list[int] | None], list[list[int]]]:
    """What each chunk (uuid, id, count) completed, and what is left, by their numbers."""
    kept: list[list[int]] = []
    chunked = ChunkedMessages(lambda numbers: kept.append(list(numbers)), memory_bytes=1 << 20)
    completed = [chunked.add(ChunkPart(*part), number) for number, part in enumerate(parts)]
    chunked.keep_incomplete()
    assert not chunked.has_let_go
    return completed, kept


def test_the_last_chunk_completes_its_message_alone() -> None:
    completed, left = added(("u", 0, 3), ("v", 0, 2), ("u", 1, 3), ("v", 1, 2), ("u", 2, 3))
    assert completed == [None, None, None, [1, 3], [0, 2, 4]]
    assert left == []


@pytest.mark.parametrize(
    ("parts", "completed", "left"),
    [
        ([("u", 1, 2)], [None], []),  # its begin is gone
        ([("u", 0, 3), ("u", 2, 3)], [None, None], [[0]]),  # one is skipped
        ([("u", 0, 2), ("u", -1, 2)], [None, None], [[0]]),
        ([("u", 0, 3), ("u", 1, 3), ("u", 1, 3), ("u", 2, 3)], [None, None, None, [0, 1, 3]], []),
        ([("u", 0, 2), ("u", 0, 2), ("u", 1, 2)], [None, None, [1, 2]], []),  # begun anew
        ([("u", 0, 2), ("u", 1, 2), ("u", 1, 2)], [None, [0, 1], None], []),  # sent again
    ],
)
def test_a_chunk_out_of_order_is_no_part(
    parts: list[tuple[str, int, int]], completed: list[list[int] | None], left: list[list[int]]
) -> None:
    assert added(*parts) == (completed, left)


def test_messages_without_their_end_are_left_each_by_itself() -> None:
    _, left = added(("u", 0, 3), ("v", 0, 2), ("u", 1, 3))
    assert left == [[0, 2], [1]]


def test_incomplete_messages_beyond_the_bound_are_let_go_the_oldest_first() -> None:
    kept: list[int] = []
    chunked = ChunkedMessages(kept.extend, memory_bytes=1000)
    for number in range(10):
        assert chunked.add(ChunkPart(f"{number}", 0, 2), number) is None
    assert kept == list(range(7))
    assert chunked.has_let_go
    assert chunked.add(ChunkPart("0", 1, 2), 10) is None
    assert kept.pop() == 10, "it may be the end of one that was let go"
    assert chunked.add(ChunkPart("9", 1, 2), 11) == [9, 11]


def test_what_is_complete_takes_no_memory() -> None:
    kept: list[int] = []
    chunked = ChunkedMessages(kept.extend, memory_bytes=400)
    for number in range(1000):
        chunked.add(ChunkPart("same" * (number % 5), 0, 3), number)
        chunked.add(ChunkPart("same" * (number % 5), 0, 2), number)
        assert chunked.add(ChunkPart("same" * (number % 5), 1, 2), number) == [number, number]
    assert not chunked.has_let_go


def test_one_message_of_very_many_chunks_is_bounded_too() -> None:
    kept: list[int] = []
    chunked = ChunkedMessages(kept.extend, memory_bytes=1000)
    for number in range(100):
        assert chunked.add(ChunkPart("u", number, 1000), number) is None
    assert kept == list(range(100)), "none of it is lost"
