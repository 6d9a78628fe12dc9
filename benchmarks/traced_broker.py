"""A broker that notes what it is doing, for `benchmarks.tails`: `traced_broker.py TRACE ARGUMENTS`.

It is `pulsar-py standalone` with hooks around what may hold up a message: collections of garbage,
syncs, other work on the disk, flushes, compactions, cursors' writes, and turns of the loop that
come late. When it ends, TRACE has all spans as JSON, in nanoseconds of the clock that all processes
of the machine share. The product itself has no such hooks, and the hooks cost a few microseconds
each; the loop is asked once a millisecond whether it is late.
"""

# ruff: noqa: SLF001 - hooks reach into what they are put around.

from __future__ import annotations

import asyncio
import functools
import gc
import json
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from pulsar_py.cli import standalone
from pulsar_py.common.disks.io_uring import IoUring, OnWritten
from pulsar_py.common.disks.local_disk import LocalDisk, SyncThread
from pulsar_py.managed_ledger.cursors.persister import CursorPersister
from pulsar_py.server.compaction.topic_compaction import TopicCompaction
from pulsar_py.storage.housekeeper import Housekeeper

BEAT_SECONDS = 0.001
LATE_NANOS = 2_000_000
"""A turn of the loop that comes later is noted; its timers are as coarse as a millisecond."""
STUCK_NANOS = 3_000_000
"""A turn that lasts longer is looked into, while it lasts."""
SHORTEST_NANOS = 200_000
"""Shorter spans hold up nothing that would be seen."""

_OURS = re.compile("/pulsar_py/|/benchmarks/")
_RUNS_LOOP = frozenset({"run_to_the_end", "main"})
"""Functions below which nothing of ours is called: the loop itself works, or waits."""

now_nanos = time.perf_counter_ns
Span = tuple[str, int, int]


class Trace:
    """The spans so far, and who watches over the loop."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._collecting_since = 0
        self._last_beat = 0  # 0 before the first
        self._loop_thread_id = 0

    def add(self, name: str, start: int, end: int) -> None:
        """Note a span if it is long enough to matter."""
        if end - start >= SHORTEST_NANOS:
            self.spans.append((name, start, end))

    def on_collection(self, phase: str, info: dict[str, int]) -> None:
        """As `gc.callbacks` has it."""
        if phase == "start":
            self._collecting_since = now_nanos()
        else:
            name = f"collector of generation {info['generation']}"
            self.add(name, self._collecting_since, now_nanos())

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """`work`, noted."""

        @functools.wraps(work)
        def call(*arguments: Any, **options: Any) -> Any:
            start = now_nanos()
            try:
                return work(*arguments, **options)
            finally:
                self.add(name, start, now_nanos())

        return call

    def awaited(
        self, name: str, work: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Coroutine[Any, Any, Any]]:
        """The same for a coroutine, whose span is from its first step to its end."""

        @functools.wraps(work)
        async def call(*arguments: Any, **options: Any) -> Any:
            start = now_nanos()
            try:
                return await work(*arguments, **options)
            finally:
                self.add(name, start, now_nanos())

        return call

    async def watched(self, serve: Coroutine[Any, Any, None]) -> None:
        """Serve, while the loop is asked whether it is late."""
        loop = asyncio.get_running_loop()
        self._loop_thread_id = threading.get_ident()
        since = ProcessorTimes()
        due = now_nanos()

        def beat() -> None:
            nonlocal due
            last, now = self._last_beat, now_nanos()
            self._last_beat = now
            ran, waited = since.nanos()
            if now - due >= LATE_NANOS:
                self.add("loop late", due, now)
                self.add("loop's thread worked", now - ran, now)
                self.add("loop's thread without a processor", now - waited, now)
                blocked = now - last - ran - waited - LATE_NANOS  # it slept until it was due
                if last and blocked > 0:
                    self.add("loop's thread blocked", now - blocked, now)
            due = now + int(BEAT_SECONDS * 1e9)
            loop.call_later(BEAT_SECONDS, beat)

        beat()
        threading.Thread(target=self._look, daemon=True).start()
        await serve

    def _look(self) -> None:
        """Where the loop's thread is while a turn lasts long."""
        while True:
            time.sleep(STUCK_NANOS / 1e9)
            beat, now = self._last_beat, now_nanos()
            if now - beat > STUCK_NANOS + LATE_NANOS:
                place = _place_in(self._loop_thread_id)
                if place is not None:
                    self.add(f"loop in {place}", beat, now)


