"""Reasons in Spark's errors."""

from __future__ import annotations

import pytest

from pulsar_py.common.errors import ConnectError
from pulsar_py.pipeline.running.failures import is_final, reason_of

WORKER_ERROR = """[STREAM_FAILED] Query [id = 5] terminated with exception: Job aborted
Traceback (most recent call last):
  File "source.py", line 5, in read
    raise error
pulsar_py.common.errors.SchemaSerializationError: t 12:3: no JSON
\tat org.apache.spark.Executor.run(Executor.java:5)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WORKER_ERROR, True),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] no such column", True),
        ("pulsar_py.common.errors.TopicNotFoundError: nosuch: there is no such topic", True),
        ("pulsar_py.common.errors.AuthorizationError: not you", True),
        ("pulsar_py.common.errors.ConnectError: refused", False),
        ("Task lost", False),
    ],
)
def test_what_no_restart_helps(text: str, *, expected: bool) -> None:
    assert is_final(RuntimeError(text)) is expected


def test_reasons() -> None:
    assert reason_of(RuntimeError(WORKER_ERROR)) == "SchemaSerializationError: t 12:3: no JSON"
    assert reason_of(ConnectError("refused")) == "ConnectError: refused"
    assert reason_of(ValueError("one\ntwo")) == "ValueError: one"
    assert reason_of(KeyError()) == "KeyError: "


class CapturedError(Exception):
    """As pyspark has errors of the JVM."""

    def __init__(self, text: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self._cause = cause


def test_the_reason_may_be_told_by_a_cause_alone() -> None:
    wrapped = CapturedError("[STREAM_FAILED] Writing job failed.", CapturedError(WORKER_ERROR))
    assert reason_of(wrapped) == "SchemaSerializationError: t 12:3: no JSON"
    java = """An error occurred while calling o99.start.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Executor.run(Executor.java:5)
Caused by: java.io.FileNotFoundException: /afile/x (Not a directory)
"""
    assert reason_of(CapturedError(java)) == "FileNotFoundException: /afile/x (Not a directory)"


def test_a_reason_of_ours_comes_before_what_it_led_to() -> None:
    text = f"{WORKER_ERROR}Caused by: java.io.EOFException: the worker ended"
    assert reason_of(RuntimeError(text)) == "SchemaSerializationError: t 12:3: no JSON"
