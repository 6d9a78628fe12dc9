"""Reads this process's processor time, memory and descriptors from Linux (edge).

Where there is no `/proc`, what is only there is None and left out.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

_PROCESS: Final = Path("/proc/self")
_SYSTEM: Final = Path("/proc/stat")


class ProcessFigures(Struct, frozen=True):
    """One process at one moment; `started_seconds` since 1970."""

    cpu_seconds: float
    open_descriptors_count: int | None = None
    max_descriptors_count: int | None = None
    resident_bytes: int | None = None
    virtual_bytes: int | None = None
    started_seconds: float | None = None


def process_figures() -> ProcessFigures:
    """What is known now; reads some small files, so call it off the loop."""
    cpu_seconds = time.process_time()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        # The name of the process, in parentheses, may have blanks.
        fields = (_PROCESS / "stat").read_text().rpartition(")")[2].split()
        booted = next(
            int(each.split()[1])
            for each in _SYSTEM.read_text().splitlines()
            if each.startswith("btime ")
        )
        open_count = len(os.listdir(_PROCESS / "fd"))  # noqa: PTH208 - no object for each of them
    except OSError:
        return ProcessFigures(cpu_seconds)
    return ProcessFigures(
        cpu_seconds=cpu_seconds,
        open_descriptors_count=open_count,
        max_descriptors_count=None if limit == resource.RLIM_INFINITY else limit,
        resident_bytes=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        virtual_bytes=int(fields[20]),
        started_seconds=booted + int(fields[19]) / os.sysconf("SC_CLK_TCK"),
    )
