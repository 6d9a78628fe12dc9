"""Progress on stderr: bars on a terminal, one JSON object a line otherwise (edge).

A pipeline reports `Step`s: how far it is, and numbers that say more. Rows a second are those of the
step as Spark measured them. Standard output belongs to results.
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

from pulsar_py.common.clock import Clock, SystemClock

Value = str | int | float | bool | None

SPARK: Final = "spark"
"""The event that is a line of Java's."""
_SHOWN_FIELDS: Final = ("rows", "rows_per_second", "dropped_as_late")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened."""

    event: str
    """`started`, `stage`, `batch`, `committed`, `restarting`, `stopped`, `finished`, `failed`; what
    others say meanwhile: `warning`, `error`, and `spark` with a `line` of Java's."""
    done: int | None = None
    total: int | None = None
    fields: Mapping[str, Value] = field(default_factory=dict)


class Reporter(Protocol):
    """Takes steps as they come, from one thread at a time; `Shared` lets more of them."""

    def report(self, step: Step) -> None:
        """Show it."""

    def close(self) -> None:
        """Nothing comes any more."""


class Silent:
    """Shows nothing."""

    def report(self, step: Step) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Shared:
    """A reporter for several threads; what they say after its end is not shown."""

    def __init__(self, reporter: Reporter) -> None:
        """Takes over the reporter."""
        self._reporter = reporter
        self._lock = threading.RLock()  # a warning may come of what is being shown
        self._is_closed = False

    def report(self, step: Step) -> None:
        """Show it, one at a time."""
        with self._lock:
            if not self._is_closed:
                self._reporter.report(step)

    def close(self) -> None:
        """Nothing is shown any more."""
        with self._lock:
            self._is_closed = True
            self._reporter.close()


class JsonLines:
    """One JSON object a line, flushed: for logs and for other programs."""

    def __init__(self, pipeline: str, stream: TextIO, clock: Clock) -> None:
        """Lines name the pipeline and the time."""
        self._pipeline = pipeline
        self._stream = stream
        self._clock = clock

    def report(self, step: Step) -> None:
        """Write a line."""
        print(json_line(self._pipeline, step, self._clock.wall_time_millis()), file=self._stream)
        self._stream.flush()

    def close(self) -> None:
        """Lines are out already."""


def json_line(pipeline: str, step: Step, now_millis: int) -> str:
    """A step as JSON; what is None is left out."""
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
    """One bar that is drawn again and again; other events are printed above it."""

    def __init__(self, pipeline: str, console: Console) -> None:
        """Draws from the first step on."""
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
        """Move the bar, or print a line."""
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
        """Take the bar away."""
        self._progress.stop()


def shown_numbers(fields: Mapping[str, Value]) -> str:
    """What stands behind a bar."""
    shown = [(name, fields[name]) for name in _SHOWN_FIELDS if fields.get(name) is not None]
    return "  ".join(
        f"{name.replace('_', ' ')} {value:,.0f}"
        for name, value in shown
        if isinstance(value, int | float)
    )


def reporter(pipeline: str, stream: TextIO | None = None) -> Reporter:
    """Bars if the stream (stderr) is a terminal, JSON lines otherwise."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        return Shared(Bars(pipeline, Console(file=stream)))
    return Shared(JsonLines(pipeline, stream, SystemClock()))
