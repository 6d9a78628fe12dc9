"""Jobs and queries that can be stopped, and restarts with back-off (edge).

A job runs in a thread of its own while the caller's thread looks at progress and at the wish to
stop, so that signals are served although Spark is busy. A query is stopped between two
micro-batches where that comes soon; both are safe, because what was not committed is repeated.

Exit codes: 0 done, or stopped as asked; 1 failed, restarts included; 2 an option, a column or a
permission is wrong, and no restart would help.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pulsar_py.common.backoff import Backoff
from pulsar_py.common.clock import Clock
from pulsar_py.common.errors import PulsarError
from pulsar_py.pipeline.sessions import activate
from pulsar_py.pipeline.watch import StoppedError, Watch

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

T = TypeVar("T")

EXIT_DONE: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2

POLL_SECONDS: Final = 1
STOP_SECONDS: Final = 30.0
"""How long a micro-batch may go on after the wish to stop."""
HEALTHY_SECONDS: Final = 300.0
"""An attempt that lived so long begins the count of restarts anew."""


# --- jobs and queries ----------------------------------------------------------------------------


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
        except BaseException:  # raised again
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


# --- signals and restarts ------------------------------------------------------------------------


_SHOW_CURSOR: Final = b"\x1b[?25h"


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT mean the wish to stop; a second one ends the process at once.

    At once means by the system: an exception in the middle of a call to Java only makes more.
    """
    before: dict[signal.Signals, Any] = {}  # Any: handlers, as `signal` has them

    def on_signal(number: int, _frame: object) -> None:
        stop.set()
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _SHOW_CURSOR)  # bars hide it, and may not come to an end
        signal.signal(number, signal.SIG_DFL)

    for each in (signal.SIGTERM, signal.SIGINT):
        before[each] = signal.signal(each, on_signal)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often a pipeline that fails is started again."""

    # In a row; None for no limit.
    max_restarts: int | None = 3
    initial_seconds: float = 1.0
    maximum_seconds: float = 60.0


def run_with_restarts(
    attempt: Callable[[], object],
    *,
    policy: RestartPolicy,
    watch: Watch,
    clock: Clock,
    chance: random.Random,
) -> int:
    """Run until it ends, is stopped, or fails too often; the exit code."""
    backoff = Backoff(
        chance, initial_seconds=policy.initial_seconds, maximum_seconds=policy.maximum_seconds
    )
    failures = 0
    while True:
        began = clock.monotonic_seconds()
        try:
            attempt()
        except StoppedError:
            watch.report("stopped")
            return EXIT_DONE
        except Exception as error:  # noqa: BLE001 - the outermost edge: told, and tried again
            if watch.stop.is_set():
                watch.report("stopped", reason=reason_of(error))
                return EXIT_DONE
            if is_final(error):
                watch.report("failed", reason=reason_of(error))
                return EXIT_USAGE
            if clock.monotonic_seconds() - began >= HEALTHY_SECONDS:
                failures = 0
                backoff.reset()
            failures += 1
            if policy.max_restarts is not None and failures > policy.max_restarts:
                watch.report("failed", reason=reason_of(error), restarts=failures - 1)
                return EXIT_FAILED
            delay = backoff.next_delay(clock.monotonic_seconds())
            watch.report(
                "restarting", reason=reason_of(error), restart=failures, seconds=round(delay, 1)
            )
            if watch.stop.wait(delay):
                watch.report("stopped")
                return EXIT_DONE
        else:
            watch.report("finished")
            return EXIT_DONE


_FINAL: Final = re.compile(
    r"\b(?:(?:Invalid)?Configuration|InvalidServiceUrl|InvalidTopicName|Authentication|Authorization"
    r"|TopicNotFound|IncompatibleSchema|SchemaSerialization|SinkReplay|NotAllowed|TableSchema|DataLoss)Error\b"
    r"|\[(?:UNRESOLVED_|PARSE_|DATATYPE_MISMATCH|INVALID_|MISSING_|TABLE_OR_VIEW_NOT_FOUND)"
)
_ERROR_LINE: Final = re.compile(
    r"^(?:: |Caused by: )?((?:[A-Za-z_][\w.]*\.)?)([A-Z]\w*(?:Error|Exception)): (.+)$"
)
_WRAPPERS: Final = {"PythonException", "SparkException", "StreamingQueryException"}
"""What tells no more than that something failed."""


def is_final(error: BaseException) -> bool:
    """Whether the same would go wrong again; errors of workers come as text alone."""
    name = "" if not isinstance(error, PulsarError) else type(error).__name__
    return any(_FINAL.search(f"{name} {each}") for each in _causes(error))


def reason_of(error: BaseException) -> str:
    """The sentence that says what is wrong: in Spark's texts it ends a traceback, or a cause's.

    One of ours before others, which may be about what it led to.
    """
    texts = [str(each) for each in _causes(error)]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    if isinstance(error, PulsarError) or not lines:
        return f"{type(error).__name__}: {error}"
    found = [match for line in lines if (match := _ERROR_LINE.match(line))]
    found = [match for match in found if match[2] not in _WRAPPERS]
    ours = [match for match in found if match[1].startswith("pulsar_py.")]
    if found:
        _, name, text = (ours or found)[-1].groups()
        return f"{name}: {text}"
    return f"{type(error).__name__}: {lines[0]}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what led to it, as Spark's errors know it; each of them may tell more."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = getattr(cause, "_cause", None)
