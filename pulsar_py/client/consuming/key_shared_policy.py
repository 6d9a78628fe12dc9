"""Key_Shared policies: how the hash range of keys is divided among consumers (values).

With `AutoSplit` the broker spreads the hash range over the consumers of the subscription; with
`Sticky` each consumer names ranges of its own, and keys that no range covers wait. A hash is
`murmur3_32(key) % 65536`.

Source: KeySharedPolicy, Range and KeySharedMeta in Pulsar; `ConsumerKeySharedPolicy` in the
official Python client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.client.shared.enums import KeySharedMode
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.hashing import murmur3_32
from pulsar_py.proto.PulsarApi_pb2 import IntRange, KeySharedMeta
from pulsar_py.proto.PulsarApi_pb2 import KeySharedMode as WireKeySharedMode

__all__ = [
    "HASH_RANGE_SIZE",
    "ConsumerKeySharedPolicy",
    "KeyHashRange",
    "covers",
    "parse_ranges",
]

HASH_RANGE_SIZE: Final = 65536
"""Hashes are 0 to 65535."""


@dataclass(frozen=True, slots=True, order=True)
class KeyHashRange:
    """Hashes from `start` to `end`, both included."""

    start: int
    """0 to 65535."""
    end: int
    """`start` to 65535."""

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 <= self.start <= self.end < HASH_RANGE_SIZE:
            raise InvalidConfigurationError(
                f"hash range {self.start}..{self.end}: expected one within 0..{HASH_RANGE_SIZE - 1}"
            )

    def contains(self, key: bytes) -> bool:
        """Whether the key's hash lies within."""
        return self.start <= murmur3_32(key) % HASH_RANGE_SIZE <= self.end


@dataclass(frozen=True, slots=True)
class ConsumerKeySharedPolicy:
    """How a Key_Shared consumer takes part in its subscription.

    `sticky_ranges` are pairs, both ends included; they are needed with `Sticky`, and only there.
    """

    key_shared_mode: KeySharedMode = KeySharedMode.AutoSplit
    """Whether the broker divides the hashes, or each consumer names its own."""
    allow_out_of_order_delivery: bool = False
    """Whether a key's messages may go to a new consumer before the former one of that key has
    acknowledged its own."""
    sticky_ranges: Sequence[tuple[int, int] | KeyHashRange] | None = None
    """The hash ranges of this consumer; with `Sticky` only."""

    def __post_init__(self) -> None:
        check_options(self)
        is_sticky = self.key_shared_mode is KeySharedMode.Sticky
        if is_sticky and not self.sticky_ranges:
            raise InvalidConfigurationError(
                "sticky_ranges: KeySharedMode.Sticky needs at least one range"
            )
        if not is_sticky and self.sticky_ranges:
            raise InvalidConfigurationError(
                f"sticky_ranges: {self.sticky_ranges} need KeySharedMode.Sticky, not AutoSplit"
            )
        parse_ranges(self.sticky_ranges or (), "sticky_ranges")

    def to_meta(self) -> KeySharedMeta:
        """The `keySharedMeta` of SUBSCRIBE."""
        ranges = parse_ranges(self.sticky_ranges or (), "sticky_ranges")
        return KeySharedMeta(
            keySharedMode=(WireKeySharedMode.STICKY if ranges else WireKeySharedMode.AUTO_SPLIT),
            allowOutOfOrderDelivery=self.allow_out_of_order_delivery,
            hashRanges=[IntRange(start=each.start, end=each.end) for each in ranges],
        )


def parse_ranges(
    ranges: Iterable[tuple[int, int] | KeyHashRange], option: str
) -> list[KeyHashRange]:
    """The ranges, checked and sorted.

    Raises:
        InvalidConfigurationError: One is out of bounds, or two overlap; names the option.
    """
    parsed = sorted(
        each if isinstance(each, KeyHashRange) else KeyHashRange(*each) for each in ranges
    )
    for lower, upper in pairwise(parsed):
        if upper.start <= lower.end:
            raise InvalidConfigurationError(
                f"{option}: {lower.start}..{lower.end} and {upper.start}..{upper.end} overlap"
            )
    return parsed


def covers(ranges: Iterable[KeyHashRange], key: bytes) -> bool:
    """Whether one of the ranges has the key's hash."""
    return any(each.contains(key) for each in ranges)
