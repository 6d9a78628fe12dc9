"""Which chunks are a message."""

from __future__ import annotations

import pytest

from pulsar_py.server.compaction.chunked_messages import ChunkedMessages
from pulsar_py.server.compaction.keyed_messages import ChunkPart


def added(*parts: tuple[str, int, int]) -> tuple[list[list[int] | None], list[list[int]]]:
    """What each chunk (uuid, id, count) completed, and what is left, by their numbers."""
    chunked = ChunkedMessages()
    completed = [chunked.add(ChunkPart(*part), number) for number, part in enumerate(parts)]
    return completed, chunked.incomplete()


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
