"""Warnings of this package as steps of a pipeline, where they would be text among its progress."""

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
"""What lines of progress have by those names is the step's."""


class LogSteps(logging.Handler):
    """Reports records from WARNING on: the event, what it is about, and an error's text."""

    def __init__(self, watch: Watch) -> None:
        """Tell that watch, from any thread."""
        super().__init__(logging.WARNING)
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        """Report a step `warning`, or `error`; whoever warns goes on, even if nobody reads it."""
        try:
            self._report(record)
        except Exception:  # noqa: BLE001 - as each handler of `logging` does
            self.handleError(record)

    def _report(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {
            "message": record.getMessage()
        }  # Any: the checker takes them for others
        for name, value in fields_of(record).items():
            fields[f"{name}_" if name in _TAKEN else name] = _value(value)
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        self._watch.report("error" if record.levelno >= logging.ERROR else "warning", **fields)


def _value(value: object) -> Value:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


@contextmanager
def logs_as_steps(watch: Watch) -> Iterator[None]:
    """Report this package's warnings while the context lasts; nobody else prints them."""
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
