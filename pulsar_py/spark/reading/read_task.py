"""Reads the messages of a planned piece in a task, as record batches (edge).

Runs of messages are fetched while those before them are converted, so that the broker, the network
and the conversion overlap. All tasks of a process share its loop and client; a piece leaves nothing
open, also when Spark stops reading early.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.planning.plans import PlannedPiece
from pulsar_py.spark.reading.entry_source import BrokerEntrySource, Run, run_bytes
from pulsar_py.spark.reading.read_ahead import ReadAhead
from pulsar_py.spark.reading.row_builder import RowBuilder
from pulsar_py.spark.reading.rows_ahead import RowsAhead
from pulsar_py.spark.reading.short_circuit_source import stored_runs
from pulsar_py.spark.shared.options import ReadOptions, UndecodableMode
from pulsar_py.spark.shared.runtime import Runtime, runtime
from pulsar_py.spark.shared.worker_process import has_small_buffers, spare_the_collector
from pulsar_py.spark.values.value_columns import ValueColumns

logger = logging.getLogger(__name__)

LARGE_BYTES: Final = 64 << 10
"""The average size of a run's messages from which memory is released after each run."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The read as workers get it, pickled by Spark."""

    options: ReadOptions
    values: ValueColumns
    # The columns of the result, in order.
    names: tuple[str, ...]

    def read(self, planned: PlannedPiece) -> Iterator[pa.RecordBatch]:
        """The rows of one piece.

        Raises:
            SchemaSerializationError: A message can't be decoded, and `undecodable` is `fail`.
            ServiceError, ClientError: The topic can't be read, or entries are missing.
        """
        spare_the_collector()
        rows = self._rows(planned)
        if self.options.short_circuit_path is None or not has_small_buffers():
            yield from rows  # where the connection has room for the rows that Spark uses meanwhile
            return
        with closing(RowsAhead(rows)) as ahead:
            yield from ahead

    def _rows(self, planned: PlannedPiece) -> Generator[pa.RecordBatch, None, None]:
        builder = RowBuilder(
            self.names,
            self.values,
            batch_bytes=self.options.arrow_batch_bytes,
            undecodable=self.options.undecodable,
        )
        with closing(read_runs(self.options, planned)) as runs:
            for run in runs:
                yield from builder.add(run)
                is_large = run_bytes(run) >= LARGE_BYTES * len(run)
                del run  # its memory is used again
                if is_large:
                    # Spark copies each batch, and Arrow's pool would keep the memory of them all.
                    pa.default_memory_pool().release_unused()
        yield from builder.finish()
        if builder.dropped_count:
            logger.warning(
                "messages could not be decoded",
                extra={"topic": planned.piece.topic, "dropped": builder.dropped_count},
            )


def read_runs(options: ReadOptions, planned: PlannedPiece) -> Generator[Run, None, None]:
    """The messages of a piece that belong to the query, in order; raises as `ReadTask.read`."""
    with closing(_all_runs(options, planned.piece)) as runs:
        for run in runs:
            wanted = within(run, planned)
            if wanted:
                yield wanted
            del run, wanted  # their memory is used again


def _all_runs(options: ReadOptions, piece: Piece) -> Generator[Run, None, None]:
    """The messages of a piece: from a broker's files what they have, then through the broker."""
    path = options.short_circuit_path
    if path is not None and not options.is_compacted:
        start = yield from stored_runs(path, options.client.service_url, piece)
        piece = piece._replace(start=start)
        if start >= piece.end:
            return
    shared = runtime()
    ahead = ReadAhead(shared.loop, lambda: _open_runs(shared, options, piece))
    try:
        yield from ahead
    finally:
        ahead.close()


@asynccontextmanager
async def _open_runs(
    shared: Runtime, options: ReadOptions, piece: Piece
) -> AsyncIterator[AsyncIterator[Run]]:
    async with shared.clients.client(options.client) as client:
        source = BrokerEntrySource(
            client,
            poll_timeout_millis=options.poll_timeout_millis,
            fail_on_data_loss=options.fail_on_data_loss,
            drops_unusable=options.undecodable is UndecodableMode.DROP,
            is_compacted=options.is_compacted,
            subscription_prefix=options.subscription_prefix or "spark-pulsar",
            consumer_name=options.reader.name,
            queue_messages=options.reader.queue_messages,
        )
        async with aclosing(source.read(piece)) as runs:
            yield runs


def within(run: Run, planned: PlannedPiece) -> Run:
    """The messages of a run that are within the bounds of the query."""
    low, high = planned.min_publish_millis, planned.max_publish_millis
    if low is None and high is None and planned.first_batch_index <= 0:
        return run
    if low is not None:
        run = [message for message in run if message.publish_timestamp() >= low]
    if high is not None:
        run = [message for message in run if message.publish_timestamp() <= high]
    if planned.first_batch_index > 0:
        first, index = planned.piece.start, planned.first_batch_index
        run = [m for m in run if m.entry.key != first or m.batch_index >= index]
    return run
