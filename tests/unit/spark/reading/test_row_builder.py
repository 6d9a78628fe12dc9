"""Record batches of messages: cut by bytes, only what was asked for, and what can't be decoded."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.common.errors import SchemaSerializationError
from pulsar_py.spark.reading.row_builder import RowBuilder
from pulsar_py.spark.shared.options import UndecodableMode
from pulsar_py.spark.values.metadata_columns import UNDECODABLE_COLUMN
from pulsar_py.spark.values.value_columns import BuiltValues
from tests.unit.spark.message_parts import TOPIC, batch, plain, received_batch


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


class Texts(Numbers):
    """The same, without a look at metadata."""

    def build(self, messages: Sequence[Message], wanted: frozenset[str]) -> BuiltValues:
        return super().build([plain(message.data()) for message in messages], wanted)


def rows_of(builder: RowBuilder, messages: Sequence[Message]) -> list[pa.RecordBatch]:
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


def unparsable() -> list[Message]:
    """The second one's own metadata are no protobuf."""
    good, broken = batch([b"1", b"2"])
    return [plain(b"no number"), good, Message(broken.entry, 1, b"\x18\x01\x40\x80", b"2")]


@pytest.mark.parametrize("mode", [UndecodableMode.FAIL, UndecodableMode.COLUMN])
def test_metadata_that_can_t_be_parsed_fail_with_topic_and_message_id(
    mode: UndecodableMode,
) -> None:
    builder = RowBuilder(["__sequenceId"], Numbers(), batch_bytes=100, undecodable=mode)
    with pytest.raises(SchemaSerializationError, match=rf"{TOPIC}: message 6:9:3:1: "):
        rows_of(builder, unparsable())


def test_messages_whose_metadata_can_t_be_parsed_are_dropped_and_counted_once() -> None:
    mode = UndecodableMode.DROP
    builder = RowBuilder(["value", "__sequenceId"], Texts(), batch_bytes=100, undecodable=mode)
    (rows,) = rows_of(builder, unparsable())
    assert rows.to_pydict() == {"value": [1], "__sequenceId": [20]}
    assert builder.dropped_count == 2


def test_a_batch_of_which_nothing_is_left_is_none() -> None:
    builder = RowBuilder(["value"], Numbers(), batch_bytes=1, undecodable=UndecodableMode.DROP)
    assert rows_of(builder, [plain(b"x"), plain(b"y")]) == []
    assert builder.dropped_count == 2


def whole(first: int, size: int = 4) -> ReceivedBatch:
    return received_batch([b"%0*d" % (size, first + index) for index in range(100)])


def values(batches: list[pa.RecordBatch]) -> list[list[int]]:
    return [batch.to_pydict()["value"] for batch in batches]


def test_whole_batches_come_in_order_with_the_messages_around_them() -> None:
    builder = RowBuilder(["value", "__entryId"], Numbers(), batch_bytes=1 << 20)
    batches = []
    for run in ([plain(b"1")], [plain(b"2")], whole(1000), whole(2000), [plain(b"3")]):
        batches += builder.add(run)
    batches += builder.finish()
    expected = [1, 2, *range(1000, 1100), *range(2000, 2100), 3]
    assert values(batches) == [expected]
    assert batches[0].to_pydict()["__entryId"] == [5, 5, *[9] * 200, 5]


def test_whole_batches_are_cut_by_bytes() -> None:
    size = whole(0).size()
    together = RowBuilder(["value"], Numbers(), batch_bytes=size * 2)
    batches = [each for first in (0, 100, 200) for each in together.add(whole(first))]
    assert values([*batches, *together.finish()]) == [[*range(200)], [*range(200, 300)]]
    apart = RowBuilder(["value"], Numbers(), batch_bytes=size + 1)
    batches = [each for first in (0, 100, 200) for each in apart.add(whole(first))]
    batches += apart.finish()
    assert values(batches) == [[*range(first, first + 100)] for first in (0, 100, 200)]
    parts = RowBuilder(["value"], Numbers(), batch_bytes=size // 4)
    assert [len(each) for each in parts.add(whole(0))] == [25] * 4


def test_what_can_t_be_decoded_in_a_whole_batch() -> None:
    payloads = [b"%d" % index for index in range(40)]
    payloads[7] = b"x"
    batch = received_batch(payloads)
    builder = RowBuilder(["value"], Numbers(), batch_bytes=1)
    with pytest.raises(SchemaSerializationError, match=rf"{TOPIC}: message 6:9:3:7: invalid"):
        list(builder.add(batch))
    dropping = RowBuilder(["value"], Numbers(), batch_bytes=1000, undecodable=UndecodableMode.DROP)
    assert values(rows_of(dropping, batch)) == [[*range(7), *range(8, 40)]]
    assert dropping.dropped_count == 1
