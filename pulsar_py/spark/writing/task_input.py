"""Checks that a task has got all of its rows before it sorts them (edge).

Where an operator before the sink fails, Spark shuts the connection to the sink's worker down, and a
stream of record batches that ends between two of them reads as a complete one. The worker is killed
soon after, and has sent a part of the rows by then: harmless where that is the first part, as each
attempt sends it, and wrong where rows are sorted first. A complete stream is followed by more
bytes: Spark says that there are no more rows.

Spark hands writers an iterator alone, so the stream is looked up where Spark's worker has it.

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
    """A task got a part of its rows only, or it is not known whether it got all of them."""


def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The record batches of a task, checked to be all of them.

    Raises:
        TaskInputError: Behind the last one, if rows are missing, or if that can't be known.
    """
    yield from batches
    if TaskContext.get() is not None:  # None outside of Spark
        check_whole(worker_input())


def check_whole(stream: object) -> None:
    """Check that the stream that a worker reads goes on behind the rows.

    Raises:
        TaskInputError: It does not, or it can't be looked at.
    """
    # Buffered readers have it, and so have the reader and writer pairs of sockets.
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
