"""A source that gives the same rows as tuples, to compare with Arrow batches.

`format("pulsar-tuples")` plans as the connector does and takes the same messages; only what it
hands to Spark differs: one tuple a row, seven columns, no Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import InputPartition

from benchmarks.spark_other_reader import OtherReader
from pulsar_py.spark.reading.read_task import ReadTask, read_runs
from pulsar_py.spark.source import PiecePartition, PulsarBatchReader

Row = tuple[Any, ...]  # Any: as Spark's types


class TupleReader(PulsarBatchReader):
    """Rows one by one."""

    def read(self, partition: InputPartition | None) -> Iterator[Row]:
        """The rows of one piece."""
        if not isinstance(partition, PiecePartition):
            return
        task: ReadTask = self._task
        for run in read_runs(task.options, partition.planned):
            for message in run:
                event = message.event_timestamp()
                yield (
                    message.data(),
                    message.key_bytes() if message.own_metadata.HasField("partition_key") else None,
                    message.entry.topic,
                    message.message_id().serialize(),
                    datetime.fromtimestamp(message.publish_timestamp() / 1000, UTC),
                    datetime.fromtimestamp(event / 1000, UTC) if event else None,
                    message.properties(),
                )


class TupleDataSource(OtherReader):
    """`pulsar-tuples`; reads whole rows only."""

    piece_reader = TupleReader

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "pulsar-tuples"
