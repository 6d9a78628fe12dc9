"""`format("pulsar-failing")`: the connector's writers, with a failure where a test wants one.

Imported by Spark's planners and workers, too; how far they are comes and goes through files of one
directory. Options begin with `test.`:

    test.failure      raise, kill or pause: in a task's first attempt, after `test.batches`;
                      give-up: in every attempt; the first waits for the test before it raises;
                      commit-before or commit-after: the first commit, around its effect;
                      shuffle: raise, and give later attempts their rows in another order
    test.batches      record batches that a task gets before that
    test.directory    where the marks are
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pulsar_py.spark.sink import PulsarBatchWriter, PulsarStreamWriter, make_plan
from pulsar_py.spark.source import PulsarDataSource


class InjectedError(Exception):
    """What a test asked for."""


@dataclass(frozen=True)
class Failure:
    """What goes wrong, and where."""

    kind: str
    batches: int
    directory: Path

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Failure:
        return cls(
            options["test.failure"],
            int(options.get("test.batches", "2")),
            Path(options["test.directory"]),
        )

    def happens_now(self, name: str) -> bool:
        """Once, whichever process asks."""
        try:
            (self.directory / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def inject(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, until it goes wrong."""
        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), context.attemptNumber()
        if self.kind == "shuffle" and attempt:
            batches = _turned(batches)
        for count, batch in enumerate(batches):
            if count == self.batches and (self.kind == "give-up" or not attempt):
                self._fail(partition)
            yield batch

    def _fail(self, partition: int) -> None:
        if not self.happens_now(f"{self.kind}-{partition}"):
            if self.kind == "give-up":
                raise InjectedError("again in the middle of a task")
            return
        if self.kind in {"raise", "shuffle"}:
            raise InjectedError("in the middle of a task")
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "pause" and partition == 0:
            (self.directory / "reached").write_bytes(b"!")  # FIFOs: each waits for the test
            (self.directory / "resume").read_bytes()
        if self.kind == "give-up":
            if partition == 0:
                (self.directory / "resume").read_bytes()  # a FIFO, as above
            raise InjectedError("in the middle of a task")

    def on_commit(self, when: str) -> None:
        """Fail the first commit, before or after its effect."""
        if self.kind == f"commit-{when}" and self.happens_now(self.kind):
            raise InjectedError(f"commit fails {when} its effect")


def _turned(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(list(batches))
    for batch in reversed(table.to_batches()):
        yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))


class FailingBatchWriter(PulsarBatchWriter):
    """The batch writer, failing."""

    failure: Failure

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return super().write(self.failure.inject(iterator))


class FailingStreamWriter(PulsarStreamWriter):
    """The stream writer, failing."""

    failure: Failure

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return super().write(self.failure.inject(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        self.failure.on_commit("before")
        super().commit(messages, batchId)
        self.failure.on_commit("after")


class FailingDataSource(PulsarDataSource):
    """The connector, with writers that fail."""

    @classmethod
    def name(cls) -> str:
        return "pulsar-failing"

    def _rest(self) -> dict[str, str]:
        return {name: text for name, text in self.options.items() if not name.startswith("test.")}

    def writer(self, schema: StructType, overwrite: bool) -> Any:  # noqa: FBT001 - Spark's
        writer = FailingBatchWriter(make_plan(self._rest(), schema))
        writer.failure = Failure.of(self.options)
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: FBT001, N802 - Spark's
        writer = FailingStreamWriter(make_plan(self._rest(), schema))
        writer.failure = Failure.of(self.options)
        return writer
