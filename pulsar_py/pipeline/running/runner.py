"""Runs Spark jobs and streaming queries so that they report progress and can be stopped (edge).

A job runs in a thread of its own. The caller's thread polls its progress and the request to stop,
so signals are handled while Spark is busy. A query is stopped between two micro-batches if one ends
soon, otherwise within one. Both are safe, because a batch that was not committed is repeated.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pulsar_py.pipeline.running.sessions import activate
from pulsar_py.pipeline.running.watch import StoppedError, Watch

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

T = TypeVar("T")

POLL_SECONDS: Final = 1
STOP_SECONDS: Final = 30.0
"""How long a job or a micro-batch may go on after the request to stop."""


def run_job(session: SparkSession, work: Callable[[], T], watch: Watch) -> T:
    """Run a function that runs Spark jobs, in a thread, and report the progress of their tasks.

    Raises:
        StoppedError: The watch requested a stop; the jobs were cancelled.
        Exception: Whatever `work` raised.
    """
    from pyspark.util import inheritable_thread_target  # noqa: PLC0415 - loads pyspark

    context = session.sparkContext
    group = f"pulsar-py-{uuid.uuid4().hex}"
    outcome: list[Callable[[], T]] = []

    def run() -> None:
        try:
            activate(session)
            context.setJobGroup(group, "pulsar-py pipeline", interruptOnCancel=True)
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            outcome.append(_raiser(error))
        else:
            outcome.append(lambda: result)

    # The checker takes the wrapper for one without arguments, or for its inner decorator.
    target: Any = inheritable_thread_target(session)
    thread = threading.Thread(target=target(run), name="pulsar-py job", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(POLL_SECONDS)
        if watch.stop.is_set() and thread.is_alive():
            _cancel(context, group, thread)
            raise StoppedError
        if thread.is_alive():
            _report_stages(session, group, watch)
    return outcome[0]()


def _cancel(context: SparkContext, group: str, thread: threading.Thread) -> None:
    """Cancel the group's jobs again and again until the work ends, or takes too long.

    Spark cancels only jobs that run already, and the work may be about to start another one.
    """
    for _ in range(round(STOP_SECONDS / POLL_SECONDS)):
        context.cancelJobGroup(group)
        thread.join(POLL_SECONDS)
        if not thread.is_alive():
            return


def in_threads(
    session: SparkSession, parts: Sequence[Callable[[], T]], threads_count: int
) -> list[T]:
    """Run parts of a job in several threads, in the job's group; returns what they return.

    After a failure no part begins. A cancelled part counts as failed, so that a cancellation ends
    the parts that wait, too.

    Raises:
        Exception: The first one that a part raised.
    """
    from pyspark.util import inheritable_thread_target  # noqa: PLC0415 - loads pyspark

    target: Any = inheritable_thread_target(session)  # as in run_job

    has_failed = threading.Event()

    def activated(part: Callable[[], T]) -> T | None:
        if has_failed.is_set():
            return None
        try:
            activate(session)
            return part()
        except BaseException:  # raised again
            has_failed.set()  # before this thread takes the next part from the pool's queue
            raise

    with ThreadPoolExecutor(threads_count, "pulsar-py part") as pool:
        begun = [pool.submit(target(partial(activated, each))) for each in parts]
        done, _ = wait(begun, return_when=FIRST_EXCEPTION)
    for each in done:
        each.result()
    return [each.result() for each in begun]


def _raiser(error: BaseException) -> Callable[[], Any]:  # Any: never returns
    def fail() -> Any:  # Any: the same
        raise error

    return fail


def _report_stages(session: SparkSession, group: str, watch: Watch) -> None:
    tracker = session.sparkContext.statusTracker()
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        information = tracker.getJobInfo(job)
        for stage in information.stageIds if information else ():
            if found := tracker.getStageInfo(int(stage)):
                done += found.numCompletedTasks
                total += found.numTasks
    if total:
        watch.report("stage", done=done, total=total)


def run_query(query: StreamingQuery, watch: Watch) -> int:
    """Wait until a streaming query ends; returns the number of rows it read.

    Raises:
        StreamingQueryException: The query failed.
        StoppedError: The watch requested a stop.
    """
    reported = -1
    rows = 0
    while True:
        is_over = query.awaitTermination(POLL_SECONDS)
        for progress in query.recentProgress:
            if progress["batchId"] > reported:
                reported = progress["batchId"]
                rows += progress["numInputRows"]
                _report_batch(watch, progress, rows)
        if is_over:
            return rows
        if watch.stop.is_set():
            _stop(query)
            raise StoppedError


def _report_batch(watch: Watch, progress: Mapping[str, Any], rows: int) -> None:  # Any: JSON
    watch.report(
        "batch",
        done=rows,
        batch_id=progress["batchId"],
        rows=progress["numInputRows"],
        rows_per_second=round(progress.get("processedRowsPerSecond") or 0.0, 1),
        dropped_as_late=_dropped_as_late(progress) or None,
    )


def _dropped_as_late(progress: Mapping[str, Any]) -> int:  # Any: JSON
    """Rows behind the watermark, as Spark counts them: after each task has aggregated its rows.

    So all late rows of one window and key in one task count as one.
    """
    return sum(each["numRowsDroppedByWatermark"] for each in progress.get("stateOperators", ()))


def _stop(query: StreamingQuery) -> None:
    """Stop a query after its current micro-batch, or within it if that takes too long.

    Where one batch follows another at once, the next one has begun by then; it is repeated by the
    next start of the query.
    """
    newest = _newest_batch(query)
    polls = round(STOP_SECONDS / POLL_SECONDS)
    for _ in range(polls):
        is_idle = not query.status["isTriggerActive"] or query.awaitTermination(POLL_SECONDS)
        if is_idle or _newest_batch(query) != newest:
            break
    query.stop()


def _newest_batch(query: StreamingQuery) -> int | None:
    """The newest micro-batch that has ended; None before the first."""
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])
