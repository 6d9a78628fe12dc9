"""`Contained`: runs users' code so that its errors are counted and logged, and go no further.

A hook is called and never awaited, so what comes out of it is its own, be it `CancelledError` or
the `SystemExit` of a `sys.exit()`: it neither cancels the broker's task nor ends its process. Only
`KeyboardInterrupt` goes on, as it can come from outside in the middle of a call.

A hook may fail for each of a million messages, so at most one error a second is logged of each
hook; the line says how many there were since the last one.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Final

from pulsar_py.common.loops.clock import Clock

logger = logging.getLogger(__name__)

LOG_INTERVAL_SECONDS: Final = 1.0


class HookErrors:
    """The errors of all hooks of one broker, by the hook's name."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counts: dict[str, int] = {}

    @property
    def total(self) -> int:
        """All errors since the start."""
        return sum(self.counts.values())


class Contained:
    """A context manager around each call of one hook; it may be entered again and again."""

    __slots__ = ("_errors", "_logged_at", "_name", "_unlogged_count")

    def __init__(self, name: str, errors: HookErrors) -> None:
        """`name` is that of the user's class and perhaps its method."""
        self._name = name
        self._errors = errors
        self._logged_at = -LOG_INTERVAL_SECONDS
        self._unlogged_count = 0

    def __enter__(self) -> None:
        """Nothing happens before the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        counts = self._errors.counts
        counts[self._name] = counts.get(self._name, 0) + 1
        now = self._errors.clock.monotonic_seconds()
        if now - self._logged_at >= LOG_INTERVAL_SECONDS:
            extra = {"hook": self._name, "not_logged": self._unlogged_count}
            logger.error("hook %s failed", self._name, extra=extra, exc_info=error)
            self._logged_at = now
            self._unlogged_count = 0
        else:
            self._unlogged_count += 1
        return True
