"""Warnings as steps of a pipeline."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from pulsar_py.pipeline.running.log_steps import logs_as_steps
from pulsar_py.pipeline.running.progress import reporter
from pulsar_py.pipeline.running.watch import Watch
from pulsar_py.pipeline.settings.secrets import Redactor

LOGGER = logging.getLogger("pulsar_py.pipeline.tables.delta")


@pytest.fixture
def printed() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    with logs_as_steps(Watch(reporter("export", stream), redactor=Redactor(["hush-hush"]))):
        yield stream


@pytest.fixture
def elsewhere() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


def test_a_warning_has_its_fields_and_no_secrets(
    printed: io.StringIO, elsewhere: io.StringIO
) -> None:
    about = {"table": "t", "pipeline": "p", "reason": OSError("hush-hush"), "files": 2}
    LOGGER.warning("%d files are left", 2, extra=about)
    LOGGER.info("nothing of importance")
    (line,) = map(json.loads, printed.getvalue().splitlines())
    del line["time"]
    assert line == {
        "pipeline": "export",
        "event": "warning",
        "message": "2 files are left",
        "table": "t",
        "pipeline_": "p",
        "reason": "***",
        "files": 2,
    }
    assert elsewhere.getvalue() == ""


def test_an_error_has_what_was_raised(printed: io.StringIO) -> None:
    LOGGER.error("batch failed", exc_info=ValueError("no number"))
    (line,) = map(json.loads, printed.getvalue().splitlines())
    assert (line["event"], line["error"]) == ("error", "ValueError: no number")


def test_logs_are_as_before_afterwards(elsewhere: io.StringIO) -> None:
    stream = io.StringIO()
    with logs_as_steps(Watch(reporter("export", stream))):
        pass
    LOGGER.warning("files are left")
    assert stream.getvalue() == ""
    assert elsewhere.getvalue() == "files are left\n"


class Broken(io.StringIO):
    """A stream whose reader is gone."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError(f"{len(text)} characters")


def test_who_warns_goes_on_though_nobody_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    with logs_as_steps(Watch(reporter("export", Broken()))):
        LOGGER.warning("files are left")
    assert "BrokenPipeError" in capsys.readouterr().err
