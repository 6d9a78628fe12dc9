"""Reporters of progress on standard error: bars on a terminal, otherwise lines of JSON (edge).

A pipeline reports `Step`s: an event, how far it is, and further fields. Rows a second are those of
the step, as Spark measured them. Results alone go to standard output.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from pulsar_py.common.loops.clock import Clock, SystemClock

Value = str | int | float | bool | None

SPARK: Final = "spark"
"""The event of a line that Java printed."""
ENDS: Final = frozenset({"finished", "stopped", "failed"})
"""Events that a run ends with."""
_SHOWN_FIELDS: Final = ("rows", "rows_per_second", "dropped_as_late")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An event of a pipeline, with numbers."""

    event: str
    """Of the pipeline: `started`, `stage`, `batch`, `committed`, `sent`, `restarting`, `stopped`,
    `finished`, `failed`. Of the package's logs: `warning`, `error`. Of Java: `spark`, with a
    `line`."""
    done: int | None = None
    total: int | None = None
    fields: Mapping[str, Value] = field(default_factory=dict)


class Reporter(Protocol):
    """Shows steps. One thread at a time may call it; `Shared` makes one safe for several."""

    def report(self, step: Step) -> None:
        """Show a step."""

    def close(self) -> None:
        """End the output; no step is reported after that."""


class Silent:
    """A reporter that shows nothing."""

    def report(self, step: Step) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Shared:
    """A reporter that several threads share; it drops steps that come after its end."""

    def __init__(self, reporter: Reporter) -> None:
        """Own the reporter: nobody else may use or close it."""
        self._reporter = reporter
        self._lock = threading.RLock()  # showing a step may log a warning, which is a step
        self._is_closed = False

    def report(self, step: Step) -> None:
        """Show a step while no other thread does."""
        with self._lock:
            if not self._is_closed:
                self._reporter.report(step)

    def close(self) -> None:
        """Close the reporter; later steps are dropped."""
        with self._lock:
            self._is_closed = True
            self._reporter.close()


class JsonLines:
    """A reporter that writes each step as one line of JSON, and flushes it, for other programs."""

    def __init__(self, pipeline: str, stream: TextIO, clock: Clock) -> None:
        """Write to a stream; each line has the pipeline's name and the clock's time."""
        self._pipeline = pipeline
        self._stream = stream
        self._clock = clock

    def report(self, step: Step) -> None:
        """Write the step's line."""
        print(json_line(self._pipeline, step, self._clock.wall_time_millis()), file=self._stream)
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: each line was flushed."""


def json_line(pipeline: str, step: Step, now_millis: int) -> str:
    """A step as a JSON object, without fields that are None."""
    moment = datetime.fromtimestamp(now_millis / 1000, UTC).isoformat(timespec="milliseconds")
    line: dict[str, Value] = {
        "time": moment.replace("+00:00", "Z"),
        "pipeline": pipeline,
        "event": step.event,
        "done": step.done,
        "total": step.total,
        **step.fields,
    }
    return json.dumps({name: value for name, value in line.items() if value is not None})


class Bars:
    """A reporter that draws one bar anew for each step; other events are printed above it."""

    def __init__(self, pipeline: str, console: Console) -> None:
        """Draw nothing until the first step with numbers."""
        self._pipeline = pipeline
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=console,
            transient=True,
        )
        self._bar: TaskID | None = None  # None before the first step with numbers

    def report(self, step: Step) -> None:
        """Move the bar, or print the event's line."""
        numbers = shown_numbers(step.fields)
        if step.event in {"stage", "batch"}:
            if self._bar is None:
                self._progress.start()
                self._bar = self._progress.add_task(self._pipeline, total=None, numbers="")
            self._progress.update(
                self._bar, completed=step.done or 0, total=step.total, numbers=numbers
            )
            return
        line = self._line(step)
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _line(self, step: Step) -> str:
        if step.event == SPARK:
            return str(step.fields["line"])
        rest = " ".join(f"{name}={value}" for name, value in step.fields.items())
        return f"{self._pipeline}: {step.event} {rest}".rstrip()

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


def shown_numbers(fields: Mapping[str, Value]) -> str:
    """The numbers that stand behind a bar."""
    shown = [(name, fields[name]) for name in _SHOWN_FIELDS if fields.get(name) is not None]
    return "  ".join(
        f"{name.replace('_', ' ')} {value:,.0f}"
        for name, value in shown
        if isinstance(value, int | float)
    )


def reporter(pipeline: str, stream: TextIO | None = None, *, is_json: bool = False) -> Reporter:
    """A reporter for a stream, standard error by default.

    It draws bars on a terminal, and writes lines of JSON elsewhere, or where `is_json` says so.
    """
    stream = sys.stderr if stream is None else stream
    if stream.isatty() and not is_json:
        return Shared(Bars(pipeline, Console(file=stream)))
    return Shared(JsonLines(pipeline, stream, SystemClock()))
