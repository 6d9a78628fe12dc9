"""Queries that are stopped, and jobs in threads; tests/spark runs real ones."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from pulsar_py.common.errors import ConnectError
from pulsar_py.pipeline.running.runner import _stop, in_threads, run_job
from pulsar_py.pipeline.running.watch import StoppedError, Watch


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
    monkeypatch.setattr("pulsar_py.pipeline.running.runner.activate", lambda _: None)
    begun: list[int] = []
    are_there = threading.Event()

    def part(number: int) -> None:
        begun.append(number)
        assert are_there.wait(30)
        if number == 1:
            raise ConnectError("cancelled")

    parts = [partial(part, number) for number in range(20)]
    parts[0] = are_there.set
    with pytest.raises(ConnectError):
        in_threads(cast("Any", None), parts, 1)
    assert begun == [1]


def test_parts_return_their_results_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    util = pytest.importorskip("pyspark.util")
    monkeypatch.setattr(util, "inheritable_thread_target", lambda _: lambda part: part)
    monkeypatch.setattr("pulsar_py.pipeline.running.runner.activate", lambda _: None)
    parts = [partial(pow, number, 2) for number in range(9)]
    assert in_threads(cast("Any", None), parts, 3) == [number**2 for number in range(9)]


def test_jobs_that_begin_after_the_wish_to_stop_are_cancelled_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the first is planned there is nothing to cancel."""
    util = pytest.importorskip("pyspark.util")
    monkeypatch.setattr(util, "inheritable_thread_target", lambda _: lambda run: run)
    monkeypatch.setattr("pulsar_py.pipeline.running.runner.activate", lambda _: None)
    monkeypatch.setattr("pulsar_py.pipeline.running.runner.POLL_SECONDS", 0.01)
    monkeypatch.setattr("pulsar_py.pipeline.running.runner.STOP_SECONDS", 2)
    is_planned, is_cancelled = threading.Event(), threading.Event()

    def cancel(_group: str) -> None:
        (is_cancelled if is_planned.is_set() else is_planned).set()

    def work() -> None:
        assert is_planned.wait(30)
        assert is_cancelled.wait(30)

    context = SimpleNamespace(cancelJobGroup=cancel, setJobGroup=lambda *_, **__: None)
    watch = Watch()
    watch.stop.set()
    with pytest.raises(StoppedError):
        run_job(cast("Any", SimpleNamespace(sparkContext=context)), work, watch)
    assert is_cancelled.is_set()
