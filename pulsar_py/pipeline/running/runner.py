"""Jobs and queries that can be stopped, and restarts with back-off (edge).

A job runs in a thread of its own while the caller's thread looks at progress and at the wish to
stop, so that signals are served although Spark is busy. A query is stopped between two
micro-batches where that comes soon; both are safe, because what was not committed is repeated.

Exit codes: 0 done, or stopped as asked; 1 failed, restarts included; 2 an option, a column or a
permission is wrong, and no restart would help.
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
"""How long a micro-batch may go on after the wish to stop."""


def run_job(session: SparkSession, work: Callable[[], T], watch: Watch) -> T:
    """Do what runs Spark jobs, and report its tasks.

    Raises:
        StoppedError: The wish to stop came first; the jobs were cancelled.
    """
    from pyspark.util import inheritable_thread_target  # noqa: PLC0415 - late on purpose

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
    """Cancel jobs until the work ends, or takes too long: only those that run can be."""
    for _ in range(round(STOP_SECONDS / POLL_SECONDS)):
        context.cancelJobGroup(group)
        thread.join(POLL_SECONDS)
        if not thread.is_alive():
            return


def in_threads(
    session: SparkSession, parts: Sequence[Callable[[], object]], threads_count: int
) -> None:
    """Do parts of a job side by side, in its group; after a failure none is begun.

    So do those end that are cancelled: jobs that came later would not be cancelled with them.

    Raises:
        Exception: The first that one of them raised.
    """
    from pyspark.util import inheritable_thread_target  # noqa: PLC0415 - late on purpose

    target: Any = inheritable_thread_target(session)  # as in run_job

    has_failed = threading.Event()

    def activated(part: Callable[[], object]) -> None:
        if has_failed.is_set():
            return
        try:
            activate(session)
            part()
        except BaseException:
            has_failed.set()  # here, as this thread goes on with the next part at once
            raise

    with ThreadPoolExecutor(threads_count, "pulsar-py part") as pool:
        begun = [pool.submit(target(partial(activated, each))) for each in parts]
        done, _ = wait(begun, return_when=FIRST_EXCEPTION)
    for each in done:
        each.result()


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
    """Wait for a streaming query; returns how many rows it took in.

    Raises:
        StreamingQueryException: It failed.
        StoppedError: The wish to stop came first.
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
    """What came behind the watermark, as Spark counts it: rows that a task has put together.

    So of one window and key there is one for each task, however many rows it had.
    """
    return sum(each["numRowsDroppedByWatermark"] for each in progress.get("stateOperators", ()))


def _stop(query: StreamingQuery) -> None:
    """Stop a query when its micro-batch is through, or in one that takes too long.

    Where batches follow one another the next one has begun then, and is repeated.
    """
    newest = _newest_batch(query)
    polls = round(STOP_SECONDS / POLL_SECONDS)
    for _ in range(polls):
        is_idle = not query.status["isTriggerActive"] or query.awaitTermination(POLL_SECONDS)
        if is_idle or _newest_batch(query) != newest:
            break
    query.stop()


def _newest_batch(query: StreamingQuery) -> int | None:
    """The newest one that is through."""
    progress = query.lastProgress
    return None if progress is None else int(progress["batchId"])
