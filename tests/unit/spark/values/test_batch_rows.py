"""Columns of a whole batch are those of its messages."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.proto.PulsarApi_pb2 import KeyValue, SingleMessageMetadata
from pulsar_py.spark.values.batch_rows import BatchRows, WholeBatches, rows_of
from pulsar_py.spark.values.metadata_columns import COLUMNS
from tests.unit.spark.message_parts import OWN_OF_BYTES, received_batch

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


def odd_batches() -> list[ReceivedBatch]:
    """Metadata that nobody should write."""
    odd = SingleMessageMetadata.FromString(OWN_OF_BYTES + b"\x18\x00")
    shared = [SingleMessageMetadata(event_time=2**64 - 1, sequence_id=2**64 - 1)]
    one_odd = [SingleMessageMetadata(partition_key=f"{index}") for index in range(299)]
    found = [
        received_batch(PAYLOADS, [_copy(odd) for _ in PAYLOADS]),
        received_batch(PAYLOADS, [*one_odd, _copy(odd)]),
        received_batch(PAYLOADS, [_copy(shared[0]) for _ in PAYLOADS]),
    ]
    for each in found:
        each.entry.metadata.publish_time = 2**63
        each.entry.metadata.sequence_id = 2**64 - 100
        each.entry.broker_metadata.broker_timestamp = 2**64 - 1
        each.entry.broker_metadata.index = 2**63 + 100
    return found


def _copy(single: SingleMessageMetadata) -> SingleMessageMetadata:
    copy = SingleMessageMetadata()
    copy.CopyFrom(single)
    return copy


@pytest.mark.parametrize("name", list(COLUMNS))
def test_odd_columns_are_those_of_the_messages(name: str) -> None:
    odd = odd_batches()
    for whole in (*(WholeBatches([each]) for each in odd), WholeBatches([*odd, *batches()])):
        array = COLUMNS[name].build(rows_of(whole))
        array.validate(full=True)
        assert array.to_pylist() == COLUMNS[name].build(rows_of(list(whole))).to_pylist()


def test_odd_keys_and_properties_of_batches_are_shown() -> None:
    whole = WholeBatches(odd_batches()[:1])
    rows = rows_of(whole)
    assert COLUMNS["__key"].build(rows).to_pylist() == [b"\xff"] * 300
    expected = [[("k", "\ufffd")]] * 300
    assert COLUMNS["__messageProperties"].build(rows).to_pylist() == expected
    assert COLUMNS["__publishTime"].build(rows).null_count == 300


def wholes() -> list[WholeBatches]:
    apart = batches()
    return [
        *(WholeBatches([batch]) for batch in apart),
        WholeBatches(apart),
        WholeBatches([apart[0]] * 3),
        WholeBatches(apart[:2]),
    ]


@pytest.mark.parametrize("name", list(COLUMNS))
def test_columns_are_those_of_the_messages(name: str) -> None:
    for whole in wholes():
        array = COLUMNS[name].build(rows_of(whole))
        expected = COLUMNS[name].build(rows_of(list(whole)))
        array.validate(full=True)
        assert array.type == COLUMNS[name].arrow_type
        assert array.to_pylist() == expected.to_pylist()


def test_values_are_the_payloads() -> None:
    for whole in wholes():
        array = whole.values()
        array.validate(full=True)
        assert array.type == pa.binary()
        assert array.to_pylist() == whole.payloads() == PAYLOADS * len(whole.batches)


def test_batches_are_a_sequence_of_their_messages() -> None:
    whole = WholeBatches(batches()[:2])
    assert len(whole) == len(list(whole)) == 600
    assert whole[300].message_id() == whole[0].message_id()
    assert [each.data() for each in whole[299:301]] == [PAYLOADS[299], PAYLOADS[0]]
    assert isinstance(rows_of(whole), BatchRows)
    assert not isinstance(rows_of(whole[:2]), BatchRows)


@pytest.mark.parametrize("size", [32, 127, 128, 129, 512, 513, 16_385])
def test_ids_are_right_whatever_the_size_of_a_batch(size: int) -> None:
    payloads = [b"x"] * size
    whole = WholeBatches([received_batch(payloads, [SingleMessageMetadata() for _ in payloads])])

    ids = rows_of(whole).message_ids()

    ids.validate(full=True)
    assert ids.to_pylist() == [message.message_id().serialize() for message in whole]


@pytest.mark.parametrize("name", ["__key", "__eventTime", "__messageProperties", "__topic"])
def test_columns_of_messages_without_metadata_are_made_once(name: str) -> None:
    columns = [
        COLUMNS[name].build(rows_of(WholeBatches([received_batch(PAYLOADS, singles)])))
        for singles in (
            [SingleMessageMetadata(sequence_id=start + i) for i in range(300)] for start in (0, 300)
        )
    ]
    assert columns[0] is columns[1]
