"""Measures values to Arrow columns and back, in rows a second of CPU by kind of schema; no Spark.

    python -m benchmarks.micro_spark

The best of several rounds counts, so that other work on the machine disturbs little. Rows are named
in the `# Hot path:` comments of the code they watch. Records have five fields.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pulsar_py import schema as schemas
from pulsar_py.client.messages.message import Message, ReceivedEntry
from pulsar_py.client.receiving.received_batch import batch_of
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsar_py.schema import Schema, SchemaInfo, SchemaType
from pulsar_py.spark.reading.row_builder import RowBuilder
from pulsar_py.spark.shared.options import METADATA_COLUMNS
from pulsar_py.spark.values.value_columns import RawValues, ValueColumns, columns_of_schema
from pulsar_py.spark.values.value_encoder import value_encoder

ROWS = 2000
ROUNDS = 15
RECORD = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "value", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"]},
    ],
}


class NoVersions:
    """All messages are of the newest version."""

    def writer(self, topic: str, version: bytes) -> SchemaInfo | None:
        """Never asked."""
        raise AssertionError(topic, version)


def rows_a_cpu_second(run: Callable[[], object]) -> float:
    """The best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        run()
        best = min(best, time.process_time_ns() - start)
    return ROWS / best * 1e9


def messages_of(payloads: list[bytes]) -> list[Message]:
    """Messages as they come unbatched."""
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1_700_000_000_000)
    return [
        Message.of(data, key=(1, index), metadata=metadata) for index, data in enumerate(payloads)
    ]


def reading(values: ValueColumns, messages: list[Message], names: tuple[str, ...] = ()) -> float:
    """Messages into record batches; the columns of values, unless others are named."""
    names = names or tuple(field.name for field in values.fields)

    def run() -> None:
        builder = RowBuilder(names, values, batch_bytes=1 << 30)
        for _ in builder.add(messages):
            pass
        for _ in builder.finish():
            pass

    return rows_a_cpu_second(run)


def batches_of(payloads: list[bytes]) -> float:
    """A batch as a producer makes it into its value and metadata columns, splitting included."""
    singles = [
        SingleMessageMetadata(sequence_id=1000 + index, payload_size=len(payload))
        for index, payload in enumerate(payloads)
    ]
    heads = [single.SerializeToString() for single in singles]
    body = b"".join(
        len(head).to_bytes(4, "big") + head + payload
        for head, payload in zip(heads, payloads, strict=True)
    )
    count = len(payloads)
    metadata = MessageMetadata(
        producer_name="p",
        sequence_id=1,
        publish_time=1_700_000_000_000,
        num_messages_in_batch=count,
    )
    entry = ReceivedEntry((1, 1), "persistent://public/default/t", metadata, batch_size=count)

    def run() -> None:
        builder = RowBuilder(("value", *METADATA_COLUMNS), RawValues(), batch_bytes=1 << 20)
        for _ in range(ROWS // count):
            batch = batch_of(entry, body, 0)
            assert batch is not None, "a batch like this one is kept whole"
            for _ in builder.add(batch):
                pass
        for _ in builder.finish():
            pass

    return rows_a_cpu_second(run)


def reading_of(schema: Schema[Any], values: list[Any]) -> float:
    """The same for values of a schema."""
    info = schema.schema_info()
    columns = columns_of_schema(info, NoVersions())
    return reading(columns, messages_of([schema.encode(value) for value in values]))


def writing(batch: pa.RecordBatch, topic_type: SchemaType) -> float:
    """Rows into payloads."""
    topic_schema = SchemaInfo(topic_type, "", b'"string"', {})
    encoder = value_encoder(batch.schema, batch.schema.names, topic_schema)
    return rows_a_cpu_second(lambda: encoder.encode(batch))


def main() -> None:
    """Print the table."""
    avro = schemas.AvroSchema[Any](schema_definition=RECORD)
    json = schemas.JsonSchema[Any](schema_definition=RECORD)
    at = schemas.TimestampSchema().decode(bytes(8))
    records = [
        {"id": i * 1000, "name": f"sensor {i}", "value": i / 7, "at": at, "note": "x" * 30}
        for i in range(ROWS)
    ]
    integers = schemas.Int64Schema()
    kilobytes = messages_of([bytes(1024)] * ROWS)
    pairs = schemas.KeyValueSchema(schemas.StringSchema(), avro)
    columns = columns_of_schema(avro.schema_info(), NoVersions())
    batch = next(_batches(columns, messages_of([avro.encode(each) for each in records])))
    rows = {
        "raw, 1 KB": reading(RawValues(), kilobytes),
        "raw, 1 KB, and metadata": reading(RawValues(), kilobytes, ("value", *METADATA_COLUMNS)),
        "1 KB, batches of 1,000, metadata": batches_of([bytes(1024)] * 1000),
        "about 1 KB, batches of 50, metadata": batches_of([bytes(1000 + i) for i in range(50)]),
        "INT64": reading_of(integers, list(range(ROWS))),
        "STRING": reading_of(schemas.StringSchema(), [f"text {i}" for i in range(ROWS)]),
        "AVRO": reading_of(avro, records),
        "JSON": reading_of(json, records),
        "KEY_VALUE, STRING and AVRO": reading_of(
            pairs, [schemas.KeyValue(each["name"], each) for each in records]
        ),
        "PROTOBUF_NATIVE": reading_of(*protobuf_values()),
        "writing INT64": writing(batch.select(["id"]), SchemaType.BYTES),
        "writing AVRO": writing(batch, SchemaType.AVRO),
        "writing JSON": writing(batch, SchemaType.JSON),
    }
    print(f"{'':36} {'rows/cpu-s':>10} {'us a row':>9}")
    for name, figure in rows.items():
        print(f"{name:36} {figure:>10,.0f} {1e6 / figure:>9.2f}")


def _batches(columns: ValueColumns, messages: list[Message]) -> Any:  # Any: pyarrow has no types
    builder = RowBuilder([field.name for field in columns.fields], columns, batch_bytes=1 << 30)
    yield from builder.add(messages)
    yield from builder.finish()


def protobuf_values() -> tuple[Schema[Any], list[Any]]:
    """Messages of five fields."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto  # noqa: PLC0415 - as needed
    from google.protobuf.descriptor_pool import DescriptorPool  # noqa: PLC0415 - as needed
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 - as needed

    file = FileDescriptorProto(name="reading.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name="Reading")
    for number, (name, kind) in enumerate(
        [("id", 3), ("name", 9), ("value", 1), ("at", 3), ("note", 9)], start=1
    ):
        message.field.add(name=name, number=number, type=kind, label=1)
    pool = DescriptorPool()
    pool.Add(file)
    kind_of = GetMessageClass(pool.FindMessageTypeByName("bench.Reading"))
    values = [
        kind_of(id=i * 1000, name=f"sensor {i}", value=i / 7, at=i, note="x" * 30)
        for i in range(ROWS)
    ]
    return schemas.ProtobufNativeSchema(kind_of), values


if __name__ == "__main__":
    main()
