from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.zookeeper import jute


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers_are_read_as_they_were_written(small: int, large: int) -> None:
    reader = jute.RecordReader(jute.int32(small) + jute.int64(large))
    assert (reader.int32(), reader.int64(), reader.remaining_count) == (small, large, 0)


@given(
    value=st.binary(), text=st.text(st.characters(exclude_categories=["Cs"])), flag=st.booleans()
)
def test_values_are_read_as_they_were_written(value: bytes, text: str, *, flag: bool) -> None:
    reader = jute.RecordReader(jute.buffer(value) + jute.text(text) + jute.boolean(flag))
    assert (reader.buffer(), reader.text(), reader.boolean()) == (value, text, flag)


def test_bytes_are_big_endian_behind_their_length() -> None:
    assert jute.text("ab") == b"\0\0\0\x02ab"
    assert jute.vector([jute.text("a"), jute.text("")]) == b"\0\0\0\x02\0\0\0\x01a\0\0\0\0"


def test_a_length_of_minus_one_is_nothing() -> None:
    assert jute.RecordReader(jute.int32(-1)).buffer() == b""


def test_lists_of_texts_are_read() -> None:
    assert jute.RecordReader(jute.vector(map(jute.text, ["a", "ü"]))).texts() == ["a", "ü"]


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0\x05ab", jute.int32(-2), jute.int32(0x7FFFFFFF)], ids=repr
)
def test_what_ends_too_soon_is_refused(data: bytes) -> None:
    with pytest.raises(jute.JuteError):
        jute.RecordReader(data).buffer()


def test_a_list_longer_than_its_record_is_refused_before_it_is_built() -> None:
    with pytest.raises(jute.JuteError, match="1000000000 texts in 0 bytes"):
        jute.RecordReader(jute.int32(1_000_000_000)).texts()


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(jute.JuteError, match="UTF-8"):
        jute.RecordReader(jute.buffer(b"\xff")).text()


def test_a_fork_goes_on_from_the_same_place_by_itself() -> None:
    reader = jute.RecordReader(jute.int32(1) + jute.int32(2))
    reader.int32()
    fork = reader.fork()
    assert (fork.int32(), reader.int32(), fork.remaining_count) == (2, 2, 0)
