"""Blocks that fail: undone, or logged."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pulsar_py.common.failures import ErrorsLogged, OnFailure, OnFailureAwait

logger = logging.getLogger(__name__)


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyboardInterrupt])
async def test_a_block_that_fails_is_undone_and_its_error_goes_on(
    error: type[BaseException],
) -> None:
    undone = []

    async def undo() -> None:
        undone.append("awaited")

    with pytest.raises(error), OnFailure(lambda: undone.append("called")):
        raise error
    with pytest.raises(error):
        async with OnFailureAwait(undo):
            raise error
    assert undone == ["called", "awaited"]


async def test_a_block_that_succeeds_is_not_undone() -> None:
    async def undo() -> None:
        raise AssertionError

    with OnFailure(lambda: 1 / 0):
        pass
    async with OnFailureAwait(undo):
        pass


def test_errors_are_logged_and_end_with_the_block(caplog: pytest.LogCaptureFixture) -> None:
    with ErrorsLogged(logger, "failed at %s", "noon", extra={"hour": 12}):
        raise ValueError("x")
    record = caplog.records[0]
    assert (record.getMessage(), record.levelname) == ("failed at noon", "ERROR")
    assert record.__dict__["hour"] == 12
    assert "ValueError: x" in caplog.text


def test_cancelling_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(asyncio.CancelledError), ErrorsLogged(logger, "failed"):
        raise asyncio.CancelledError
    assert not caplog.records
