"""Logs of processes that nobody sets logging up in, such as Spark's planners and workers (edge).

Python prints the mere event of a warning there, and what it is about, the topic and how many, is in
its fields.
"""

from __future__ import annotations

import logging

from pulsar_py.common.log_format import TextFormatter

_PACKAGE = __name__.partition(".")[0]


class _OursWithFields(TextFormatter):
    """Records of this package on one line with their fields, others as ever."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name.partition(".")[0] == _PACKAGE
        return super().format(record) if is_ours else logging.Formatter.format(self, record)


def show_fields() -> None:
    """Show the fields of this package's records where logging is not set up; nothing elsewhere."""
    last_resort = logging.lastResort
    if last_resort is not None and last_resort.formatter is None:
        last_resort.setFormatter(_OursWithFields())
