"""The writers of `format("pulsar")`, which Spark calls on the driver and in tasks (edge).

`make_batch_writer` and `make_stream_writer` run in a planner on the driver: they check the options
and the columns of the rows, and ask the cluster, all before a row is sent. The results go to the
tasks as one `WritePlan`. A task sends its rows and reports counts. A commit has nothing left to do,
and an abort undoes nothing: with at-least-once the sent rows stay in the topic; with exactly-once a
repeated attempt skips them.

Source: pyspark.sql.datasource.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pulsar_py.client import Client
from pulsar_py.common.errors import ConfigurationError, SchemaSerializationError
from pulsar_py.schema import SchemaInfo, SchemaType
from pulsar_py.spark.checks import deduplication_of
from pulsar_py.spark.shared.option_errors import naming_options
from pulsar_py.spark.shared.options import INPUT_ORDER, DeliveryGuarantee, WriteOptions
from pulsar_py.spark.shared.runtime import runtime
from pulsar_py.spark.shared.worker_process import SentToWorkers
from pulsar_py.spark.values.primitive_encoder import ValueEncoder
from pulsar_py.spark.values.topic_schemas import newest_schema
from pulsar_py.spark.values.value_encoder import value_encoder
from pulsar_py.spark.writing.exactly_once import (
    Origin,
    UnitOfWork,
    check_deduplication,
    check_options,
    unit_of_work,
)
from pulsar_py.spark.writing.outgoing_rows import (
    OutgoingRows,
    RowEncoder,
    SinkColumns,
)
from pulsar_py.spark.writing.partition_sender import ProducerSettings
from pulsar_py.spark.writing.row_order import check_order, ordered
from pulsar_py.spark.writing.task_input import whole
from pulsar_py.spark.writing.topic_writer import RowCounts, TopicWriter

logger = logging.getLogger(__name__)

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The write as tasks get it. It holds values alone, since it is pickled."""

    options: WriteOptions
    schema: pa.Schema
    columns: SinkColumns
    # The partitions of the option `topic`, asked for once: all attempts of a job route rows by
    # the same ones.
    partitions: Sequence[str]
    # Unique for this job; names the producers of a batch job without `idempotencyKey`.
    job_id: str
    # The schema of the topic when the job was planned: all tasks write with it.
    topic_schema: SchemaInfo | None = None


@dataclass(frozen=True, slots=True)
class RowsWritten(WriterCommitMessage):
    """The report of a task."""

    counts: RowCounts


def make_batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool = False
) -> DataSourceArrowWriter:
    """The writer of `df.write.mode("append")`; asks the cluster about the topic.

    Raises:
        ConfigurationError: An option or column is wrong, or the guarantee can't be kept.
        ServiceError, ClientError: The topic can't be written.
    """
    if overwrite:
        raise ConfigurationError(
            "mode('overwrite'): a topic can only be appended to, use mode('append')"
        )
    return PulsarBatchWriter(make_plan(options, schema))


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool = False
) -> DataSourceStreamArrowWriter:
    """The writer of one micro-batch; raises as `make_batch_writer`."""
    if overwrite:
        raise ConfigurationError(
            "outputMode('complete'): a topic can only be appended to, use outputMode('append')"
        )
    return PulsarStreamWriter(make_plan(options, schema))


class PulsarBatchWriter(SentToWorkers, DataSourceArrowWriter):
    """Writes the rows of a batch job."""

    def __init__(self, plan: WritePlan) -> None:
        """`plan` is pickled with the writer."""
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows; returns when all have their receipts."""
        return write_rows(self._plan, _origin(is_stream_writer=False), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log the counts: all tasks have ended."""
        _log_counts("batch written", messages, {})

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Log the counts: messages of a topic can't be taken back."""
        _log_counts("batch failed", messages, {})


