"""Tells the supervisor of a service, such as systemd, that the broker is ready, alive, or ending.

The supervisor names a socket in NOTIFY_SOCKET; without it nothing is sent. With WATCHDOG_USEC it
expects a sign of life within that many microseconds, else it ends the process: the event loop
itself sends it, in half that time, so that a broker whose loop stands still is started anew.

Source: the manual of systemd, sd_notify(3) and sd_watchdog_enabled(3).
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner

__all__ = ["supervised"]

logger = logging.getLogger(__name__)

_MICROSECONDS = 1_000_000


@asynccontextmanager
async def supervised(
    clock: Clock, environment: Mapping[str, str] | None = None
) -> AsyncIterator[None]:
    """Tell the supervisor of readiness and of the end, with watchdog notices in between."""
    given = os.environ if environment is None else environment
    address = given.get("NOTIFY_SOCKET", "")
    if not address:
        yield
        return
    interval_seconds = _interval_seconds(given)
    _tell(address, f"READY=1\nMAINPID={os.getpid()}\nSTATUS=serving")
    tasks = TaskOwner("supervision")
    if interval_seconds is not None:
        tasks.spawn(_live(address, clock, interval_seconds), "signs of life")
    try:
        yield
    finally:
        _tell(address, "STOPPING=1\nSTATUS=stopping")
        await tasks.close()


def _interval_seconds(environment: Mapping[str, str]) -> float | None:
    """Seconds between two watchdog notices; None if none are expected of this process."""
    text = environment.get("WATCHDOG_USEC", "")
    if not text.isdecimal() or not int(text):
        return None
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(text) / _MICROSECONDS / 2


async def _live(address: str, clock: Clock, interval_seconds: float) -> None:
    while True:
        _tell(address, "WATCHDOG=1")
        await clock.sleep(interval_seconds)


def _tell(address: str, text: str) -> None:
    """Send one datagram; a supervisor that can't be told is no reason to end."""
    path = f"\0{address[1:]}" if address.startswith("@") else address
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.sendto(text.encode(), path)
    except OSError as error:
        logger.warning(
            "the supervisor was not told", extra={"socket": address, "error": str(error)}
        )
