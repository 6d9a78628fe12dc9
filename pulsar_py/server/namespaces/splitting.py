"""Chooses the hash at which a bundle is split, by Pulsar's algorithms (pure).

Each algorithm takes the bundle's range and what is in it, and gives the hashes at which new bundles
begin; none if there is no place to cut.

    range_equally_divide          the middle of the range
    topic_count_equally_divide    as many topics on either side
    specified_positions_divide    the places that the caller names, if they are inside the range
    flow_or_qps_equally_divide    as much throughput on either side

Source: NamespaceBundleSplitAlgorithm and its implementations in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

DEFAULT_ALGORITHM: Final = "range_equally_divide"


class SplitInput(Struct, frozen=True, kw_only=True):
    """A bundle and what is in it."""

    lower: int
    upper: int
    """The boundaries that name it; none of them is a place to cut."""
    topics: Sequence[tuple[int, float]] = ()
    """Hash and throughput in bytes a second of each topic, by hash."""
    positions: Sequence[int] = ()
    """The hashes that the caller named."""


def _by_range(bundle: SplitInput) -> list[int]:
    return [bundle.lower + (bundle.upper - bundle.lower) // 2]


def _by_topic_count(bundle: SplitInput) -> list[int]:
    if len(bundle.topics) < 2:  # noqa: PLR2004 - one on either side
        return []
    half = len(bundle.topics) // 2
    return [_between(bundle.topics[half - 1][0], bundle.topics[half][0])]


def _by_positions(bundle: SplitInput) -> list[int]:
    return sorted(set(bundle.positions))


def _by_flow(bundle: SplitInput) -> list[int]:
    sums = list(accumulate(flow for _, flow in bundle.topics))
    if len(sums) < 2 or not sums[-1]:  # noqa: PLR2004 - one on either side
        return []
    # Cut behind the topic up to which the sum is nearest to half of all.
    index = min(range(len(sums) - 1), key=lambda each: abs(2 * sums[each] - sums[-1]))
    return [_between(bundle.topics[index][0], bundle.topics[index + 1][0])]


def _between(left: int, right: int) -> int:
    """A place to cut so that `left` is before it and `right` behind, if they differ."""
    return left + (right - left + 1) // 2


ALGORITHMS: Final[dict[str, Callable[[SplitInput], list[int]]]] = {
    DEFAULT_ALGORITHM: _by_range,
    "topic_count_equally_divide": _by_topic_count,
    "specified_positions_divide": _by_positions,
    "flow_or_qps_equally_divide": _by_flow,
}


def split_places(algorithm: str, bundle: SplitInput) -> list[int]:
    """The hashes at which the new bundles begin, ascending; none if it can't be cut.

    Raises:
        KeyError: There is no such algorithm.
    """
    places = ALGORITHMS[algorithm](bundle)
    return [each for each in places if bundle.lower < each < bundle.upper]
