"""The work of `pulsar-py pipeline`: makes settings of options, and runs pipelines (edge).

There is a function for each command that makes its `Job`. `run` checks the job, opens the session,
restarts the pipeline after failures, and returns the exit code. `lag` alone has no job and no
session: it measures once, without Spark.

Third-party packages it may import: rich, pyspark.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from pulsar_py.cli.answering.answers import JSON, answer
from pulsar_py.cli.answering.json_lines import in_camel_case, json_line
from pulsar_py.cli.pipeline import command as commands
from pulsar_py.cli.pipeline.options import (
    Options,
    admin_of,
    cluster_of,
    lake_of,
    range_of,
    redactor_of,
    streaming_of,
    streaming_or_batch,
    table_or_topic,
    target_of,
    without_variables,
)
from pulsar_py.common.errors import ConfigurationError, PulsarError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.pipeline.jobs import Job
from pulsar_py.pipeline.measuring.lags import (
    HEADERS,
    NO_LAGS,
    Lag,
    lag_block,
    lag_cells,
    lag_fields,
)
from pulsar_py.pipeline.running.failures import is_final, reason_of
from pulsar_py.pipeline.running.log_steps import logs_as_steps
from pulsar_py.pipeline.running.progress import ENDS, SPARK, Step, reporter
from pulsar_py.pipeline.running.restarts import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_USAGE,
    RestartPolicy,
    run_with_restarts,
    stop_on_signals,
)
from pulsar_py.pipeline.running.sessions import (
    DEFAULT_MASTER,
    JavaEndedError,
    SessionSettings,
    check_java,
    close_session,
    open_session,
)
from pulsar_py.pipeline.running.submit import submit_line, submit_note
from pulsar_py.pipeline.running.watch import StoppedError, Watch
from pulsar_py.pipeline.settings import Guarantee, TopicTarget
from pulsar_py.pipeline.settings.secrets import Redactor
from pulsar_py.pipeline.settings.texts import parse_assignments, parse_duration, parse_time
from pulsar_py.pipeline.tables import Target

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


MAX_RESTARTS = 3
_MAX_WIDTH = 10_000


def run(name: str, options: Options, arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code.

    Args:
        name: The command's name.
        options: Its options, by parameter name.
        arguments: The words after `pipeline`, for --print-submit.
    """
    redactor = redactor_of(options)
    try:
        if name == "lag":
            return _run_lag(options)
        conf = parse_assignments(options["conf"], "--conf")
        is_printed = options["print_submit"]
        job = JOBS[name](without_variables(options) if is_printed else options)
        if is_printed:
            master = options["master"] or "spark://HOST:7077"
            main_file = commands.__file__
            line = submit_line(main_file, arguments, master=master, conf=conf)
            answer(options["output"], {"pipeline": name, "command": line}, line)
            if (note := submit_note(arguments, conf)) is not None:
                print(f"pulsar-py: {note}", file=sys.stderr)  # noqa: T201 - beside the result
            return EXIT_DONE
    except PulsarError as error:
        code = EXIT_USAGE if is_final(error) else EXIT_FAILED
        reason = redactor.redacted(reason_of(error))
        if name == "lag":  # which reports no progress
            print(f"Error: {reason}", file=sys.stderr)  # noqa: T201 - what went wrong
            return code
        told = _Told(name, options["output"])
        told.report(Step(event="failed", fields={"reason": reason}))
        return told.answered(code)
    return _run_spark(name, options, conf, job, redactor)


def _run_spark(
    name: str, options: Options, conf: Mapping[str, str], job: Job, redactor: Redactor
) -> int:
    max_restarts = options["max_restarts"]
    if max_restarts is None and options.get("is_once", True):
        max_restarts = MAX_RESTARTS if job.is_repeatable else 0
    told = _Told(name, options["output"])
    watch = Watch(told, redactor=redactor)
    settings = SessionSettings(
        app_name=f"pulsar-py {name}",
        master=options["master"],
        conf=conf,
        on_java_line=lambda line: watch.report(SPARK, line=line),
    )
    with stop_on_signals(watch.stop), logs_as_steps(watch):
        watch.report("started", master=settings.master or DEFAULT_MASTER)
        session: list[SparkSession] = []

        def attempt() -> None:
            if not session:
                job.check()
                session.append(open_session(settings))
            if watch.stop.is_set():
                raise StoppedError
            try:
                job.work(session[0], watch)
            except Exception:  # of Spark or of the job: the next attempt needs a session
                _drop_if_dead(session)
                raise

        try:
            code = run_with_restarts(
                attempt,
                policy=RestartPolicy(max_restarts=max_restarts),
                watch=watch,
                clock=SystemClock(),
                chance=random.Random(),  # noqa: S311 - spreads delays, no secret
            )
        finally:
            watch.reporter.close()
            for each in session:
                close_session(each)
    return told.answered(code)


