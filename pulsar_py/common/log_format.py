"""Formats log records: as a line of text for people, or a line of JSON for machines.

Messages are short lower-case events. Their fields come through `extra` and are written after them,
in the order given; a field is any attribute of a record beyond logging's own.
"""

from __future__ import annotations

import json
import logging
from typing import Final

_OWN_ATTRIBUTES: Final = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
)
_PLAIN_TYPES: Final = (str, int, float, bool, type(None))


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The fields that came through `extra`."""
    return {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}


class TextFormatter(logging.Formatter):
    """`2026-01-31T10:15:30.123 INFO pulsar_py.storage.bookie: journal rolled bytes=512`."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line; a traceback follows on lines of its own."""
        head = f"{self.formatTime(record)} {record.levelname} {record.name}: {record.getMessage()}"
        parts = [head, *(f"{name}={_word(value)}" for name, value in fields_of(record).items())]
        line = " ".join(parts)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, event, then the fields."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03d"

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON; a traceback is the field `exception`."""
        line: dict[str, object] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in fields_of(record).items():
            line[name] = value if isinstance(value, _PLAIN_TYPES) else str(value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _word(value: object) -> str:
    """A value as one word: quoted where it holds blanks, quotes or what is not printable.

    Names come from clients: nothing in them may begin a line, or be a command to a terminal.
    """
    text = str(value)
    is_printable = text.isprintable()
    if text and is_printable and not any(each.isspace() or each in "\"'=" for each in text):
        return text
    return json.dumps(text, ensure_ascii=not is_printable)
