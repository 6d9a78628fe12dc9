"""Show what the worst moments of publish to receive were: `python -m benchmarks.tails`.

Messages of 1 KB are sent at 1,000 a second, and at half of the rate that a consumer gets, while it
flushes, compacts topics and entry logs, writes cursors and collects garbage: other topics are
published to, acknowledged message by message and deleted, one after the other, so that entry logs
lose what is alive in them; one topic is compacted again and again; and the write cache is smaller
than usual. Before and after each load a bare loop writes and syncs 4 KB a thousand times a second
on the same disk, and another one does what journal and flushes do to the disk at the load's rate.

The broker (`traced_broker`) notes what it does, and so does the process of the load. For the worst
moments that do not overlap, all that was under way from send to receipt is printed, the longest
first; then which part of the time in which the slowest messages were under way each thing was, and
which part of all the time; and how often and how long at most. A delay without anything of the
broker is one of the machine: of its disk or of its processors. Where a loop came
late, what it did is split: it worked, had no processor, or was blocked (by the interpreter's lock,
which another thread of the process held).

The limit at half of the rate is "four times that" of a sentence that speaks of the limit at 1,000 a
second, and in it of the bare loop of syncs: both readings have a limit of their own, and a run is
held to both.

Each step is named as it begins and has a limit of its own; percentiles are printed at the end of
each load, so that a run that is stopped has told what it knew. With the default of 12 s a load it
takes 50 s, and never more than four minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import http.client
import json
import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from benchmarks.acknowledging_loads import Acknowledger
from benchmarks.limited_rows import exit_with, say_how_it_ends
from benchmarks.loads import (
    durable_publish,
    fresh_topic,
    tailing_consume,
    timed_messages,
)
from benchmarks.raw_client import RawConnection, entry, send_block
from benchmarks.storage_compaction import ask_compaction, fill_with_keys
from benchmarks.targets import Target, start_ours
from benchmarks.traced_broker import Span, Trace, now_nanos
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SETTINGS = {
    "dbStorage_writeCacheMaxSizeMb": "16",
    "logSizeLimit": str(64 << 20),
    "gcWaitTime": "3000",
    "minorCompactionInterval": "4",
    "majorCompactionInterval": "8",
}
BESIDE_PER_SECOND = 500
BESIDE_BYTES = 8192
BEFORE_BYTES = 256 << 20
"""What is published before: journal files are used again then, as in a broker that has run for a
while. In a file that is written for the first time a sync waits for the file system's own."""
KEYS = 20_000
COMPACT_EVERY_SECONDS = 3.0
TOPIC_SECONDS = 3.0
"""How long one of the topics beside is published to, until it is deleted."""
BARE_SECONDS = 3.0
BARE_PER_SECOND = 1000
BARE_BLOCK_BYTES = 4096
BARE_GROUP_BYTES = 4 << 20
"""Of the bare loop of groups: the most of one group, as in the journal."""
BARE_FILE_BYTES = 64 << 20
"""Of a journal file, and of a generation of the write cache."""
BARE_SYNC_BYTES = 2 << 20
LEAST_LIMIT_MILLIS = 5.0
STOLEN_SECONDS = 0.01
"""How often it is looked whether the machine's host took a processor: a tick of the system."""
SLOWEST_SHARE = 0.01
"""Of all messages: those of which it is shown what was under way with them."""
MOMENTS = 8
NAMED = 6
"""The most things that are named for a moment."""
MOST_SHARES = 12
MOST_LINES = 25
SET_UP_SECONDS = 60.0
"""The most that the set-up may take: the keys, and the rate that a consumer gets."""
MORE_SECONDS = 30.0
"""How much longer than its messages a load may take; `timed_messages` waits for 10 s of these."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of durations, in milliseconds."""

    p50: float
    p99: float
    p999: float
    worst: float

    @classmethod
    def of(cls, millis: Sequence[float]) -> Percentiles:
        """Those of unsorted durations."""
        found = sorted(millis)
        middle, high, higher = (found[int(len(found) * share)] for share in (0.5, 0.99, 0.999))
        return cls(middle, high, higher, found[-1])

    def __str__(self) -> str:
        return (
            f"p50 {self.p50:.2f} p99 {self.p99:.2f} p99.9 {self.p999:.2f} worst {self.worst:.2f} ms"
        )


