"""Reads what a broker's process uses of its machine, and how much there is (edge).

The processor's figure is that of the thread that calls, which is the event loop's: one loop is one
core, however many the machine has. Memory's limit is that of the control group, where there is one
below what the machine has. The network's limit is the sum of what the cards say of themselves;
control groups have none, and virtual cards say nothing.

Source: LinuxBrokerHostUsageImpl, LinuxInfoUtils in Pulsar's broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

MEBIBYTE: Final = 1 << 20
_KILOBITS_A_MEGABIT: Final = 1000.0
_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_CARDS: Final = Path("/sys/class/net")
_STATM: Final = Path("/proc/self/statm")
_GROUP_FIELDS_COUNT = 3


class ProcessUsage(Struct, frozen=True):
    """What a process has used: processor time so far, and memory now."""

    cpu_seconds: float
    """Of the event loop's thread."""
    memory_mebibytes: float
    memory_limit_mebibytes: float
    network_kilobits: float | None = None
    """The speed of the network, None if it is not known."""


Machine = Callable[[], ProcessUsage]
"""Measures this process, from its event loop; in virtual time nothing is used."""


def this_process() -> Machine:
    """Measures the process that calls; limits are read once."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / MEBIBYTE
    limit = min([physical, *_group_limits()])
    return partial(_measure, limit, network_kilobits())


def _measure(limit_mebibytes: float, network: float | None) -> ProcessUsage:
    pages_count = int(_STATM.read_text().split()[1])
    resident = pages_count * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE
    return ProcessUsage(time.thread_time(), resident, limit_mebibytes, network)


def no_process() -> ProcessUsage:
    """The usage of a broker in virtual time: none."""
    return ProcessUsage(0.0, 0.0, 1.0)


def _group_limits(own: Path = _OWN_GROUPS, root: Path = _GROUPS) -> Iterator[float]:
    """The limits of the control groups, of both versions, that this process is in."""
    for path in _limit_files(own, root):
        with suppress(OSError, ValueError):  # no such group, or one without a limit: "max"
            yield int(path.read_text()) / MEBIBYTE


def _limit_files(own: Path, root: Path) -> Iterator[Path]:
    yield root / "memory.max"
    yield root / "memory" / "memory.limit_in_bytes"
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split(":", _GROUP_FIELDS_COUNT - 1)
        if len(fields) != _GROUP_FIELDS_COUNT:
            continue
        number, names, group = fields
        if number == "0" and not names:
            yield root / group.lstrip("/") / "memory.max"
        elif "memory" in names.split(","):
            yield root / "memory" / group.lstrip("/") / "memory.limit_in_bytes"


def network_kilobits(cards: Path = _CARDS) -> float | None:
    """The speed of the machine's network cards together; None if none of them tells it."""
    total = 0.0
    for speed in sorted(cards.glob("*/speed")):
        with suppress(OSError, ValueError):  # a card that is off or virtual
            total += max(int(speed.read_text()), 0) * _KILOBITS_A_MEGABIT
    return total or None
