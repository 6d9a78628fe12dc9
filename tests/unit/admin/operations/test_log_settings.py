"""The log of a process, changed while it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pulsar_py.common.log_format import JsonFormatter, TextFormatter
from tests.unit.admin.resources.conftest import Admin

PATH = "/admin/v2/brokers/logging"


@pytest.fixture(autouse=True)
def handler() -> Iterator[logging.Handler]:
    """As the command sets it up; everything is put back."""
    root, own = logging.getLogger(), logging.getLogger("pulsar_py.server")
    levels = root.level, own.level
    ours = logging.StreamHandler()
    ours.setFormatter(TextFormatter())
    root.addHandler(ours)
    yield ours
    root.removeHandler(ours)
    root.setLevel(levels[0])
    own.setLevel(levels[1])


async def test_level_and_form_change_and_are_told(admin: Admin, handler: logging.Handler) -> None:
    logging.getLogger().setLevel("INFO")
    assert (await admin.get(PATH))["format"] == "text"
    assert await admin.status("PUT", PATH, {"level": "DEBUG", "format": "json"}) == 200
    assert logging.getLogger().level == logging.DEBUG
    assert isinstance(handler.formatter, JsonFormatter)
    found = await admin.get(PATH)
    assert (found["level"], found["format"]) == ("DEBUG", "json")
    await admin.call("PUT", PATH, {"format": "text"})
    assert isinstance(handler.formatter, TextFormatter)
    assert logging.getLogger().level == logging.DEBUG


async def test_a_logger_has_a_level_of_its_own_and_gives_it_back(admin: Admin) -> None:
    await admin.call("PUT", PATH, {"loggers": {"pulsar_py.server": "ERROR"}})
    assert (await admin.get(PATH))["loggers"]["pulsar_py.server"] == "ERROR"
    await admin.call("PUT", PATH, {"loggers": {"pulsar_py.server": None}})
    assert "pulsar_py.server" not in (await admin.get(PATH))["loggers"]


@pytest.mark.parametrize(
    "body",
    [
        {"level": "LOUD"},
        {"format": "xml"},
        {"level": 5},
        {"loggers": {"asyncio": "DEBUG"}},
        {"loggers": {"pulsar_py.server": "LOUD"}},
        {"loggers": {"pulsar_py.server": 5}},
        {"loggers": {f"pulsar_py.x{number}": "INFO" for number in range(101)}},
        {"verbose": True},
        [],
    ],
)
async def test_what_makes_no_sense_changes_nothing(admin: Admin, body: object) -> None:
    before = await admin.get(PATH)
    mixed = {"level": "ERROR", **body} if isinstance(body, dict) and "level" not in body else body
    assert await admin.status("PUT", PATH, mixed) == 400
    assert await admin.get(PATH) == before