def bare_syncs(directory: Path, seconds: float = BARE_SECONDS) -> list[float]:
    """The milliseconds of each write with its sync, of a loop that does nothing else.

    It ends with the time, however few a slow disk has done by then.
    """
    block, millis = os.urandom(4096), []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        file.write(block * BARE_PER_SECOND)
        os.fsync(file.fileno())
        begun = time.perf_counter()
        for number in range(int(seconds * BARE_PER_SECOND)):
            due = begun + number / BARE_PER_SECOND
            if (now := time.perf_counter()) < due:
                time.sleep(due - now)
            start = time.perf_counter()
            os.pwrite(file.fileno(), block, number % BARE_PER_SECOND * len(block))
            os.fdatasync(file.fileno())
            end = time.perf_counter()
            millis.append((end - start) * 1e3)
            if end > begun + seconds:
                break
    return millis


def bare_groups(directory: Path, rate: int, seconds: float = BARE_SECONDS) -> list[float]:
    """The milliseconds of each group of a loop that writes and syncs what has come meanwhile.

    So many messages of 1 KB come a second; the groups go past the page cache into a file that was
    written before, and beside them, every 64 MB, as many bytes go through it into another one, with
    a sync after each 2 MB: what a journal and a flush do to the disk, and nothing else.
    """
    millis: list[float] = []
    room = mmap.mmap(-1, BARE_GROUP_BYTES)
    room.write(os.urandom(BARE_GROUP_BYTES))
    with tempfile.NamedTemporaryFile(dir=directory, buffering=0) as file:
        for at in range(0, BARE_FILE_BYTES, BARE_GROUP_BYTES):
            os.pwrite(file.fileno(), room, at)
        os.fsync(file.fileno())
        try:
            descriptor = os.open(file.name, os.O_WRONLY | os.O_DIRECT)
        except OSError:  # a file system without
            descriptor = os.open(file.name, os.O_WRONLY)
        ended = threading.Event()
        flushing = threading.Thread(target=_bare_flushes, args=(directory, rate, ended))
        flushing.start()
        try:
            begun = since = time.perf_counter()
            offset = 0
            while since < begun + seconds:
                start = time.perf_counter()
                due_bytes = int((start - since) * rate) * 1024
                if due_bytes < BARE_BLOCK_BYTES:
                    time.sleep(0.0002)
                    continue
                since = start
                due_bytes = min(due_bytes - due_bytes % BARE_BLOCK_BYTES, BARE_GROUP_BYTES)
                if offset + due_bytes > BARE_FILE_BYTES:
                    offset = 0
                with memoryview(room)[:due_bytes] as group:
                    os.pwritev(descriptor, [group], offset, os.RWF_DSYNC)
                offset += due_bytes
                millis.append((time.perf_counter() - start) * 1e3)
        finally:
            ended.set()
            flushing.join()
            os.close(descriptor)
    return millis


