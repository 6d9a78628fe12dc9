"""Waits for what real servers do, which tells nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return when a condition holds; it is looked at again and again."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def freeze(process: subprocess.Popen[Any]) -> None:
    """Stop all threads of a child; returns when all have stopped.

    The signal takes effect only when the first of them is scheduled: on a busy machine the others
    would go on answering meanwhile.
    """
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
