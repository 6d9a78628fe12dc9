"""Log records for systemd's journal begin with their priority, and no others do."""

from __future__ import annotations

import io
import logging
import os
import sys
from pathlib import Path

import pytest

from pulsar_py.cli.journal_log import log_handler
from pulsar_py.cli.standalone import set_up_logging


def record(level: int, message: str, error: Exception | None = None) -> logging.LogRecord:
    information = (type(error), error, None) if error else None
    return logging.LogRecord("pulsar_py.x", level, "x.py", 1, message, (), information)


def journal_of(file: io.TextIOWrapper) -> dict[str, str]:
    status = os.fstat(file.fileno())
    return {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}


def test_each_line_begins_with_its_priority(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w+") as file:
        handler = log_handler(file, journal_of(file))
        for level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
            handler.handle(record(getattr(logging, level), level))
        handler.handle(record(logging.ERROR, "failed", ValueError("a")))
        file.seek(0)
        assert file.read().splitlines() == [
            "<7>DEBUG",
            "<6>INFO",
            "<4>WARNING",
            "<3>ERROR",
            "<2>CRITICAL",
            "<3>failed",
            "<3>ValueError: a",
        ]


def test_who_is_not_the_journal_gets_plain_lines(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "log").open("w+") as file:
        for given in ({}, journal_of(journal), {"JOURNAL_STREAM": "nonsense"}):
            log_handler(file, given).handle(record(logging.ERROR, "failed"))
        file.seek(0)
        assert file.read() == "failed\n" * 3
    in_memory = io.StringIO()
    log_handler(in_memory, {"JOURNAL_STREAM": "1:2"}).handle(record(logging.ERROR, "failed"))
    assert in_memory.getvalue() == "failed\n"


def test_brokers_log_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    with (tmp_path / "journal").open("w+") as file:
        monkeypatch.setenv("JOURNAL_STREAM", journal_of(file)["JOURNAL_STREAM"])
        monkeypatch.setattr(sys, "stderr", file)
        try:
            set_up_logging(log_format="json", level="INFO")
            logging.getLogger("pulsar_py.x").warning("slow")
        finally:
            root.handlers[:], root.level = before
        file.seek(0)
        assert file.read().startswith('<4>{"time": ')