def _bare_flushes(directory: Path, rate: int, ended: threading.Event) -> None:
    piece = os.urandom(BARE_SYNC_BYTES)
    period = BARE_FILE_BYTES / (rate * 1024)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        while not ended.is_set():
            begun = time.perf_counter()
            for _ in range(BARE_FILE_BYTES // BARE_SYNC_BYTES):
                if ended.is_set():
                    return
                file.write(piece)
                os.fdatasync(file.fileno())
            ended.wait(max(begun + period - time.perf_counter(), 0))


class Beside:
    """What the broker has to do beside the messages that are measured."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish_and_acknowledge())
            group.create_task(self._compact())

    async def _publish_and_acknowledge(self) -> None:
        while True:
            topic = fresh_topic("beside")
            consuming = await RawConnection.connect(self._target.host, self._target.port)
            await consuming.subscribe(topic, "s", 1, kind=CommandSubscribe.Shared)
            Acknowledger(consuming, asks_for_receipts=False).start()
            publishing = await RawConnection.connect(self._target.host, self._target.port)
            await publishing.create_producer(topic, 1)
            publishing.start_counting()
            try:
                await self._publish(publishing)
            finally:
                consuming.close()
                publishing.close()
            await asyncio.to_thread(self._delete, topic)

    async def _publish(self, connection: RawConnection) -> None:
        stored, sent, begun = entry(os.urandom(BESIDE_BYTES)), 0, time.perf_counter()
        while (passed := time.perf_counter() - begun) < TOPIC_SECONDS:
            due = int(passed * BESIDE_PER_SECOND) + 1
            if due > sent:
                connection.write(send_block(1, sent, due - sent, stored))
                sent = due
            await asyncio.sleep(0.01)

    def _delete(self, topic: str) -> None:
        path = topic.replace("://", "/")
        connection = http.client.HTTPConnection(
            self._target.host, self._target.web_port or 0, timeout=20
        )
        connection.request("DELETE", f"/admin/v2/{path}?force=true")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"DELETE of {topic} was answered with {answer.status}: {body!r}")

    async def _compact(self) -> None:
        while True:
            with suppress(RuntimeError):  # one is under way
                await asyncio.to_thread(ask_compaction, self._target, "PUT")
            await asyncio.sleep(COMPACT_EVERY_SECONDS)


@asynccontextmanager
async def beside(target: Target) -> AsyncIterator[None]:
    """Have the broker do all that while the context is open."""
    task = asyncio.get_running_loop().create_task(Beside(target).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@dataclass(frozen=True, slots=True)
class Limit:
    """What the p99.9 may be at most, in one reading."""

    reading: str
    millis: float


def limits_of(bare_p999: float, *, is_half_rate: bool) -> list[Limit]:
    """The limits of a load whose bare loop of syncs had that p99.9."""
    syncs = "the bare syncs' p99.9"
    three_times = max(LEAST_LIMIT_MILLIS, 3 * bare_p999)
    larger = f"the larger of {LEAST_LIMIT_MILLIS:g} ms and"
    if not is_half_rate:
        return [Limit(f"{larger} three times {syncs}", three_times)]
    four_times = max(LEAST_LIMIT_MILLIS, 4 * bare_p999)
    return [
        Limit(f"narrow: {larger} four times {syncs}", four_times),
        Limit(f"wide: four times ({larger} three times {syncs})", 4 * three_times),
    ]


@dataclass(frozen=True, slots=True)
class Load:
    """One load, with the bare loops around it."""

    title: str
    times: list[tuple[int, int]]
    bare: Percentiles
    limits: list[Limit]
    groups: Percentiles
    """Of the bare loop of groups at the same rate, beside bare flushes."""
    missing: int
    """Messages that had not come 10 s after the last one was sent."""

    @property
    def found(self) -> Percentiles:
        """Of the messages that came."""
        return Percentiles.of([(received - sent) / 1e6 for sent, received in self.times])

    def beyond(self) -> list[str]:
        """What is beyond the limits."""
        p999 = self.found.p999
        if self.missing:
            count = len(self.times) + self.missing
            return [f"{self.title}: {self.missing:,} of {count:,} messages did not come in time"]
        return [
            f"{self.title}: p99.9 {p999:.2f} ms, {limit.reading}: {limit.millis:.2f} ms"
            for limit in self.limits
            if p999 > limit.millis
        ]

    def print(self) -> None:
        """The percentiles, as soon as they are known."""
        found = self.found
        print(f"publish to receive, {self.title}: {found}")
        print(f"    a bare loop of syncs before and after: {self.bare}")
        for limit in self.limits:
            verdict = "within" if found.p999 <= limit.millis and not self.missing else "BEYOND"
            print(
                f"    p99.9 {found.p999:.2f} ms, {verdict} {limit.millis:.2f} ms ({limit.reading})"
            )
        times = self.found.p999 / self.groups.p999
        print(
            f"    a bare loop of groups at that rate, beside bare flushes: {self.groups}; "
            f"{times:.1f} times its p99.9",
            flush=True,
        )


def stolen_ticks() -> int:
    """How long other virtual machines have had this one's processors, in ticks of the system."""
    with suppress(OSError, IndexError):
        return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    return 0


@contextmanager
def stolen_watched(trace: Trace, look: Callable[[], int] = stolen_ticks) -> Iterator[None]:
    """Note when the host of a virtual machine took a processor from it, as far as it tells.

    A process that waits for one then counts as working, or stands still without any reason.
    """
    ended = threading.Event()

    def watch() -> None:
        last, since = look(), now_nanos()
        while not ended.wait(STOLEN_SECONDS):
            ticks, now = look(), now_nanos()
            if ticks != last:
                trace.add("machine: its host took a processor", since, now)
            last, since = ticks, now

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


@asynccontextmanager
async def step(title: str, most_seconds: float) -> AsyncIterator[None]:
    """Say that something begins, and end it when it takes too long.

    Raises:
        RuntimeError: It took longer than `most_seconds`.
    """
    print(f"{title} ...", flush=True)
    try:
        async with asyncio.timeout(most_seconds) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise RuntimeError(f"{title}: something in it timed out: {error!r}") from error
        raise RuntimeError(
            f"{title}: not done after {most_seconds:g} s; is the machine or its disk busy?"
        ) from error


async def measure(target: Target, own: Trace, directory: Path, seconds: float) -> list[Load]:
    """Both loads; `own` notes what holds up this process.

    Raises:
        RuntimeError: A step did not end in time.
    """
    async with step(f"publishing {KEYS:,} keys", SET_UP_SECONDS):
        await fill_with_keys(target, KEYS)
    async with step(f"publishing {BEFORE_BYTES >> 20} MB", SET_UP_SECONDS):
        await durable_publish(
            target, size_bytes=1024, connections=1, seconds=0, total_bytes=BEFORE_BYTES
        )
    async with step("finding the rate that a consumer gets", SET_UP_SECONDS):
        taken = await tailing_consume(target, subscriptions=1, seconds=2.0)
    half = int((taken.entries_per_second or 0) / 2)
    loads: list[Load] = []

    async def go_on() -> None:
        for rate in (1000, half):
            load = await one_load(target, directory, rate, seconds, is_half_rate=rate != 1000)
            load.print()
            loads.append(load)

    await own.watched(go_on())
    return loads


async def one_load(
    target: Target, directory: Path, rate: int, seconds: float, *, is_half_rate: bool
) -> Load:
    """Messages at a rate, with the bare loops around them."""
    title = f"{rate:,} a second"
    millis, groups = bare_syncs(directory), bare_groups(directory, rate)
    async with step(f"{title}, for {seconds:g} s", seconds + MORE_SECONDS), beside(target):
        times = await timed_messages(target, rate_per_second=rate, seconds=seconds)
    bare = Percentiles.of(millis + bare_syncs(directory))
    limits = limits_of(bare.p999, is_half_rate=is_half_rate)
    missing = int(rate * (seconds + 1)) - rate - len(times)
    groups += bare_groups(directory, rate)
    return Load(title, times, bare, limits, Percentiles.of(groups), missing)


def worst_moments(times: Sequence[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    """The slowest messages, none of which was under way together with a slower one of them."""
    chosen: list[tuple[int, int]] = []
    for sent, received in sorted(times, key=lambda each: each[0] - each[1]):
        if all(received < start or sent > end for start, end in chosen):
            chosen.append((sent, received))
            yield sent, received
            if len(chosen) == count:
                return


def under_way(spans: Sequence[Span], start: int, end: int) -> list[tuple[str, float]]:
    """What was under way between two moments, and for how many milliseconds of it, by length."""
    covered: dict[str, tuple[int, int]] = {}  # the end of what was counted, and how much that is
    for name, begun, ended in sorted(spans, key=itemgetter(1)):
        reached, nanos = covered.get(name, (start, 0))
        if ended > reached and begun < end:
            upto = min(ended, end)
            covered[name] = upto, nanos + max(upto - max(begun, reached), 0)
    found = [(name, nanos / 1e6) for name, (_, nanos) in covered.items() if nanos]
    return sorted(found, key=itemgetter(1), reverse=True)


def slowest_times(times: Sequence[tuple[int, int]], share: float) -> list[tuple[int, int]]:
    """When any of the slowest messages was under way: times that don't overlap, in order."""
    slowest = sorted(times, key=lambda each: each[0] - each[1])[: max(int(len(times) * share), 1)]
    joined: list[tuple[int, int]] = []
    for sent, received in sorted(slowest):
        if joined and sent <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], received)
        else:
            joined.append((sent, received))
    return joined


def shares(spans: Sequence[Span], times: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Which part of these times each thing was under way."""
    nanos = sum(end - start for start, end in times)
    found: dict[str, float] = {}
    for start, end in times:
        near = [span for span in spans if span[1] < end and span[2] > start]
        for name, millis in under_way(near, start, end):
            found[name] = found.get(name, 0.0) + millis * 1e6 / nanos
    return found


def print_shares(load: Load, spans: Sequence[Span]) -> None:
    """Print what was under way with the slowest messages, beside what was at all."""
    whole = [(load.times[0][0], max(received for _, received in load.times))]
    slowest = slowest_times(load.times, SLOWEST_SHARE)
    millis = sum(end - start for start, end in slowest) / 1e6
    among, in_all = shares(spans, slowest), shares(spans, whole)
    print(
        f"    the slowest {SLOWEST_SHARE:.0%} were under way in {len(slowest)} stretches, "
        f"{millis:,.0f} ms in all; which part of these, and of all the time, each thing was:"
    )
    for name in sorted(among, key=among.__getitem__, reverse=True)[:MOST_SHARES]:
        print(f"    {among[name]:6.0%} {in_all[name]:6.0%}  {name}")


def print_moments(load: Load, spans: Sequence[Span]) -> None:
    """Print what the worst moments were."""
    print(f"{load.title}: the worst moments, and what was under way in them, in ms:")
    begun = load.times[0][0]
    for sent, received in worst_moments(load.times, MOMENTS):
        named = under_way(spans, sent, received)[:NAMED]
        what = ", ".join(f"{name} {took:.1f}" for name, took in named)
        at = (sent - begun) / 1e9
        print(f"    {(received - sent) / 1e6:7.2f} at {at:6.2f} s: {what or 'nothing noted'}")
    print_shares(load, spans)
    first, last = load.times[0][0], max(received for _, received in load.times)
    print("    all that was noted meanwhile: how often, how long on average and at most, in ms:")
    names: dict[str, list[float]] = {}
    for name, start, end in spans:
        if start < last and end > first:
            names.setdefault(name, []).append((end - start) / 1e6)
    longest = sorted(names.items(), key=lambda each: -max(each[1]))
    for name, took in longest[:MOST_LINES]:
        print(f"    {len(took):6} {sum(took) / len(took):8.2f} {max(took):8.2f}  {name}")


def main() -> None:
    """Measure both loads, and print their worst moments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0, help="of each load")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    say_how_it_ends()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    own = Trace()
    gc.disable()  # this process would find nothing, and stand still meanwhile
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trace"
        program = (sys.executable, "-m", "benchmarks.traced_broker", str(path))
        target = start_ours(arguments.directory, SETTINGS, program=program)
        try:
            with stolen_watched(own):
                loads = uvloop.run(measure(target, own, arguments.directory, arguments.seconds))
        finally:
            target.stop()
        if not path.exists():
            raise SystemExit(
                "the broker was killed, as it had not ended after 30 s: no trace of it"
            )
        spans = [(name, start, end) for name, start, end in json.loads(path.read_text())]
    spans += [(f"load: {name}", start, end) for name, start, end in own.spans]
    for load in loads:
        print_moments(load, spans)
    exit_with([line for load in loads for line in load.beyond()])


if __name__ == "__main__":
    main()
