"""Rows and encoders that tests of writing share."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pulsar_py.spark.shared.options import WriteOptions
from pulsar_py.spark.values.value_encoder import value_encoder
from pulsar_py.spark.writing.outgoing_rows import RowEncoder, SinkColumns

TOPIC = "persistent://public/default/rows"


def write_options(url: str = "pulsar://h:6650", **more: str) -> WriteOptions:
    given = {"service.url": url, "admin.url": "http://h:8080", "topic": TOPIC}
    given |= {name.replace("_", ".").lower(): text for name, text in more.items()}
    return WriteOptions.parse({name: text for name, text in given.items() if text})


def encoder(schema: pa.Schema, options: WriteOptions | None = None) -> RowEncoder:
    columns = SinkColumns.of(schema, options or write_options())
    return RowEncoder(columns, value_encoder(schema, columns.values))


def texts(values: Iterable[object]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([str(each) for each in values], pa.string())})
