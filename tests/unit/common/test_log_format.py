"""Log records as text and as JSON."""

from __future__ import annotations

import json
import logging
import sys

from pulsar_py.common.log_format import JsonFormatter, TextFormatter, fields_of


def record(message: str = "ledger closed", **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("pulsar_py.x", logging.INFO, "x.py", 1, message, (), None)
    made.__dict__.update(fields)
    return made


def test_fields_are_what_came_through_extra() -> None:
    assert fields_of(record(ledger_id=7, entries=3)) == {"ledger_id": 7, "entries": 3}


def test_text_puts_the_fields_behind_the_event() -> None:
    line = TextFormatter().format(record(ledger_id=7, topic="a b", note='say "x"', empty=""))
    assert line.endswith(
        'INFO pulsar_py.x: ledger closed ledger_id=7 topic="a b" note="say \\"x\\"" empty=""'
    )


def test_what_a_name_has_in_it_begins_no_line_and_is_no_command_to_a_terminal() -> None:
    for name in ("x\ny", "x\x1b[2Jy", "x\x9b2Jy", "x\u2028y", "x\ry"):
        line = TextFormatter().format(record(topic=name))
        assert line.isprintable(), line
    assert TextFormatter().format(record(topic="ä ö")).endswith('topic="ä ö"')


def test_json_is_one_object_a_line() -> None:
    line = json.loads(JsonFormatter().format(record(ledger_id=7, where=ValueError("ä\n"))))
    assert line.pop("time")
    assert line == {
        "level": "INFO",
        "logger": "pulsar_py.x",
        "event": "ledger closed",
        "ledger_id": 7,
        "where": "ä\n",
    }


def failed() -> logging.LogRecord:
    made = record("task failed")
    try:
        {}["x"]
    except KeyError:
        made.exc_info = sys.exc_info()
    return made


def test_tracebacks_are_kept() -> None:
    assert "KeyError" in json.loads(JsonFormatter().format(failed()))["exception"]
    assert "KeyError" in TextFormatter().format(failed()).partition("\n")[2]
