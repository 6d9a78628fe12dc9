"""Record batches of messages: cut by bytes, only what was asked for, and what can't be decoded."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from pulsar_py.client.message import Message
from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.spark.options import UndecodableMode
from pulsar_py.spark.rows import UNDECODABLE_COLUMN, BuiltValues, RowBuilder
from tests.unit.spark.message_parts import TOPIC, plain


class Numbers:
    """Values that are decimal texts."""

    fields = (pa.field("value", pa.int64()),)

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        values: list[int | None] = []
        errors = {}
        for row, message in enumerate(messages):
            try:
                values.append(None if message.has_null_value() else int(message.data()))
            except ValueError as error:
                values.append(None)
                errors[row] = SchemaSerializationError(str(error))
        return BuiltValues({name: pa.array(values, pa.int64()) for name in wanted}, errors)


def rows_of(builder: RowBuilder, messages: list[Message]) -> list[pa.RecordBatch]:
    return [*builder.add(messages), *builder.finish()]


def test_a_batch_is_cut_when_its_bytes_are_reached() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=4)
    batches = rows_of(builder, [plain(b"12"), plain(b"34"), plain(b"567890"), plain(b"1")])
    assert [batch.to_pydict()["value"] for batch in batches] == [[12, 34], [567890], [1]]


def test_columns_come_in_the_order_asked_for_and_no_others() -> None:
    builder = RowBuilder(["__entryId", "value", "__key"], Numbers(), batch_bytes=100)
    (batch,) = rows_of(builder, [plain(b"1", partition_key="k")])
    assert batch.schema == builder.schema
    assert batch.to_pydict() == {"__entryId": [5], "value": [1], "__key": [b"k"]}


def test_values_that_nobody_asked_for_are_not_decoded() -> None:
    builder = RowBuilder(["__entryId"], Numbers(), batch_bytes=100)
    (batch,) = rows_of(builder, [plain(b"no number")])
    assert batch.to_pydict() == {"__entryId": [5]}


def test_a_tombstone_has_no_value() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=100)
    (batch,) = rows_of(builder, [plain(b"", null_value=True)])
    assert batch.to_pydict() == {"value": [None]}


def test_what_can_t_be_decoded_fails_with_topic_and_position() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=100)
    with pytest.raises(SchemaSerializationError, match=rf"{TOPIC}: message 4:5:3: invalid literal"):
        rows_of(builder, [plain(b"x")])


def test_what_can_t_be_decoded_is_dropped_and_counted() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=100, undecodable=UndecodableMode.DROP)
    (batch,) = rows_of(builder, [plain(b"x"), plain(b"2")])
    assert batch.to_pydict() == {"value": [2]}
    assert builder.dropped_count == 1


def test_what_can_t_be_decoded_gets_a_column() -> None:
    builder = RowBuilder(
        ["value", UNDECODABLE_COLUMN],
        Numbers(),
        batch_bytes=100,
        undecodable=UndecodableMode.COLUMN,
    )
    (batch,) = rows_of(builder, [plain(b"1"), plain(b"x"), plain(b"2")])
    assert batch.to_pydict() == {"value": [1, None, 2], UNDECODABLE_COLUMN: [None, b"x", None]}


def test_a_batch_of_which_nothing_is_left_is_none() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=1, undecodable=UndecodableMode.DROP)
    assert rows_of(builder, [plain(b"x"), plain(b"y")]) == []
    assert builder.dropped_count == 2