class _Told:
    """The reporter of a run, which keeps how it ended."""

    def __init__(self, name: str, output: str) -> None:
        self._name = name
        self._output = output
        self._reporter = reporter(name, is_json=output == JSON)
        self._end: Step | None = None  # the last step that told an end

    def report(self, step: Step) -> None:
        """Show a step."""
        if step.event in ENDS:
            self._end = step
        self._reporter.report(step)

    def close(self) -> None:
        """End the output."""
        self._reporter.close()

    def answered(self, code: int) -> int:
        """Print the outcome for programs; the exit code stays."""
        assert self._end is not None, "a run tells how it ended"
        told = {"pipeline": self._name, "outcome": self._end.event, **self._end.fields}
        answer(self._output, in_camel_case(told))
        return code


def _drop_if_dead(session: list[SparkSession]) -> None:
    """Close the session if Java has ended, so that the next attempt opens another one.

    Raises:
        JavaEndedError: Java has ended, which is the reason of the error before.
    """
    try:
        check_java(session[0])
    except JavaEndedError:
        close_session(session.pop())
        raise


def is_batch_repeatable(target: TopicTarget | None) -> bool:
    """Whether a batch keeps its guarantee when it is sent again after a failure.

    Exactly once it needs a name, by which the broker recognizes repeated rows.
    """
    return (
        target is None
        or target.idempotency_key is not None
        or target.guarantee is Guarantee.AT_LEAST_ONCE
    )


# --- commands ------------------------------------------------------------------------------------


def export_job(options: Options) -> Job:
    """The job of `export`."""
    from pulsar_py.pipeline.export import (  # loads pyarrow
        ExportSettings,
        default_checkpoint,
        export,
    )
    from pulsar_py.pipeline.topics import with_columns

    target = Target.parse(options["to"])
    source = range_of(options, options["topic"])
    settings = ExportSettings(
        source=with_columns(source, *options["columns"]) if options["columns"] else source,
        lake=lake_of(options, target),
        streaming=streaming_of(options, default_checkpoint(target)),
        where=options["where"],
        select=options["select"],
    )
    return Job(
        work=lambda session, watch: export(session, settings, watch),
        source=settings.source,
        is_streaming=True,
        table=target,
        checkpoint=settings.streaming.checkpoint,
    )


def copy_job(options: Options) -> Job:
    """The job of `copy`."""
    from pulsar_py.pipeline.copy import CopySettings, copy

    streaming = streaming_or_batch(options)
    settings = CopySettings(
        source=range_of(options, options["topic"]),
        target=target_of(options, options["target"], name=options["name"]),
        streaming=streaming,
        where=options["where"],
        select=options["select"],
    )
    return Job(
        work=lambda session, watch: copy(session, settings, watch),
        source=settings.source,
        is_streaming=settings.streaming is not None,
        target=settings.target,
        checkpoint=None if streaming is None else streaming.checkpoint,
        is_repeatable=streaming is not None or is_batch_repeatable(settings.target),
    )


def replay_job(options: Options) -> Job:
    """The job of `replay`."""
    from dataclasses import replace

    from pulsar_py.pipeline.replay import (
        ReplaySettings,
        check,
        replay,
    )

    now = SystemClock().wall_time_millis()
    until = parse_time(options["until"], now)
    source = replace(range_of(options, options["topic"]), ending_millis=until)
    name = options["name"] or f"replay-{source.starting_millis}-{until}"
    settings = ReplaySettings(
        source=source,
        target=target_of(options, options["target"]),
        name=name,
        where=options["where"],
        select=options["select"],
    )
    made = settings.as_copy()  # raises for an empty range
    return Job(
        work=lambda session, watch: replay(session, settings, watch),
        source=made.source,
        target=settings.target,
        may_feed_itself=True,  # `check` refuses it unless the range has ended
        check_more=lambda: check(settings),
    )


def backfill_job(options: Options) -> Job:
    """The job of `backfill`."""
    from pulsar_py.pipeline.backfill import (  # loads pyarrow
        BackfillSettings,
        backfill,
        check,
    )

    order_by = options["order_by"]
    settings = BackfillSettings(
        source=Target.parse(options["source"]),
        target=target_of(options, options["target"]),
        name=options["name"],
        order_by=() if order_by is None else [each.strip() for each in order_by.split(",")],
        tasks=options["tasks"],
        rows_per_second=options["rate"],
        where=options["where"],
        select=options["select"],
        notes=None if options["notes"] is None else options["notes"].absolute(),
    )
    return Job(
        work=lambda session, watch: backfill(session, settings, watch),
        target=settings.target,
        table=settings.source,
        check_more=lambda: check(settings),
    )


