"""A handler of `logging` that reports this package's warnings as steps of a pipeline.

Otherwise they would be plain text among the pipeline's lines of JSON, or in its bars.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pulsar_py.common.log_format import fields_of
from pulsar_py.pipeline.running.progress import Value
from pulsar_py.pipeline.running.watch import Watch

_PACKAGE: Final = __name__.partition(".")[0]
_TAKEN: Final = frozenset({"time", "pipeline", "event", "done", "total"})
"""Fields of each progress line; a log record's field of that name gets a `_` appended."""


class LogSteps(logging.Handler):
    """Reports log records from WARNING on, with their fields and the text of their exception."""

    def __init__(self, watch: Watch) -> None:
        """Report to that watch, from whatever thread logs."""
        super().__init__(logging.WARNING)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        """Report a step `warning` or `error`; a reporter's failure does not reach the caller."""
        try:
            self._report(record)
        except Exception:  # noqa: BLE001 - as each handler of `logging` does
            self.handleError(record)

    def _report(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {
            "message": record.getMessage()
        }  # Any: passed as `**fields`, which mypy matches with `done` and `total` too
        for name, value in fields_of(record).items():
            fields[f"{name}_" if name in _TAKEN else name] = _value(value)
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        self._watch.report("error" if record.levelno >= logging.ERROR else "warning", **fields)


def _value(value: object) -> Value:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


@contextmanager
def logs_as_steps(watch: Watch) -> Iterator[None]:
    """Report this package's warnings as steps while the context lasts, and print them nowhere."""
    package = logging.getLogger(_PACKAGE)
    handler = LogSteps(watch)
    before = package.propagate
    package.addHandler(handler)
    package.propagate = False
    try:
        yield
    finally:
        package.propagate = before
        package.removeHandler(handler)
