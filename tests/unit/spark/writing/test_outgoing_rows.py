"""Columns get roles, and rows become messages."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.spark.values.floored_times import millis_of
from pulsar_py.spark.writing.outgoing_rows import SinkColumns, in_utc
from tests.unit.spark.sink_parts import encoder, texts, write_options

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOON_MILLIS = int(NOON.timestamp() * 1000)


def test_metadata_columns_become_metadata() -> None:
    batch = pa.record_batch(
        {
            "value": pa.array([b"v", None]),
            "__key": pa.array(["k", None]),
            "__orderingKey": pa.array([b"o", None]),
            "__eventTime": pa.array([NOON, None], pa.timestamp("us", "Europe/Berlin")),
            "__messageProperties": pa.array(
                [[("a", "1"), ("b", None)], None], pa.map_(pa.string(), pa.string())
            ),
            "__partition": pa.array([1, None], pa.int32()),
            "__deliverAt": pa.array([NOON_MILLIS, None], pa.int64()),
        }
    )
    rows = encoder(batch.schema).encode(batch)
    assert len(rows) == 2
    assert rows.payloads == [b"v", None]
    assert rows.keys == ["k", None]
    assert rows.ordering_keys == [b"o", None]
    assert rows.event_times_millis == [NOON_MILLIS, None]
    assert rows.properties == [{"a": "1"}, None]
    assert rows.partitions == [1, None]
    assert rows.deliver_at_millis == [NOON_MILLIS, None]
    assert rows.topics is None


@pytest.mark.parametrize(
    ("column", "kind"), [("__eventTime", pa.timestamp("us", "UTC")), ("__deliverAt", pa.int64())]
)
def test_a_time_before_1970_names_column_and_row(column: str, kind: pa.DataType) -> None:
    times = pa.array([5, None, -315_619_200_000], pa.int64()).cast(kind)
    batch = pa.record_batch({"value": pa.array([b"v"] * 3), column: times})
    with pytest.raises(
        SchemaSerializationError, match=f"column {column}, row 2 of 3: .* is before 1970"
    ):
        encoder(batch.schema).encode(batch)


def test_roles_can_have_other_columns() -> None:
    schema = pa.schema([("v", pa.binary()), ("user", pa.string()), ("at", pa.timestamp("us"))])
    columns = SinkColumns.of(schema, write_options(keyColumn="USER", deliverAtColumn="at"))
    assert (columns.key, columns.deliver_at, columns.values) == ("user", "at", ("v",))
    assert not columns.has_plain_rows


def test_the_option_topic_goes_before_the_column() -> None:
    schema = pa.schema([("value", pa.binary()), ("__topic", pa.string())])
    assert SinkColumns.of(schema, write_options()).topic is None
    assert SinkColumns.of(schema, write_options()).has_plain_rows
    assert SinkColumns.of(schema, write_options(topic="")).topic == "__topic"


def test_what_only_a_broker_sets_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    schema = pa.schema([("value", pa.binary()), ("__messageId", pa.binary())])
    assert SinkColumns.of(schema, write_options()).values == ("value",)
    assert not caplog.messages, "each copy has it"
    schema = schema.append(pa.field("__ledgerId", pa.int64()))
    assert SinkColumns.of(schema, write_options()).values == ("value",)
    assert caplog.messages == ["not sent, because only a broker sets them: __ledgerId"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([("value", pa.binary()), ("__key", pa.int32())], "__key: int32 can't be the key"),
        ([("value", pa.binary()), ("__eventTime", pa.string())], "can't be the event time"),
        ([("__key", pa.binary()), ("__publishTime", pa.timestamp("us"))], "no column is the value"),
    ],
)
def test_columns_that_make_no_sense_are_named(
    fields: list[tuple[str, pa.DataType]], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text):
        SinkColumns.of(pa.schema(fields), write_options())


def test_rows_need_a_topic() -> None:
    with pytest.raises(ConfigurationError, match="__topic"):
        SinkColumns.of(texts([1]).schema, write_options(topic=""))


def test_timestamps_keep_their_instant() -> None:
    batch = pa.record_batch({"t": pa.array([NOON], pa.timestamp("ms", "Asia/Tokyo")), "n": [1]})
    found = in_utc(batch)
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    assert found.column("t").cast(pa.int64()).to_pylist() == [NOON_MILLIS * 1000]
    assert millis_of(found.column("t")).to_pylist() == [NOON_MILLIS]
    assert millis_of(found.column("n")).to_pylist() == [1]


def test_tombstones_have_no_value_whatever_their_columns_say() -> None:
    batch = pa.record_batch(
        {"value": pa.array([b"a", b"b", None]), "__isTombstone": pa.array([False, True, None])}
    )
    assert encoder(batch.schema).encode(batch).payloads == [b"a", None, None]
    assert SinkColumns.of(batch.schema, write_options()).tombstone == "__isTombstone"


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()])
def test_rows_say_which_keys_are_bytes(kind: pa.DataType) -> None:
    batch = pa.record_batch(
        {
            "value": pa.array(["a", "b", "c", "d"]),
            "__key": pa.array(["k", "k", None, ""], kind),
            "__hasBinaryKey": pa.array([True, False, True, None]),
        }
    )
    assert encoder(batch.schema).encode(batch).keys == [b"k", "k", None, ""]


def test_a_text_key_that_is_none() -> None:
    batch = pa.record_batch(
        {
            "value": pa.array(["a"]),
            "__key": pa.array([b"\xff" * 10_000]),
            "__hasBinaryKey": pa.array([False]),
        }
    )
    with pytest.raises(SchemaSerializationError, match=r"key b'\\xff.* is not UTF-8") as caught:
        encoder(batch.schema).encode(batch)
    assert len(str(caught.value)) < 600
