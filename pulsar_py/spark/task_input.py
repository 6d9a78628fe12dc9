"""Whether a task's rows have come to their end, or to that of a task that fails (edge).

Where something before the sink fails, Spark shuts the connection to the sink's worker down, and a
stream of record batches that ends between two of them reads as one that is through. The worker is
killed soon after, and what it sends by then is a part of the rows: harmless where that is the first
part, as each attempt has it, and wrong where rows are sorted first. A stream that is through is
followed by more: Spark says that there are no more rows.

Spark hands writers an iterator alone, so the stream is looked for where Spark's worker has it.

Source: BasePythonRunner and pyspark.worker of Spark 4.3.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from io import BufferedReader
from types import FrameType
from typing import Final

import pyarrow as pa

from pulsar_py.common.errors import PulsarError

_WORKER: Final = "pyspark.worker"
_INPUT: Final = "infile"


class TaskInputError(PulsarError):
    """A task got a part of its rows, or nobody can tell whether it got all of them."""


def whole(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The record batches of a task.

    Raises:
        TaskInputError: After the last one, if Spark has more that will not come.
    """
    yield from batches
    check_whole(_worker_frame())


def check_whole(worker: FrameType | None) -> None:
    """Whether all rows have come to a worker that is where `worker` says; None: to none of Spark's.

    Raises:
        TaskInputError: They have not, or that can't be told.
    """
    if worker is None:
        return
    stream = worker.f_locals.get(_INPUT)
    if not isinstance(stream, BufferedReader):
        raise TaskInputError(
            f"sequenceOrder: this version of Spark has no {_INPUT} in {_WORKER}, which tells"
            " whether all rows of a task have come"
        )
    if not stream.peek(1):
        raise TaskInputError(
            "the rows of this task ended early, because it failed before the sink; none was sent"
        )


def _worker_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - CPython's, as traceback uses it
    while frame is not None:
        if frame.f_globals.get("__name__") == _WORKER and _INPUT in frame.f_locals:
            return frame
        frame = frame.f_back
    return None
