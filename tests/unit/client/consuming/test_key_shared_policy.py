from __future__ import annotations

import pytest

from pulsar_py.client.consuming.key_shared_policy import (
    ConsumerKeySharedPolicy,
    KeyHashRange,
    covers,
    parse_ranges,
)
from pulsar_py.client.shared.enums import KeySharedMode
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.proto.PulsarApi_pb2 import KeySharedMode as WireKeySharedMode


def test_a_range_contains_the_keys_whose_hash_lies_within() -> None:
    # The slot of `a` is 27058, of `hello` 64071.
    assert KeyHashRange(27058, 27058).contains(b"a")
    assert not KeyHashRange(0, 27057).contains(b"a")
    assert covers([KeyHashRange(0, 1), KeyHashRange(64000, 65535)], b"hello")
    assert not covers([], b"hello")


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 4), (0, 65536)])
def test_ranges_lie_within_bounds(start: int, end: int) -> None:
    with pytest.raises(InvalidConfigurationError, match=rf"hash range {start}\.\.{end}"):
        KeyHashRange(start, end)


def test_ranges_are_sorted_and_must_not_overlap() -> None:
    assert parse_ranges([(10, 20), KeyHashRange(0, 9)], "x") == [
        KeyHashRange(0, 9),
        KeyHashRange(10, 20),
    ]
    with pytest.raises(InvalidConfigurationError, match=r"x: 0\.\.10 and 10\.\.20 overlap"):
        parse_ranges([(10, 20), (0, 10)], "x")


def test_the_default_leaves_it_to_the_broker() -> None:
    meta = ConsumerKeySharedPolicy(allow_out_of_order_delivery=True).to_meta()
    assert meta.keySharedMode == WireKeySharedMode.AUTO_SPLIT
    assert meta.allowOutOfOrderDelivery
    assert not meta.hashRanges


def test_sticky_names_its_ranges() -> None:
    meta = ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(0, 99)]).to_meta()
    assert meta.keySharedMode == WireKeySharedMode.STICKY
    assert [(each.start, each.end) for each in meta.hashRanges] == [(0, 99)]


def test_ranges_belong_to_sticky_and_only_there() -> None:
    with pytest.raises(InvalidConfigurationError, match="sticky_ranges"):
        ConsumerKeySharedPolicy(KeySharedMode.Sticky)
    with pytest.raises(InvalidConfigurationError, match="sticky_ranges"):
        ConsumerKeySharedPolicy(sticky_ranges=[(0, 99)])
