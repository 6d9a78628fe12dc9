"""Where a bundle is cut."""

from __future__ import annotations

import pytest

from pulsar_py.server.namespaces.splitting import SplitInput, split_places

LOWER, UPPER = 0x40000000, 0x80000000


def places(
    algorithm: str, *topics: tuple[int, float], positions: tuple[int, ...] = ()
) -> list[int]:
    bundle = SplitInput(lower=LOWER, upper=UPPER, topics=topics, positions=positions)
    return split_places(algorithm, bundle)


def test_a_range_is_cut_in_the_middle() -> None:
    assert places("range_equally_divide") == [0x60000000]
    last = SplitInput(lower=0xC0000000, upper=0xFFFFFFFF)
    assert split_places("range_equally_divide", last) == [0xDFFFFFFF]
    assert split_places("range_equally_divide", SplitInput(lower=5, upper=6)) == []


def test_topics_are_halved_by_their_number() -> None:
    topics = [(LOWER + each, 0.0) for each in (1, 2, 3, 100, 200)]
    (place,) = places("topic_count_equally_divide", *topics)
    assert sum(place <= each for each, _ in topics) == 3
    assert places("topic_count_equally_divide", topics[0]) == []
    assert places("topic_count_equally_divide", (LOWER, 0), (LOWER + 1, 0)) == [LOWER + 1]


def test_topics_are_halved_by_their_traffic() -> None:
    topics = [(LOWER + 10, 90.0), (LOWER + 20, 30.0), (LOWER + 30, 60.0)]
    (place,) = places("flow_or_qps_equally_divide", *topics)
    assert LOWER + 10 < place <= LOWER + 20
    assert places("flow_or_qps_equally_divide", *((each, 0.0) for each, _ in topics)) == []


def test_positions_are_taken_where_they_are_inside() -> None:
    wanted = (UPPER, LOWER, LOWER + 2, LOWER + 1, LOWER + 2, 0)
    assert places("specified_positions_divide", positions=wanted) == [LOWER + 1, LOWER + 2]


def test_an_unknown_algorithm() -> None:
    with pytest.raises(KeyError):
        places("by_mood")
