"""A source that gives the first batch of each piece over and over: the most that Spark can take.

`format("pulsar-repeated")` plans as the connector does and hands Spark as many batches with the
same columns, but reads no more than one: only the way into Spark is measured.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from benchmarks.spark_other_reader import OtherReader
from pulsar_py.spark.source import PiecePartition, PulsarBatchReader


class RepeatedReader(PulsarBatchReader):
    """A batch for each entry, all of them the same."""

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """As many rows as one piece has, if its entries have one batch each."""
        if not isinstance(partition, PiecePartition):
            return
        piece = partition.planned.piece
        assert piece.start.ledger_id == piece.end.ledger_id, piece
        with closing(
            cast("Generator[pa.RecordBatch]", self._task.read(partition.planned))
        ) as batches:
            batch = next(batches)
        for _ in range(piece.end.entry_id - piece.start.entry_id):
            yield batch


class RepeatedDataSource(OtherReader):
    """`pulsar-repeated`."""

    piece_reader = RepeatedReader

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "pulsar-repeated"
