"""Rows are sorted alike, in whatever order they came."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.spark.writing import row_order
from pulsar_py.spark.writing.row_order import check_order, ordered
from tests.unit.spark.sink_parts import encoder, texts

SCHEMA = pa.schema([("value", pa.string()), ("__key", pa.string())])


def rows(pairs: list[tuple[str | None, str | None]]) -> pa.RecordBatch:
    values, keys = [each[0] for each in pairs], [each[1] for each in pairs]
    return pa.record_batch([pa.array(values), pa.array(keys)], schema=SCHEMA) if pairs else empty()


def empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=SCHEMA)


def result(batches: list[pa.RecordBatch], order: str | tuple[str, ...]) -> list[tuple[object, ...]]:
    found = ordered(batches, order, encoder(SCHEMA))
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


PAIRS = st.lists(st.tuples(st.text(max_size=2), st.sampled_from([None, "a", "b"])), max_size=30)


@given(PAIRS, st.randoms(use_true_random=False))
def test_content_has_one_order(pairs: list[tuple[str | None, str | None]], chance: object) -> None:
    others = list(pairs)
    chance.shuffle(others)  # type: ignore[attr-defined]
    found = result([rows(pairs)], "content")
    assert found == result([rows(others[:5]), rows(others[5:])], "content")
    assert sorted(map(repr, found)) == sorted(map(repr, pairs))


@given(PAIRS, st.randoms(use_true_random=False))
def test_columns_go_first_and_content_decides_between_equals(
    pairs: list[tuple[str | None, str | None]], chance: object
) -> None:
    others = list(pairs)
    chance.shuffle(others)  # type: ignore[attr-defined]
    found = result([rows(pairs)], ("value",))
    assert found == result([rows(others)], ("value",))
    assert [each[0] for each in found] == sorted(each[0] or "" for each in pairs)


def test_keys_of_bytes_and_of_text_are_told_apart() -> None:
    schema = pa.schema(
        [("value", pa.string()), ("__key", pa.string()), ("__hasBinaryKey", pa.bool_())]
    )
    found = []
    for binary in ([True, False], [False, True]):
        batch = pa.record_batch([["v", "v"], ["k", "k"], binary], schema=schema)
        found += [each.to_pylist() for each in ordered([batch], "content", encoder(schema))]
    assert found[0] == found[1]


def test_sorting_copies_no_more_than_what_it_hands_on() -> None:
    batches = [
        texts([f"{row * 7919 % 16_384:0100}" for row in range(start, start + 512)])
        for start in range(0, 16_384, 512)
    ]
    sound = encoder(batches[0].schema)
    size_bytes = sum(each.nbytes for each in batches)
    pool = pa.default_memory_pool()
    before = pool.total_bytes_allocated()
    found = [text for each in ordered(batches, ("value",), sound) for text in each[0].to_pylist()]
    assert found == sorted(found)
    assert len(found) == 16_384
    assert pool.total_bytes_allocated() - before < 4 * size_bytes


def test_rows_of_empty_and_of_large_batches_come_in_order() -> None:
    batches = [texts(each) for each in ([], [30_000], [], range(10_000, 20_000), [15_000, 1], [])]
    found = ordered(batches, ("value",), encoder(batches[0].schema))
    numbers = [int(text) for each in found for text in each[0].to_pylist()]
    assert sorted(numbers, key=str) == numbers
    assert sorted(numbers) == [1, *range(10_000, 15_001), 15_000, *range(15_001, 20_000), 30_000]


def test_rows_that_are_large_come_out_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "SLICE_BYTES", 1000)
    batches = [texts(["b" * 700, "c" * 300, "d" * 2000, "a", "e"])]
    found = ordered(batches, ("value",), encoder(batches[0].schema))
    lengths = [[len(text) for text in each[0].to_pylist()] for each in found]
    assert lengths == [[1, 700], [300], [2000], [1]]


def test_input_is_handed_on() -> None:
    batches = [texts([3, 1]), texts([2])]
    assert list(ordered(batches, "input", encoder(batches[0].schema))) == batches


def test_nothing_stays_nothing() -> None:
    assert list(ordered([], "content", encoder(SCHEMA))) == []


def test_columns_have_to_be_there_and_to_have_an_order() -> None:
    with pytest.raises(ConfigurationError, match="column 'other' has to be once"):
        check_order(SCHEMA, ("other",))
    with pytest.raises(ConfigurationError, match="has no order"):
        check_order(pa.schema([("a", pa.list_(pa.int8()))]), ("a",))