def _place_in(thread_id: int) -> str | None:
    """The function of ours in which a thread is.

    Frames end with this call: what holds one holds its variables, too, which are what the thread
    sends and receives, and would have to take new memory for.
    """
    frame = sys._current_frames().get(thread_id)
    while frame is not None and not _OURS.search(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_code.co_name in _RUNS_LOOP:
        return None
    return f"{_OURS.split(frame.f_code.co_filename)[-1]}:{frame.f_code.co_qualname}"


class ProcessorTimes:
    """How long the calling thread ran, and could run but had no processor, since the last call."""

    def __init__(self) -> None:
        thread_id = threading.get_native_id()
        path = Path(f"/proc/self/task/{thread_id}/schedstat")
        self._file = path.open("rb", buffering=0)
        self._last = (0, 0)
        self.nanos()

    def nanos(self) -> tuple[int, int]:
        """Both, in nanoseconds."""
        self._file.seek(0)
        ran, waited = map(int, self._file.read(100).split()[:2])
        since = ran - self._last[0], waited - self._last[1]
        self._last = (ran, waited)
        return since

    def close(self) -> None:
        """Let go of the file that the system keeps the times in."""
        self._file.close()


def hook(trace: Trace) -> None:
    """Put the hooks in place."""
    gc.callbacks.append(trace.on_collection)
    run, run_syncing = LocalDisk.run, SyncThread.run

    async def traced_run(disk: LocalDisk, work: Any, *arguments: Any, **options: Any) -> Any:
        name = getattr(work, "__qualname__", None) or repr(work)
        return await run(disk, trace.timed(f"disk: {name}", work), *arguments, **options)

    def traced_syncing(thread: SyncThread, work: Any, on_synced: Any) -> None:
        asked, ended = now_nanos(), 0

        def do() -> None:
            nonlocal ended
            start = now_nanos()
            trace.add("journal's thread late", asked, start)
            try:
                work()
            finally:
                ended = now_nanos()
                trace.add("journal's write and sync", start, ended)

        def hear(error: BaseException | None) -> None:
            trace.add("loop hears late of the sync", ended, now_nanos())
            on_synced(error)

        run_syncing(thread, do, hear)

    write_by_ring: Any = IoUring.write

    def traced_by_ring(ring: IoUring, *write: Any) -> None:
        start = now_nanos()

        def hear(result: int) -> None:
            trace.add("journal's write by the kernel, until the loop hears", start, now_nanos())
            on_written(result)

        on_written: OnWritten = write[-1]
        write_by_ring(ring, *write[:-1], hear)

    begin, on_written = CursorPersister._begin, CursorPersister._on_written
    begun: dict[int, int] = {}

    def traced_begin(persister: CursorPersister, changes: Any) -> None:
        begun[id(persister)] = now_nanos()
        begin(persister, changes)

    def traced_written(persister: CursorPersister, changes: Any, error: Exception | None) -> None:
        end = now_nanos()
        trace.add("cursor's write", begun.pop(id(persister), end), end)
        on_written(persister, changes, error)

    LocalDisk.run = traced_run  # type: ignore[method-assign,assignment]
    SyncThread.run = traced_syncing  # type: ignore[method-assign,assignment]
    IoUring.write = traced_by_ring  # type: ignore[method-assign,assignment]
    CursorPersister._begin = traced_begin  # type: ignore[method-assign,assignment]
    CursorPersister._on_written = traced_written  # type: ignore[method-assign,assignment]
    for owner, method, name in (
        (Housekeeper, "_flush_sealed", "flush"),
        (Housekeeper, "merge", "merge of index tables"),
        (Housekeeper, "collect_garbage", "compaction of entry logs"),
        (TopicCompaction, "_run", "compaction of a topic"),
    ):
        setattr(owner, method, trace.awaited(name, getattr(owner, method)))
    serve = standalone._watched
    standalone._watched = lambda work: trace.watched(serve(work))  # type: ignore[assignment]


def main() -> None:
    """Run the command line behind the first argument."""
    from pulsar_py.cli.main import main as run_command  # noqa: PLC0415 - as the product's script does

    path = Path(sys.argv.pop(1))
    trace = Trace()
    hook(trace)
    try:
        run_command()
    finally:
        path.write_text(json.dumps(trace.spans))


if __name__ == "__main__":
    main()
