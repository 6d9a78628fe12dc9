"""What the supervisor of a service is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_py.cli.supervision import supervised
from pulsar_py.common.loops.clock import SystemClock


@contextmanager
def supervisor(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        receiver.setblocking(False)
        yield receiver


def told(receiver: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(receiver.recv(4096).decode())
        except BlockingIOError:
            return found


@pytest.mark.parametrize("is_abstract", [False, True])
async def test_it_hears_of_the_beginning_and_the_end(*, is_abstract: bool, tmp_path: Path) -> None:
    address = f"@pulsar-py-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    with supervisor(address) as receiver:
        async with supervised(SystemClock(), {"NOTIFY_SOCKET": address}):
            ready = told(receiver)
        assert ready == [f"READY=1\nMAINPID={os.getpid()}\nSTATUS=serving"]
        assert told(receiver) == ["STOPPING=1\nSTATUS=stopping"]


async def test_signs_of_life_come_twice_within_the_time_they_are_expected(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    clock = SystemClock()
    environment = {
        "NOTIFY_SOCKET": address,
        "WATCHDOG_USEC": "20000",
        "WATCHDOG_PID": str(os.getpid()),
    }
    with supervisor(address) as receiver:
        async with supervised(clock, environment):
            signs: list[str] = []
            while signs.count("WATCHDOG=1") < 3:
                await clock.sleep(0.005)
                signs += told(receiver)


@pytest.mark.parametrize("more", [{"WATCHDOG_USEC": "soon"}, {"WATCHDOG_PID": "1"}, {}])
async def test_no_signs_are_sent_unless_they_are_expected(
    more: dict[str, str], tmp_path: Path
) -> None:
    address = str(tmp_path / "notify")
    usual = {"WATCHDOG_USEC": "10000"} if more.keys() == {"WATCHDOG_PID"} else {}
    with supervisor(address) as receiver:
        async with supervised(SystemClock(), {"NOTIFY_SOCKET": address, **usual, **more}):
            await SystemClock().sleep(0.03)
            assert len(told(receiver)) == 1


async def test_without_a_supervisor_or_with_one_that_is_gone_the_service_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with supervised(SystemClock(), {}):
        pass
    assert not caplog.records
    async with supervised(SystemClock(), {"NOTIFY_SOCKET": str(tmp_path / "none")}):
        pass
    assert "the supervisor was not told" in caplog.text
