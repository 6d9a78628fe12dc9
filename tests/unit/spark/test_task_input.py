"""Whether all rows of a task have come, told by what follows them on the connection."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from pulsar_py.spark.task_input import TaskInputError, check_whole, whole

SOURCE = """
def main(infile, work):
    return work()
"""


def in_worker(infile: object, work: Callable[[], object]) -> object:
    """Run something as Spark's worker does."""
    module: dict[str, Any] = {"__name__": "pyspark.worker"}
    exec(compile(SOURCE, "worker.py", "exec"), module)
    return module["main"](infile, work)


def after(data: bytes) -> io.BufferedReader:
    """A connection on which that comes, and then its end."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(data)
    stream = ours.makefile("rb")
    ours.close()
    return stream


def test_rows_behind_which_something_follows_are_whole() -> None:
    with after(b"\xff\xff\xff\xfc") as stream:
        assert in_worker(stream, lambda: list(whole([1, 2]))) == [1, 2]
        assert stream.read() == b"\xff\xff\xff\xfc"


def test_rows_behind_which_the_connection_ends_are_not() -> None:
    found: list[object] = []
    with after(b"") as stream, pytest.raises(TaskInputError, match="ended early"):
        in_worker(stream, lambda: found.extend(whole([1, 2])))
    assert found == [1, 2]


def test_a_spark_that_does_not_tell_is_an_error() -> None:
    with pytest.raises(TaskInputError, match=r"no infile in pyspark\.worker"):
        in_worker(object(), lambda: list(whole([1])))


def test_outside_of_spark_nothing_is_asked() -> None:
    nowhere: FrameType | None = None
    check_whole(nowhere)
    assert list(whole([1])) == [1]
