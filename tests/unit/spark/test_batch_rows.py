"""Columns of a whole batch are those of its messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pulsar_py.client.received_batch import ReceivedBatch
from pulsar_py.proto.PulsarApi_pb2 import KeyValue, SingleMessageMetadata
from pulsar_py.spark.batch_rows import BatchRows, values_of
from pulsar_py.spark.columns import COLUMNS, Rows
from tests.unit.spark.message_parts import received_batch

PAYLOADS = [b"%d" % index * 7 for index in range(300)]

OWN: dict[str, Any] = {  # Any: fields of metadata
    "none": {},
    "shared": {"partition_key": "k", "event_time": 5, "ordering_key": b"o"},
    "properties": {"properties": [KeyValue(key="k", value="v")]},
    "bytes": {"partition_key": "AAH/", "partition_key_b64_encoded": True},
    "null": {"partition_key": "", "null_partition_key": True},
}


def batches() -> list[ReceivedBatch]:
    found = [
        received_batch(PAYLOADS, [SingleMessageMetadata(sequence_id=i, **own) for i in range(300)])
        for own in OWN.values()
    ]
    keys = [SingleMessageMetadata(partition_key=f"{index}") for index in range(300)]
    return [*found, received_batch(PAYLOADS, keys)]


@pytest.mark.parametrize("name", list(COLUMNS))
def test_columns_are_those_of_the_messages(name: str) -> None:
    for batch in batches():
        array = COLUMNS[name].build(BatchRows(batch))
        expected = COLUMNS[name].build(Rows(list(batch)))
        array.validate(full=True)
        assert array.type == COLUMNS[name].arrow_type
        assert array.to_pylist() == expected.to_pylist()


def test_values_are_the_payloads() -> None:
    for batch in batches():
        array = values_of(batch)
        array.validate(full=True)
        assert array.type == pa.binary()
        assert array.to_pylist() == PAYLOADS
