"""Counts how many calls of a coroutine function are under way at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest


class AtOnce:
    """The most calls that were under way together, of functions that are watched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = 0
        self._count = 0
        self._monkeypatch = monkeypatch

    def watch(self, owner: object, name: str) -> None:
        """Count calls of a method, or a function of a module; each takes some turns of the loop."""
        original: Callable[..., Awaitable[Any]] = getattr(owner, name)

        async def counted(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            self.most = max(self.most, self._count)
            try:
                for _ in range(3):
                    await asyncio.sleep(0)
                return await original(*arguments, **options)
            finally:
                self._count -= 1

        self._monkeypatch.setattr(owner, name, counted)
