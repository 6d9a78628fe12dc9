"""A task has all of its rows if more bytes follow them on the connection."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import TaskContext

from pulsar_py.spark.writing.task_input import TaskInputError, whole, worker_input

SOURCE = """
def main(infile, work):
    return work()
"""


@pytest.fixture
def _in_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)


def in_worker(infile: object, work: Callable[[], object], name: str = "pyspark.worker") -> object:
    """Run something as Spark's worker does."""
    module: dict[str, Any] = {"__name__": name, "__spec__": ModuleSpec("pyspark.worker", None)}
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


@pytest.mark.usefixtures("_in_task")
def test_rows_behind_which_something_follows_are_whole() -> None:
    with after(b"\xff\xff\xff\xfc") as stream:
        assert in_worker(stream, lambda: list(whole([1, 2]))) == [1, 2]
        assert stream.read() == b"\xff\xff\xff\xfc"


@pytest.mark.usefixtures("_in_task")
def test_rows_behind_which_the_connection_ends_are_not() -> None:
    found: list[object] = []
    with after(b"") as stream, pytest.raises(TaskInputError, match="ended early"):
        in_worker(stream, lambda: found.extend(whole([1, 2])))
    assert found == [1, 2]


@pytest.mark.usefixtures("_in_task")
def test_a_worker_that_is_the_program_itself_reads_and_writes_one_connection() -> None:
    def read(reader: Any) -> object:  # Any: a pair takes buffered readers, too
        pair = io.BufferedRWPair(reader, io.BytesIO())
        return in_worker(pair, lambda: list(whole([1])), "__main__")

    with after(b"more") as stream:
        assert read(stream) == [1]
    with after(b"") as stream, pytest.raises(TaskInputError, match="ended early"):
        read(stream)


@pytest.mark.usefixtures("_in_task")
def test_a_spark_that_does_not_tell_is_an_error() -> None:
    with pytest.raises(TaskInputError, match=r"no infile in pyspark\.worker"):
        in_worker(object(), lambda: list(whole([1])))
    with pytest.raises(TaskInputError, match=r"no infile in pyspark\.worker"):
        list(whole([1]))


def test_outside_of_spark_nothing_is_asked() -> None:
    assert worker_input() is None
    assert list(whole([1])) == [1]
