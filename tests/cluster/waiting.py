"""Waits for what real servers do, which tells nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return when a condition holds; it is looked at again and again."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)
