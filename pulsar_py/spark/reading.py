"""What a task does: messages of a planned piece, as record batches (edge).

The next run of messages is asked for before the one at hand is converted, so that the broker, the
network and the conversion overlap. The process's loop and client are shared with all tasks that
come to it; nothing is left open behind a piece, also when Spark stops reading early.

Source: spec sections 5.2 and 6.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pulsar_py.client.message import Message
from pulsar_py.spark.options import ReadOptions
from pulsar_py.spark.plans import PlannedPiece
from pulsar_py.spark.rows import RowBuilder, ValueColumns
from pulsar_py.spark.runtime import Runtime, runtime
from pulsar_py.spark.segments import BrokerEntrySource

logger = logging.getLogger(__name__)

Run = Sequence[Message]

LARGE_BYTES: Final = 64 << 10
"""Messages from this size on are few enough to give memory back after each run."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Everything a worker has to know; it is sent there."""

    options: ReadOptions
    values: ValueColumns
    # The columns of the result, in order.
    names: tuple[str, ...]

    def read(self, planned: PlannedPiece) -> Iterator[pa.RecordBatch]:
        """The rows of one piece.

        Raises:
            SchemaSerializationError: A message can't be decoded, and that is an error.
            ServiceError, ClientError: The topic can't be read, or entries are missing.
        """
        builder = RowBuilder(
            self.names,
            self.values,
            batch_bytes=self.options.arrow_batch_bytes,
            undecodable=self.options.undecodable,
        )
        with closing(read_runs(self.options, planned)) as runs:
            for run in runs:
                yield from builder.add(run)
                if run[0].size() >= LARGE_BYTES:
                    # Spark copies each batch; what Arrow's pool keeps of large ones adds up.
                    pa.default_memory_pool().release_unused()
        yield from builder.finish()
        if builder.dropped_count:
            logger.warning(
                "messages could not be decoded",
                extra={"topic": planned.piece.topic, "dropped": builder.dropped_count},
            )


def read_runs(options: ReadOptions, planned: PlannedPiece) -> Generator[Run, None, None]:
    """The messages of a piece that belong to the query, in order; raises as `ReadTask.read`."""
    opened = _OpenPiece(runtime(), options, planned)
    try:
        while (run := opened.next_run()) is not None:
            wanted = within(run, planned)
            if wanted:
                yield wanted
    finally:
        opened.close()


class _OpenPiece:
    """A piece being read on the loop, from outside of it."""

    def __init__(self, shared: Runtime, options: ReadOptions, planned: PlannedPiece) -> None:
        self._loop = shared.loop
        self._shared = shared
        self._options = options
        self._stack = AsyncExitStack()
        self._runs: AsyncIterator[Run] | None = None
        self._planned = planned
        # The task that asks for the next run; None before it began.
        self._advancing: asyncio.Task[Run | None] | None = None
        self._next: Future[Run | None] = self._loop.submit(self._advance())

    def next_run(self) -> Run | None:
        """The next messages, None behind the last ones."""
        run = self._next.result()
        if run is not None:
            self._next = self._loop.submit(self._advance())
        return run

    async def _advance(self) -> Run | None:
        self._advancing = asyncio.current_task()
        if self._runs is None:
            self._runs = await self._open()
        return await anext(self._runs, None)

    async def _open(self) -> AsyncIterator[Run]:
        options = self._options
        client = await self._stack.enter_async_context(self._shared.clients.client(options.client))
        source = BrokerEntrySource(
            client,
            poll_timeout_millis=options.poll_timeout_millis,
            fail_on_data_loss=options.fail_on_data_loss,
            is_compacted=options.is_compacted,
            subscription_prefix=options.subscription_prefix or "spark-pulsar",
        )
        runs = source.read(self._planned.piece)
        self._stack.push_async_callback(runs.aclose)
        return runs

    def close(self) -> None:
        """Stop reading, wherever it is."""
        self._loop.call(self._close())

    async def _close(self) -> None:
        task = self._advancing
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
        await self._stack.aclose()


def within(run: Run, planned: PlannedPiece) -> Run:
    """Those messages of a run that belong to the query."""
    low, high = planned.min_publish_millis, planned.max_publish_millis
    if low is not None:
        run = [message for message in run if message.publish_timestamp() >= low]
    if high is not None:
        run = [message for message in run if message.publish_timestamp() <= high]
    if planned.first_batch_index > 0:
        first, index = planned.piece.start, planned.first_batch_index
        run = [m for m in run if m.entry.key != first or m.batch_index >= index]
    return run