def aggregate_job(options: Options) -> Job:
    """The job of `aggregate`."""
    from pulsar_py.pipeline.aggregate import (  # loads pyarrow
        AggregateSettings,
        aggregate,
        check,
    )

    streaming = streaming_or_batch(options)
    slide = options["slide"]
    settings = AggregateSettings(
        source=range_of(options, options["topic"]),
        keys=options["keys"],
        aggregates=options["agg"],
        window_seconds=parse_duration(options["window"]),
        slide_seconds=None if slide is None else parse_duration(slide),
        time_column=options["time_column"],
        watermark_seconds=parse_duration(options["watermark"]),
        where=options["where"],
        streaming=streaming,
        **table_or_topic(options),
    )
    check(settings)
    return Job(
        work=lambda session, watch: aggregate(session, settings, watch),
        source=settings.source,
        is_streaming=settings.streaming is not None,
        target=settings.topic,
        table=None if settings.lake is None else settings.lake.target,
        checkpoint=None if streaming is None else streaming.checkpoint,
        is_repeatable=streaming is not None or is_batch_repeatable(settings.topic),
    )


def compact_job(options: Options) -> Job:
    """The job of `compact`."""
    from pulsar_py.pipeline.compact import (  # loads pyarrow
        CompactSettings,
        compact,
    )

    source = range_of(options, options["topic"])
    settings = CompactSettings(source=source, **table_or_topic(options))
    return Job(
        work=lambda session, watch: compact(session, settings, watch),
        source=source,
        target=settings.topic,
        table=None if settings.lake is None else settings.lake.target,
        is_repeatable=is_batch_repeatable(settings.topic),
    )


def report_job(options: Options) -> Job:
    """The job of `report`."""
    from pulsar_py.pipeline.report import (
        ReportSettings,
        check,
        report,
    )

    source = range_of(options, options["topic"])
    admin = None if source.cluster.admin_url is None else admin_of(options, source.cluster)
    settings = ReportSettings(source=source, page=options["page"], admin=admin)
    return Job(
        work=lambda session, watch: report(session, settings, watch),
        source=source,
        check_more=lambda: check(settings),
    )


JOBS: Mapping[str, Callable[[Options], Job]] = {
    "export": export_job,
    "copy": copy_job,
    "replay": replay_job,
    "backfill": backfill_job,
    "aggregate": aggregate_job,
    "compact": compact_job,
    "report": report_job,
}


def _run_lag(options: Options) -> int:
    from pulsar_py.pipeline.lag import LagSettings, measure_lag

    cluster = cluster_of(options)
    admin = admin_of(options, cluster)
    if options["admin_url"] is not None and options["service_url"] == commands.DEFAULT_SERVICE_URL:
        cluster = replace(cluster, service_url=admin.url)  # the cluster that was named, by HTTP
    settings = LagSettings(
        admin=admin,
        topics=options["topics"],
        namespaces=options["namespaces"],
        checkpoint=options["checkpoint"],
        cluster=cluster,
    )
    lags = measure_lag(settings)
    lines = [json_line(in_camel_case(lag_fields(each))) for each in lags]
    if options["append_to"] is not None:
        _append(options["append_to"], lines)
    if not lags:
        print(f"pulsar-py: {NO_LAGS}", file=sys.stderr)  # noqa: T201 - beside no result
        return EXIT_DONE
    if options["output"] == "json":
        print(*lines, sep="\n")  # noqa: T201 - the result
        return EXIT_DONE
    _show_lags(lags)
    return EXIT_DONE


def _append(path: Path, lines: Sequence[str]) -> None:
    try:
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise ConfigurationError(
            f"--to: {path}: {error.strerror}; the lags can't be written"
        ) from None


def _show_lags(lags: Sequence[Lag]) -> None:
    """Print lags as a table, or as blocks on a terminal that is too narrow; no cell is cut off."""
    table = Table(*HEADERS)
    for each in lags:
        table.add_row(*lag_cells(each))
    console = Console(soft_wrap=True, markup=False, highlight=False)
    width = Console(width=_MAX_WIDTH).measure(table).maximum
    if console.is_terminal and width > console.width:
        for each in lags:
            console.print(lag_block(each))
        return
    console.width = width
    console.print(table)
