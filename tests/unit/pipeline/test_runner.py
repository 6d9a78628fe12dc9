"""Restarts, signals, environments and reasons; tests/spark has jobs and queries."""

from __future__ import annotations

import os
import random
import signal
import threading
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from pulsar_py.common.clock import SystemClock
from pulsar_py.common.errors import ConfigurationError, ConnectError
from pulsar_py.pipeline.runner import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    RestartPolicy,
    _stop,
    in_threads,
    is_final,
    reason_of,
    run_job,
    run_with_restarts,
    stop_on_signals,
)
from pulsar_py.pipeline.watch import StoppedError, Watch
from tests.unit.pipeline.test_watch import Steps

QUICK = RestartPolicy(max_restarts=2, initial_seconds=0.001, maximum_seconds=0.001)
WORKER_ERROR = """[STREAM_FAILED] Query [id = 5] terminated with exception: Job aborted
Traceback (most recent call last):
  File "source.py", line 5, in read
    raise error
pulsar_py.common.errors.SchemaSerializationError: t 12:3: no JSON
\tat org.apache.spark.Executor.run(Executor.java:5)
"""


class Attempts:
    """Fails as often as wanted, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)


def run(attempts: Attempts, steps: Steps, policy: RestartPolicy = QUICK) -> int:
    return run_with_restarts(
        attempts,
        policy=policy,
        watch=Watch(steps),
        clock=SystemClock(),
        chance=random.Random(1),
    )


def test_it_is_started_again_after_a_failure() -> None:
    steps, attempts = Steps(), Attempts(ConnectError("a"), ConnectError("b"))
    assert run(attempts, steps) == EXIT_DONE
    assert attempts.count == 3
    assert [each.event for each in steps.steps] == ["restarting", "restarting", "finished"]


def test_it_is_given_up_after_too_many() -> None:
    steps, attempts = Steps(), Attempts(*[ConnectError("gone")] * 5)
    assert run(attempts, steps) == EXIT_FAILED
    assert attempts.count == 3
    assert steps.steps[-1].fields["reason"] == "ConnectError: gone"


def test_what_would_fail_again_is_not_repeated() -> None:
    attempts = Attempts(ConfigurationError("topic: none"))
    assert run(attempts, Steps()) == EXIT_USAGE
    assert attempts.count == 1


def test_who_is_stopped_is_done() -> None:
    steps = Steps()
    assert run(Attempts(StoppedError()), steps) == EXIT_DONE
    assert steps.steps[-1].event == "stopped"


def test_a_failure_after_the_wish_to_stop_is_no_failure() -> None:
    watch = Watch(Steps())
    watch.stop.set()
    code = run_with_restarts(
        Attempts(ConnectError("cut")),
        policy=QUICK,
        watch=watch,
        clock=SystemClock(),
        chance=random.Random(1),
    )
    assert code == EXIT_DONE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_mean_the_wish_to_stop(number: signal.Signals) -> None:
    stop = threading.Event()
    before = signal.getsignal(number)
    with stop_on_signals(stop):
        os.kill(os.getpid(), number)
        assert stop.wait(10)
        assert signal.getsignal(number) == signal.SIG_DFL, "a second one ends the process"
    assert signal.getsignal(number) == before


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


class Query:
    """One whose micro-batches follow one another without a pause, three polls each."""

    status: ClassVar = {"isTriggerActive": True}

    def __init__(self) -> None:
        self.polls_count = 0
        self.is_stopped = False

    @property
    def lastProgress(self) -> dict[str, int] | None:  # noqa: N802 - Spark's
        return {"batchId": self.polls_count // 3} if self.polls_count >= 3 else None

    def awaitTermination(self, seconds: int) -> bool:  # noqa: N802 - Spark's
        assert seconds == 1
        self.polls_count += 1
        return False

    def stop(self) -> None:
        self.is_stopped = True


def test_a_query_that_never_rests_is_stopped_after_its_batch() -> None:
    query = Query()
    for expected in (3, 6):
        _stop(cast("Any", query))
        assert query.is_stopped
        assert query.polls_count == expected


def test_no_part_begins_after_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled jobs fail, and jobs of parts that began then would not be cancelled."""
    util = pytest.importorskip("pyspark.util")
    monkeypatch.setattr(util, "inheritable_thread_target", lambda _: lambda part: part)
    monkeypatch.setattr("pulsar_py.pipeline.runner.activate", lambda _: None)
    begun: list[int] = []
    are_there = threading.Event()

    def part(number: int) -> None:
        begun.append(number)
        assert are_there.wait(5)
        if number == 1:
            raise ConnectError("cancelled")

    parts = [partial(part, number) for number in range(20)]
    parts[0] = are_there.set
    with pytest.raises(ConnectError):
        in_threads(cast("Any", None), parts, 1)
    assert begun == [1]


def test_jobs_that_begin_after_the_wish_to_stop_are_cancelled_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the first is planned there is nothing to cancel."""
    util = pytest.importorskip("pyspark.util")
    monkeypatch.setattr(util, "inheritable_thread_target", lambda _: lambda run: run)
    monkeypatch.setattr("pulsar_py.pipeline.runner.activate", lambda _: None)
    monkeypatch.setattr("pulsar_py.pipeline.runner.POLL_SECONDS", 0.01)
    monkeypatch.setattr("pulsar_py.pipeline.runner.STOP_SECONDS", 2)
    is_planned, is_cancelled = threading.Event(), threading.Event()

    def cancel(_group: str) -> None:
        (is_cancelled if is_planned.is_set() else is_planned).set()

    def work() -> None:
        assert is_planned.wait(5)
        assert is_cancelled.wait(5)

    context = SimpleNamespace(cancelJobGroup=cancel, setJobGroup=lambda *_, **__: None)
    watch = Watch()
    watch.stop.set()
    with pytest.raises(StoppedError):
        run_job(cast("Any", SimpleNamespace(sparkContext=context)), work, watch)
    assert is_cancelled.is_set()
