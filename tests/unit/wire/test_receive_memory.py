"""Memory to receive into: what large frames under way take has a bound."""

from __future__ import annotations

import pytest

from pulsar_py.wire.receive_memory import ReceiveMemory, new_memory


def test_large_frames_under_way_have_a_bound_together() -> None:
    memory = ReceiveMemory(unfinished_bytes_limit=100)

    assert len(memory.begin(60) or b"") == 60
    assert memory.begin(41) is None
    assert memory.begin(40) is not None
    assert memory.unfinished_bytes == 100

    memory.end(60)
    assert memory.begin(60) is not None


def test_more_can_not_end_than_began() -> None:
    with pytest.raises(AssertionError, match="ended than began"):
        ReceiveMemory().end(1)


def test_the_landing_has_the_size_of_the_largest_read() -> None:
    assert len(ReceiveMemory(landing_bytes=1000).landing) == 1000


def test_memory_comes_from_who_is_asked_to_give_it() -> None:
    asked = []

    def take(size: int) -> memoryview:
        asked.append(size)
        return new_memory(size)

    ReceiveMemory(take).begin(70)
    assert asked == [70]
