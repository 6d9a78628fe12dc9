"""The loads of the client benchmark, and the figures of one run of one of them."""

from __future__ import annotations

import cProfile
import gc
import json
import os
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

MESSAGE_BYTES = 1024
WARM_UP_MESSAGES = 5_000

BATCHING: dict[str, Any] = {  # Any: options of several types
    "batching_enabled": True,
    "batching_max_messages": 1000,
    "batching_max_allowed_size_in_bytes": 2 << 20,
    "batching_max_publish_delay_ms": 10,
    "max_pending_messages": 20_000,
    "block_if_queue_full": True,
}
"""Options of both clients' producers for the batched rows."""

UNBATCHED: dict[str, Any] = {  # Any: as above
    "batching_enabled": False,
    "max_pending_messages": 2_000,
    "block_if_queue_full": True,
}
"""... for the unbatched ones."""

RECEIVER_QUEUE_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class Job:
    """The job of a worker process, as JSON on its command line."""

    load: str
    url: str
    topic: str
    seconds: float
    loop: str = "asyncio"
    """`asyncio` or `uvloop`; nothing to the official package."""
    subscription: str = ""
    messages: int = 0
    """For consuming: how many are there."""
    rate: int = 1000
    """For latency: messages a second."""
    profile: bool = False


@dataclass(slots=True)
class Run:
    """The figures of a worker process, as JSON on its last line of output."""

    messages: int
    seconds: float
    cpu_seconds: float
    """Of the client's process, all threads."""
    publish_millis: list[float] = field(default_factory=list)
    """For latency and one by one: from send to confirmation, sorted."""
    end_to_end_millis: list[float] = field(default_factory=list)
    """For latency and one by one: from send to receive, sorted."""

    def print(self) -> None:
        """As the last line of output."""
        # Not by `print`, which loses what a pipe does not take at once where output has no buffer.
        with open(sys.stdout.fileno(), "wb", closefd=False) as output:
            output.write(f"{json.dumps(asdict(self))}\n".encode())


class Stopwatch:
    """Wall and CPU time of this process since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def elapsed(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._wall

    def run(self, messages: int) -> Run:
        """Stop, with so many messages done."""
        return Run(messages, self.elapsed(), time.process_time() - self._cpu)


def body() -> bytes:
    """A payload that no compression or cache helps with."""
    return os.urandom(MESSAGE_BYTES)


def stamped(moment: float, rest: bytes) -> bytes:
    """A payload of the same size that says when it was sent."""
    stamp = b"%020d" % int(moment * 1e9)
    return stamp + rest[len(stamp) :]


def stamp_of(data: bytes) -> float:
    """When it was sent."""
    return int(data[:20]) / 1e9


def run_main(work: Callable[[Job], Run]) -> None:
    """Do the job on the command line; with a profile on request, on stderr.

    The profile is that of the main thread.
    """
    job = Job(**json.loads(sys.argv[1]))
    gc.collect()
    gc.freeze()
    if not job.profile:
        work(job).print()
        return
    profile = cProfile.Profile()
    run = profile.runcall(work, job)
    statistics = pstats.Stats(profile, stream=sys.stderr)
    statistics.sort_stats("tottime").print_stats(30)
    run.print()
