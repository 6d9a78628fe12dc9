"""Shows the fields of log records in processes where logging is not set up (edge).

Spark's planners and workers are such processes: Python prints a warning's event alone there, while
its topic and counts stand in its fields.
"""

from __future__ import annotations

import logging

from pulsar_py.common.log_format import TextFormatter

_PACKAGE = __name__.partition(".")[0]


class _OursWithFields(TextFormatter):
    """Formats records of this package with their fields, on one line; others as Python does."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.partition(".")[0] == _PACKAGE
        return super().format(record) if is_ours else logging.Formatter.format(self, record)


def show_fields() -> None:
    """Show the fields of this package's records, where logging is not set up."""
    last_resort = logging.lastResort
    if last_resort is not None and last_resort.formatter is None:
        last_resort.setFormatter(_OursWithFields())
