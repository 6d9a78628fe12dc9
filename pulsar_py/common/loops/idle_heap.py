"""`IdleHeap`: gives freed memory back to the system once a busy process is idle again (edge).

The allocator of glibc keeps what was freed between blocks that are still in use: after millions of
entries went through the write cache that is some tens of megabytes. Giving it back takes about
10 ms for 70 MB, in which nobody can allocate; so it is done once after each busy time, when less
than a tenth of one processor was used for some seconds.

Until then what was freed stays (`keep_freed_memory`). By itself glibc gives back what is free at
the heap's end, over and over while the write cache breathes: the system then clears and maps the
same pages again, as large entries come in.

Source: none in Pulsar; `malloc_trim` and `mallopt` of glibc.
"""

from __future__ import annotations

from asyncio import TimerHandle
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from pulsar_py.common.loops.clock import Clock

INTERVAL_SECONDS: Final = 10.0
IDLE_SHARE: Final = 0.1
"""Of one processor; below it the process counts as idle."""

KEPT_BYTES: Final = 128 * 1024 * 1024
"""So much that is free at the heap's end is kept until the process is idle: a usual flush frees
less."""

_M_TRIM_THRESHOLD: Final = -1  # of glibc's malloc.h
_M_MMAP_THRESHOLD: Final = -3
_MAPPED_BYTES: Final = 32 * 1024 * 1024
"""Blocks from this size on have a mapping of their own; glibc's limit for it. Without it a fixed
threshold for trimming would give each block of 128 KB one."""


class IdleHeap:
    """The watch over one process, as long as the `with` block lasts. It has one timer."""

    def __init__(
        self, clock: Clock, cpu_seconds: Callable[[], float], give_back: Callable[[], object]
    ) -> None:
        """`cpu_seconds` are those of the process so far; `give_back` is called when it is idle."""
        self._clock = clock
        self._cpu_seconds = cpu_seconds
        self._give_back = give_back
        self._before = cpu_seconds()
        self._was_busy = True  # at its start
        self._timer: TimerHandle | None = None

    def __enter__(self) -> Self:
        """Begin; in the running loop."""
        self._look_later()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = self._clock.call_later(INTERVAL_SECONDS, self._look)

    def _look(self) -> None:
        self._look_later()
        now = self._cpu_seconds()
        is_busy = now - self._before > IDLE_SHARE * INTERVAL_SECONDS
        self._before = now
        if self._was_busy and not is_busy:
            self._give_back()
        self._was_busy = is_busy


def trim_heap() -> None:
    """Give back what the allocator of glibc holds; nothing where there is another one."""
    import ctypes  # noqa: PLC0415 - the start does without

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def keep_freed_memory() -> None:
    """Have the allocator of glibc keep what is freed, up to `KEPT_BYTES`; else nothing."""
    import ctypes  # noqa: PLC0415 - the start does without

    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:
        adjust(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        adjust(_M_TRIM_THRESHOLD, KEPT_BYTES)
