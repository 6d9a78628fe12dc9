"""Feeds inputs to a target, and writes down what each of them did wrong (edge).

Wrong is: an exception out of the target; a record of level ERROR, or with a traceback, in the log;
more than 100 ms of the loop's CPU time for one input, in however many turns, whenever it is fed;
memory that grows by more than 64 MB in one batch, or by more than that over the second half of a long
run; a canary whose messages do not come back.

On a machine that is shared, an input of some microseconds took 200 ms by the clock of CPU time, four
times in a million, and none of them again. So one that took too long is fed again, and is only
counted where it does not take so long each time.

The inputs of a batch follow from the seed and the number of the batch, so that a run can be repeated,
and one that was ended goes on at the batch where it was.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import resource
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from tests.fuzz.inputs import Mutator

INPUT_SECONDS: Final = 0.1
BATCH_COUNT: Final = 250
BATCH_MEBIBYTES: Final = 64
LONG_RUN_COUNT: Final = 100_000
"""Inputs from which on memory has to stop growing; before that, caches and tables fill."""
SAMPLE_COUNT: Final = 5_000
"""After how many inputs memory is looked at, and `progress` called."""
TRIES: Final = 4
"""How often an input is fed that takes too long each time."""


class Target(Protocol):
    """What inputs are fed to; open while it is entered."""

    def seeds(self) -> Sequence[bytes]:
        """Good inputs, from which others are made."""

    async def feed(self, data: bytes) -> None:
        """Let one input act until nothing of it is under way."""

    async def check(self) -> None:
        """Raise unless the target still serves others."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A target that can be opened, and how its good inputs are changed."""

    name: str
    opened: Callable[[], AbstractAsyncContextManager[Target]]
    mutate: Mutator


@dataclass(frozen=True, slots=True)
class Finding:
    """An input, and what it did wrong."""

    data: bytes
    problem: str


@dataclass(slots=True)
class Report:
    """What a run found."""

    inputs_count: int = 0
    worst_seconds: float = 0.0
    """CPU time of one input; the shortest of its times, if it was fed again."""
    worst: bytes = b""
    slow_once_count: int = 0
    """Inputs that took too long, but not when they were fed again."""
    findings: list[Finding] = field(default_factory=list)
    resident_mebibytes: list[int] = field(default_factory=list)
    """After each `SAMPLE_COUNT` inputs."""

    def grown_mebibytes(self) -> int:
        """By how much memory grew over the second half of the run; 0 for a short one."""
        samples = self.resident_mebibytes
        if len(samples) * SAMPLE_COUNT < LONG_RUN_COUNT:
            return 0
        return samples[-1] - max(samples[: len(samples) // 2])


class LogWatch(logging.Handler):
    """Takes what the log must not have."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.problems: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep errors, and whatever has a traceback."""
        if record.levelno >= logging.ERROR or record.exc_info:
            text = logging.Formatter().format(record)
            self.problems.append(text[-2000:])


class Watched:
    """A target, and what its inputs did wrong."""

    def __init__(
        self,
        target: Target,
        report: Report,
        log: LogWatch,
        cpu_seconds: Callable[[], float] = time.thread_time,
    ) -> None:
        self._cpu_seconds = cpu_seconds
        self._target = target
        self._report = report
        self._log = log
        self._last = b""  # the input that came last
        self._resident_kibibytes = _most_kibibytes()  # at the last check

    async def feed(self, data: bytes) -> None:
        """Feed one input."""
        report = self._report
        self._last = data
        report.inputs_count += 1
        took = first = await self._feed_once(data)
        for _ in range(TRIES - 1):
            if took <= INPUT_SECONDS:
                break
            took = min(took, await self._feed_once(data))
        if took > report.worst_seconds:
            report.worst_seconds, report.worst = took, data
        if took > INPUT_SECONDS:
            report.findings.append(Finding(data, f"took {took:.3f} s of CPU time"))
        elif first > INPUT_SECONDS:
            report.slow_once_count += 1

    async def _feed_once(self, data: bytes) -> float:
        """Feed an input; the seconds of CPU time that it took."""
        report = self._report
        began = self._cpu_seconds()
        try:
            async with asyncio.timeout(30):
                await self._target.feed(data)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            report.findings.append(Finding(data, f"raised {error!r}"))
        took = self._cpu_seconds() - began
        if self._log.problems:
            report.findings.append(Finding(data, self._log.problems[0]))
            self._log.problems.clear()
        return took

    async def check(self) -> None:
        """Look, after a batch, what became of memory and of others."""
        findings, kibibytes = self._report.findings, _most_kibibytes()
        grown = (kibibytes - self._resident_kibibytes) / 1024
        self._resident_kibibytes = kibibytes
        if grown > BATCH_MEBIBYTES:
            findings.append(Finding(self._last, f"memory grew by {grown:.0f} MB in its batch"))
        try:
            async with asyncio.timeout(30):
                await self._target.check()
        except Exception as error:  # noqa: BLE001
            findings.append(Finding(self._last, f"nobody else is served: {error!r}"))


def _most_kibibytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _resident_mebibytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


async def fuzz(
    kind: Kind,
    *,
    inputs_count: int,
    seed: int,
    kept: Sequence[bytes] = (),
    limit: int = 20,
    first_input: int = 0,
    progress: Callable[[int, Report], None] = lambda *_: None,
) -> Report:
    """Feed the kept inputs, the good ones, and changed ones; stop after `limit` findings.

    `first_input` is the first of those that are fed, a multiple of `BATCH_COUNT`.
    """
    report, log = Report(), LogWatch()
    logger = logging.getLogger()
    logger.addHandler(log)
    gc.collect()
    gc.freeze()  # what is there already must not be looked at on an input's account
    try:
        async with kind.opened() as target:
            watched = Watched(target, report, log)
            pool = [*kept, *target.seeds()]
            for first in range(first_input, inputs_count, BATCH_COUNT):
                chance = random.Random(f"{seed} {first}")
                count = min(BATCH_COUNT, inputs_count - first)
                batch = [
                    pool[first + at] if first + at < len(pool) else _changed(kind, pool, chance)
                    for at in range(count)
                ]
                for data in batch:
                    await watched.feed(data)
                await watched.check()
                if report.inputs_count % SAMPLE_COUNT == 0:
                    report.resident_mebibytes.append(_resident_mebibytes())
                    progress(first + count, report)
                if len(report.findings) >= limit:
                    break
            if (grown := report.grown_mebibytes()) > BATCH_MEBIBYTES:
                problem = f"memory grew by {grown} MB over the second half of the run"
                report.findings.append(Finding(b"", problem))
    finally:
        gc.unfreeze()
        logger.removeHandler(log)
    return report


def _changed(kind: Kind, pool: Sequence[bytes], chance: random.Random) -> bytes:
    data = chance.choice(pool)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        data = kind.mutate(chance, data)
    return data
