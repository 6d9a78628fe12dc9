from __future__ import annotations

import asyncio
import logging
import socket
import threading

import pytest

from pulsar_py.common.loops.loop_watch import LoopWatch

LIMIT_SECONDS = 0.05


def watched(work: object, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Run a plain function inside a loop that is watched; what was logged."""

    async def run() -> None:
        watch = LoopWatch(
            asyncio.get_running_loop(),
            service_url="pulsar://here:1",
            limit_seconds=LIMIT_SECONDS,
        )
        try:
            await asyncio.sleep(LIMIT_SECONDS)
            work()  # type: ignore[operator] # a function
        finally:
            await asyncio.to_thread(watch.stop)

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    return [record.getMessage() for record in caplog.records]


def waits_for_an_answer() -> None:
    """As a client without a broker that answers: it ends with a time-out."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=10 * LIMIT_SECONDS) as client,
        client.makefile("rb") as file,
        pytest.raises(TimeoutError),
    ):
        file.readline()


def test_a_client_that_blocks_the_loop_is_told_with_its_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = watched(waits_for_an_answer, caplog)
    assert len(found) == 1, "once a standstill"
    assert found[0].startswith("test_loop_watch.py:")
    assert "(socket) blocks the event loop of the broker pulsar://here:1" in found[0]
    assert "asyncio.to_thread" in found[0]


def test_a_loop_that_waits_for_something_else_is_not_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert watched(lambda: threading.Event().wait(5 * LIMIT_SECONDS), caplog) == []


def test_a_loop_that_waits_for_work_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        watch = LoopWatch(asyncio.get_running_loop(), service_url="", limit_seconds=LIMIT_SECONDS)
        await asyncio.sleep(5 * LIMIT_SECONDS)
        watch.stop()

    before = threading.enumerate()
    asyncio.run(run())
    assert not caplog.records
    assert not [each for each in threading.enumerate() if each not in before]


async def test_it_ends_also_where_stop_comes_as_it_begins_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = LoopWatch(asyncio.get_running_loop(), service_url="", limit_seconds=0.03)
    cleared = watch._is_alive.clear

    def stopped_then_cleared() -> None:
        watch._stopping.set()
        watch._is_alive.set()
        cleared()

    monkeypatch.setattr(watch._is_alive, "clear", stopped_then_cleared)
    watch._thread.join(5)  # the loop does not turn meanwhile, as in `stop`
    assert not watch._thread.is_alive()
