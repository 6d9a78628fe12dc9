"""Checks that a task has received all of its rows before it sorts them (edge).

If an operator before the sink fails, Spark shuts down the connection to the sink's worker, and a
stream of record batches that ends between two of them looks complete. The worker is killed soon
after, but it may have sent a part of the rows by then. That is harmless if they are the first rows,
which each attempt sends, and wrong if rows are sorted first. A complete stream is followed by more
bytes, by which Spark marks the end of the rows.

Spark passes only an iterator to writers, so the stream is looked up in the frames of Spark's
worker.

Source: BasePythonRunner and pyspark.worker of Spark 4.3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from pulsar_py.common.errors import PulsarError

_WORKER: Final = "pyspark.worker"
_INPUT: Final = "infile"


class TaskInputError(PulsarError):
    """A task received only a part of its rows, or can't find out whether it received all."""


def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The record batches of a task; raises at the end unless they were all.

    Raises:
        TaskInputError: After the last batch, if rows are missing, or if that can't be found out.
    """
    yield from batches
    if TaskContext.get() is not None:  # None outside of Spark
        check_whole(worker_input())


def check_whole(stream: object) -> None:
    """Check that a worker's input stream has more bytes after the rows.

    Raises:
        TaskInputError: It does not, or it can't be inspected.
    """
    # Buffered readers have `peek`, and so have the reader and writer pairs of sockets.
    peek = getattr(stream, "peek", None)
    if peek is None:
        raise TaskInputError(
            f"sequenceOrder: this version of Spark has no {_INPUT} in {_WORKER}, which shows"
            " whether all rows of a task came; sequenceOrder input does without it"
        )
    if not peek(1):
        raise TaskInputError(
            "the rows of this task ended early, because the task failed before the sink; none of"
            " them was sent"
        )


def worker_input() -> object:
    """The stream that this worker reads, from its frames; None if there is none."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - CPython's, as traceback uses it
    while frame is not None:
        if _INPUT in frame.f_locals and _is_worker(frame):
            return frame.f_locals[_INPUT]
        frame = frame.f_back
    return None


def _is_worker(frame: FrameType) -> bool:
    """Whether a frame is of `pyspark.worker`; its `__name__` is `__main__` without the daemon."""
    spec = frame.f_globals.get("__spec__")
    return _WORKER in (frame.f_globals.get("__name__"), getattr(spec, "name", None))
