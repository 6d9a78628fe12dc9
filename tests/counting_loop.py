"""An event loop that counts the calls of its turns: who keeps others waiting, without a clock."""

from __future__ import annotations

import asyncio
import sys
from types import FrameType


class CountingLoop(asyncio.SelectorEventLoop):
    """Knows how many calls its busiest turn has made since it was told to count."""

    def __init__(self) -> None:
        super().__init__()
        self.most_calls = 0
        self._calls = 0

    def count(self) -> None:
        self.most_calls = self._calls = 0
        sys.setprofile(self._on_event)

    def stop_counting(self) -> None:
        sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, argument: object) -> None:
        del frame, argument
        if event in ("call", "c_call"):
            self._calls += 1

    def _run_once(self) -> None:
        self._calls = 0
        super()._run_once()  # type: ignore[misc]  # asyncio's own, which the stubs leave out
        self.most_calls = max(self.most_calls, self._calls)
