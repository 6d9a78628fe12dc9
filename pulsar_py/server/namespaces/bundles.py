"""`Bundles`: the parts of a namespace, each owned by one broker (pure).

A namespace's 32-bit hash space 0x00000000..0xffffffff is cut at boundaries; a bundle is
`[lower, upper)`, the last one includes its upper end. A topic is in the bundle that holds the
CRC32 (IEEE) of its full name, partition suffix included.

Source: NamespaceBundles, NamespaceBundleFactory in Pulsar's broker.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from pulsar_py.common.names import TopicName

FULL_UPPER = 0xFFFFFFFF
MAX_BUNDLES: Final = 4096
"""Of one namespace, however often it is split."""


def topic_hash(full_name: str) -> int:
    """A topic's hash in its namespace, 0..2^32-1."""
    return zlib.crc32(full_name.encode())


class Bundles(Struct, frozen=True):
    """The bundles of one namespace: `boundaries` ascend from 0 to 2^32-1."""

    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse boundaries that leave a topic without a bundle.

        Raises:
            ValueError: They don't ascend from 0 to 2^32-1.
        """
        numbers = self.boundaries
        ascends = all(a < b for a, b in pairwise(numbers))
        covers = len(numbers) > 1 and numbers[0] == 0 and numbers[-1] == FULL_UPPER
        if not (ascends and covers):
            raise ValueError(f"bundle boundaries {numbers} do not cover the hash space")

    @property
    def names(self) -> list[str]:
        """All bundles, `0x00000000_0x40000000` first."""
        numbers = self.boundaries
        return [_name(lower, upper) for lower, upper in pairwise(numbers)]

    def split(self, name: str, places: Sequence[int]) -> Bundles:
        """The bundles with one of them cut at hashes inside it.

        Raises:
            ValueError: There is no such bundle, or a place is not inside it.
        """
        if name not in self.names:
            raise ValueError(f"there is no bundle {name}, only {', '.join(self.names)}")
        lower, upper = bundle_range(name)
        if not places or not all(lower < place < min(upper, FULL_UPPER) for place in places):
            raise ValueError(f"{list(places)} are not places inside the bundle {name}")
        return Bundles(tuple(sorted({*self.boundaries, *places})))

    def bundle_of(self, full_name: str) -> str:
        """The bundle of a topic."""
        return self.bundle_at(topic_hash(full_name))

    def bundle_at(self, hash_value: int) -> str:
        """The bundle that holds a hash."""
        index = min(bisect_right(self.boundaries, hash_value), len(self.boundaries) - 1)
        return _name(self.boundaries[index - 1], self.boundaries[index])


def bundle_range(name: str) -> tuple[int, int]:
    """The first hash of a bundle, and the end of its range (exclusive).

    Raises:
        ValueError: The text is not a bundle's name.
    """
    lower, separator, upper = name.partition("_")
    if not separator:
        raise ValueError(f"{name!r} is not a bundle: expected 0x<lower>_0x<upper>")
    end = int(upper, 16)
    return int(lower, 16), end + 1 if end == FULL_UPPER else end


def in_bundle(bundle: str) -> Callable[[TopicName], bool]:
    """Whether a topic of its namespace belongs to a bundle."""
    lower, upper = bundle_range(bundle)
    return lambda name: lower <= topic_hash(str(name)) < upper


def _name(lower: int, upper: int) -> str:
    return f"0x{lower:08x}_0x{upper:08x}"
