"""Log records show their fields where logging is not set up."""

from __future__ import annotations

import io
import logging

import pytest

from pulsar_py.spark.shared.logs import show_fields


def test_records_of_ours_have_their_fields_where_nobody_set_logging_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed = io.StringIO()
    last_resort = logging.StreamHandler(printed)
    monkeypatch.setattr(logging, "lastResort", last_resort)
    show_fields()

    for name in ("pulsar_py.spark.reading.read_task", "elsewhere"):
        record = logging.LogRecord(name, logging.WARNING, "", 1, "dropped %d", (3,), None)
        record.topic = "t"
        last_resort.handle(record)

    ours, other = printed.getvalue().splitlines()
    assert ours.endswith("WARNING pulsar_py.spark.reading.read_task: dropped 3 topic=t")
    assert other == "dropped 3"


def test_a_formatter_of_somebody_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    last_resort, formatter = logging.StreamHandler(), logging.Formatter()
    last_resort.setFormatter(formatter)
    monkeypatch.setattr(logging, "lastResort", last_resort)
    show_fields()
    assert last_resort.formatter is formatter
    monkeypatch.setattr(logging, "lastResort", None)
    show_fields()