class PulsarStreamWriter(SentToWorkers, DataSourceStreamArrowWriter):
    """Writes the rows of one micro-batch."""

    def __init__(self, plan: WritePlan) -> None:
        """`plan` is pickled with the writer."""
        self._plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send a task's rows; returns when all have their receipts."""
        return write_rows(self._plan, _origin(is_stream_writer=True), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Log the counts: all tasks have ended."""
        _log_counts("micro-batch written", messages, {"batch_id": batchId})

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Log the counts: Spark may repeat the micro-batch, even after a successful commit."""
        _log_counts("micro-batch failed", messages, {"batch_id": batchId})


def _origin(*, is_stream_writer: bool) -> Origin:
    context = TaskContext.get()
    assert context is not None, "writers run in tasks"
    batch_id = context.getLocalProperty(_BATCH_ID)
    return Origin(
        query_id=context.getLocalProperty(_QUERY_ID) or None,
        batch_id=int(batch_id) if batch_id else None,
        output_partition=context.partitionId(),
        is_stream_writer=is_stream_writer,
    )


def _log_counts(
    event: str, messages: Sequence[WriterCommitMessage | None], fields: Mapping[str, int]
) -> None:
    counts = [each.counts for each in messages if isinstance(each, RowsWritten)]
    extra = {
        **fields,
        "rows": sum(each.written for each in counts),
        "rows_skipped": sum(each.skipped for each in counts),
        "tasks": len(messages),
    }
    logger.info(event, extra=extra)


# --- on the driver -------------------------------------------------------------------------------


def make_plan(options: Mapping[str, str], schema: StructType) -> WritePlan:
    """The plan of a write, checked before a row is sent; raises as `make_batch_writer`."""
    parsed = WriteOptions.parse(options)
    check_options(parsed)
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    columns = SinkColumns.of(arrow_schema, parsed)
    if isinstance(parsed.sequence_order, tuple):
        check_order(arrow_schema, parsed.sequence_order)
    if parsed.topic is None:
        value_encoder(arrow_schema, columns.values, None, parsed.pairs)
    ProducerSettings.of(parsed.client, SchemaInfo(SchemaType.BYTES), None)
    shared = runtime()

    async def ask() -> tuple[SchemaInfo | None, Sequence[str]]:
        async with shared.clients.client(parsed.client) as client:
            topic_schema = await newest_schema(client, parsed.topic) if parsed.topic else None
            topic_schema = topic_schema or parsed.value_schema
            values = value_encoder(arrow_schema, columns.values, topic_schema, parsed.pairs)
            return topic_schema, await _ask_cluster(client, parsed, values)

    with naming_options(parsed.client):
        topic_schema, partitions = shared.loop.call(ask())
    job_id = f"spark-{uuid.uuid4().hex}"
    return WritePlan(parsed, arrow_schema, columns, partitions, job_id, topic_schema)


async def _ask_cluster(
    client: Client, options: WriteOptions, values: ValueEncoder
) -> Sequence[str]:
    """The partitions of the topic; empty where each row names its own."""
    if options.topic is None:
        return ()
    partitions = await client.get_topic_partitions(options.topic)
    settings = ProducerSettings.of(options.client, values.schema_info, None)
    # Registering a producer creates the topic if it does not exist, and fails if the broker refuses
    # our credentials or our schema.
    await (await client.create_producer(partitions[0], **settings.arguments)).close()
    if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        check_deduplication(await deduplication_of(client, options, partitions))
    return partitions


# --- in tasks ------------------------------------------------------------------------------------


def write_rows(plan: WritePlan, origin: Origin, batches: Iterator[pa.RecordBatch]) -> RowsWritten:
    """Send the rows of one attempt of a task; returns when all have their receipts.

    Raises:
        ConfigurationError: Exactly once, Spark does not identify the query and the batch.
        SinkReplayError: The rows are not those of an earlier attempt.
        SchemaSerializationError, ClientError, ServiceError: A row could not be written.
        TaskInputError: Not all rows of the task came, and they have to be sorted.
    """
    options = plan.options
    unit = None
    if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        unit = unit_of_work(origin, options, plan.job_id, len(plan.partitions))
    values = value_encoder(plan.schema, plan.columns.values, plan.topic_schema, options.pairs)
    encoder = RowEncoder(plan.columns, values)
    settings = ProducerSettings.of(options.client, values.schema_info, unit)
    order = options.sequence_order or INPUT_ORDER
    if order != INPUT_ORDER:
        batches = whole(batches)
    sorted_batches = ordered((each for each in batches if each.num_rows), order, encoder)
    task = _WriteTask(plan, settings, unit)
    try:
        for batch in sorted_batches:
            task.write(encoder.encode(batch))
        return RowsWritten(task.finish())
    except SchemaSerializationError as error:
        topic = options.topic
        if topic is None or topic in str(error):
            raise
        raise SchemaSerializationError(f"{topic}: {error}") from error
    finally:
        task.end()


class _WriteTask:
    """Hands record batches of Spark's thread to the writer on the loop."""

    def __init__(
        self, plan: WritePlan, settings: ProducerSettings, unit: UnitOfWork | None
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._unit = unit
        self._shared = runtime()
        # Keeps the client and the writer open while there are rows.
        self._stack = AsyncExitStack()
        self._writer: TopicWriter | None = None

    def write(self, rows: OutgoingRows) -> None:
        self._shared.loop.call(self._write(rows))

    async def _write(self, rows: OutgoingRows) -> None:
        if self._writer is None:
            options = self._plan.options
            self._writer = TopicWriter(
                await self._stack.enter_async_context(self._shared.clients.client(options.client)),
                self._settings,
                topic=options.topic,
                partitions=self._plan.partitions,
                unit=self._unit,
            )
            self._stack.push_async_callback(self._writer.abandon)
        await self._writer.write(rows)

    def finish(self) -> RowCounts:
        return (
            RowCounts() if self._writer is None else self._shared.loop.call(self._writer.finish())
        )

    def end(self) -> None:
        self._shared.loop.call(self._stack.aclose())
