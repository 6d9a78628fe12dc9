from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.varint import rising_varints, varint, varints_in_row
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 16_383, 16_384, 2**35, 2**63, 2**64 - 1])
def test_it_is_what_protobuf_writes(number: int) -> None:
    data = MessageIdData(ledgerId=number, entryId=0).SerializeToString()
    assert data == b"\x08" + varint(number) + b"\x10\x00"


@pytest.mark.parametrize("first", [0, 100, 127, 128, 250, 16_300, 2**35 - 3, 2**63 - 700])
@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_numbers_in_a_row_are_encoded_as_each_alone(first: int, count: int) -> None:
    expected = [varint(number) for number in range(first, first + count)]
    assert varints_in_row(first, count) == expected


NUMBERS = st.integers(0, 2**63 - 1) | st.integers(0, 300)


@given(NUMBERS, NUMBERS)
def test_those_of_two_that_rise_are_the_same(one: int, other: int) -> None:
    for first, second in ((one, other), (one ^ 1, other ^ 1)):  # and the ones before or behind them
        assert rising_varints(first, second) == (varint(first), varint(second))
