"""Steps as JSON lines and as bars."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console

from pulsar_py.pipeline.running.progress import (
    Bars,
    Shared,
    Silent,
    Step,
    json_line,
    reporter,
    shown_numbers,
)

BATCH = Step(event="batch", done=5, fields={"rows": 5, "rows_per_second": 1234.5, "note": None})


def test_a_line() -> None:
    assert json.loads(json_line("export", BATCH, 1000)) == {
        "time": "1970-01-01T00:00:01.000Z",
        "pipeline": "export",
        "event": "batch",
        "done": 5,
        "rows": 5,
        "rows_per_second": 1234.5,
    }


def test_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    lines = reporter("export", stream)
    lines.report(BATCH)
    lines.close()
    assert json.loads(stream.getvalue())["event"] == "batch"


def test_what_comes_after_the_end_is_not_shown() -> None:
    stream = io.StringIO()
    lines = reporter("export", stream)
    lines.close()
    lines.report(BATCH)
    assert stream.getvalue() == ""


def test_several_threads_take_turns() -> None:
    class Slow(Silent):
        showing = 0

        def report(self, step: Step) -> None:
            assert not self.showing
            self.showing += 1
            threading.Event().wait(0.001)
            self.showing -= 1

    shared = Shared(Slow())
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(shared.report, [BATCH] * 20))


def test_bars_on_a_terminal() -> None:
    stream = io.StringIO()
    bars = Bars("copy", Console(file=stream, force_terminal=True, width=120))
    bars.report(Step(event="started", fields={"master": "local"}))
    bars.report(BATCH)
    bars.report(Step(event="stage", done=1, total=2))
    bars.report(Step(event="spark", fields={"line": "26/11/22 WARN [Utils] " + "long " * 40}))
    bars.close()
    assert "26/11/22 WARN [Utils] " + "long " * 39 in stream.getvalue()
    assert "copy: started master=local" in stream.getvalue()
    assert "1/2" in stream.getvalue()


def test_numbers_behind_a_bar() -> None:
    assert shown_numbers(BATCH.fields) == "rows 5  rows per second 1,234"


def test_silence() -> None:
    silent = Silent()
    silent.report(BATCH)
    silent.close()


def test_programs_get_lines_at_a_terminal_too() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    lines = reporter("export", stream, is_json=True)
    lines.report(BATCH)
    lines.close()
    assert json.loads(stream.getvalue())["event"] == "batch"
