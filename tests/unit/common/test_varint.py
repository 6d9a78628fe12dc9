from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.varint import after_varint, rising_varints, varint, varint_at, varints_in_row
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


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**63 - 1, 2**64 - 1])
def test_numbers_are_read_where_they_begin(number: int) -> None:
    encoded = varint(number)
    data = b"\xff" + encoded + b"\x01"
    end = 1 + len(encoded)

    assert varint_at(data, 1, end) == varint_at(data, 1, len(data) + 9) == (number, end)
    assert varint_at(data, 1, end - 1)[0] == -1
    assert after_varint(data, 1) == end


def test_a_number_that_the_data_cut_off_is_none() -> None:
    assert varint_at(b"\x80\x80", 0, 10)[0] == -1
    with pytest.raises(IndexError):
        after_varint(b"\x80\x80", 0)
