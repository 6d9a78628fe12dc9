"""How late messages are at worst, and why: `python -m benchmarks.tails`.

Messages of 1 KB are sent at 1,000 a second, and at half of the rate that a consumer gets, while it
flushes, compacts topics and entry logs, writes cursors and collects garbage: other topics are
published to, acknowledged message by message and deleted, one after the other, so that entry logs
lose what is alive in them; one topic is compacted again and again; and the write cache is smaller
than usual.

That is done in rounds, short ones, since disk and processors of a machine stand still at times, for
a tenth of a second and more, which falls on one thing or another by chance: in each a bare loop
writes and syncs 4 KB a thousand times a second on the same disk, then messages go at 1,000 a
second, the bare loop again, messages at half of the rate, and the bare loop once more. The limits
of a load in a round follow from the bare loops before and after it. What is judged is the median of
the rounds' p99.9 against the median of their limits; all rounds are printed, with how many were
within. The rate that a consumer gets is the median of several that are found before: while nothing
else is done, and once more with all that under way; there are messages at half of either. Another
bare loop, before each load, does what journal and flushes do to the disk at the load's rate.

The broker (`traced_broker`) notes what it does, and so does the process of the load. For the worst
moments of the worst and of the median round that do not overlap, all that was under way from send
to receipt is printed, the longest first; then which part of the time in which the slowest messages
were under way each thing was, and which part of all the time; and how often and how long at most. A
delay without anything of the broker is one of the machine: of its disk or of its processors. Where
a loop came late, what it did is split: it worked, had no processor, or was blocked (by the
interpreter's lock, which another thread of the process held).

The limit at half of the rate is "four times that" of a sentence that speaks of the limit at 1,000 a
second, and in it of the bare loop of syncs: both readings have a limit of their own, and a run is
held to both.

Each step is named as it begins and has a limit of its own; percentiles are printed at the end of
each load, so that a run that is stopped has told what it knew. With the defaults, seven rounds of
4 s a load, it takes less than four minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import http.client
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from benchmarks.acknowledging_loads import Acknowledger
from benchmarks.bare_loops import bare_groups, bare_syncs
from benchmarks.limited_rows import exit_with, say_how_it_ends
from benchmarks.loads import (
    durable_publish,
    fresh_topic,
    tailing_consume,
    timed_messages,
)
from benchmarks.moments import Messages, Percentiles, print_moments
from benchmarks.raw_client import RawConnection, entry, send_block
from benchmarks.storage_compaction import ask_compaction, fill_with_keys
from benchmarks.targets import Target, start_ours
from benchmarks.traced_broker import Span, Trace, now_nanos
from pulsar_py.cli.standalone import hurry_threads
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
SYNCS_SECONDS = 1.5
GROUPS_SECONDS = 0.75
LOW_RATE = 1000
FINDS = 3
FIND_SECONDS = 2.0
LEAST_LIMIT_MILLIS = 5.0
STOLEN_SECONDS = 0.01
"""How often it is looked whether the machine's host took a processor: a tick of the system."""
SET_UP_SECONDS = 60.0
"""The most that each step of the set-up may take."""
MORE_SECONDS = 30.0
"""How much longer than its messages a load may take; `timed_messages` waits for 10 s of these."""


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
    """One load in one round, with the bare loops around it."""

    messages: Messages
    bare: Percentiles
    """Of the bare loop of syncs before and after it."""
    limits: list[Limit]
    groups: Percentiles
    """Of the bare loop of groups at the same rate, beside bare flushes."""
    missing_count: int = 0
    """Messages that had not come 10 s after the last one was sent."""

    @property
    def p999(self) -> float:
        """In milliseconds; without end if messages are missing."""
        return math.inf if self.missing_count else self.messages.found.p999

    def print(self) -> None:
        """The percentiles, as soon as they are known."""
        print(f"    publish to receive: {self.messages.found}")
        if self.missing_count:
            print(f"    {self.missing_count:,} messages did not come in time")
        print(f"    a bare loop of syncs before and after: {self.bare}")
        for limit in self.limits:
            print(f"    {verdict(self.p999, limit)}")
        times = self.messages.found.p999 / self.groups.p999
        print(
            f"    a bare loop of groups at that rate, beside bare flushes: {self.groups}; "
            f"{times:.1f} times its p99.9",
            flush=True,
        )


def verdict(p999: float, limit: Limit) -> str:
    """Whether a p99.9 is within a limit, in words."""
    word = "within" if p999 <= limit.millis else "BEYOND"
    return f"p99.9 {p999:.2f} ms, {word} {limit.millis:.2f} ms ({limit.reading})"


@dataclass(frozen=True, slots=True)
class Rounds:
    """One load in all rounds."""

    title: str
    loads: list[Load]
    """One of each round; never empty."""

    @property
    def p999(self) -> float:
        """The median of the rounds' p99.9."""
        return statistics.median(load.p999 for load in self.loads)

    def limits(self) -> list[Limit]:
        """Of each reading the median of the rounds' limits."""
        return [
            Limit(each[0].reading, statistics.median(limit.millis for limit in each))
            for each in zip(*(load.limits for load in self.loads), strict=True)
        ]

    def within_counts(self) -> list[int]:
        """Of each reading how many rounds were within their own limit."""
        return [
            sum(load.p999 <= limit.millis for load, limit in zip(self.loads, each, strict=True))
            for each in zip(*(load.limits for load in self.loads), strict=True)
        ]

    def worst_and_median(self) -> dict[str, Load]:
        """The rounds whose worst moments are shown, by what they are called; maybe one is both."""
        ordered = sorted(range(len(self.loads)), key=lambda index: self.loads[index].p999)
        shown: dict[int, list[str]] = {}
        shown.setdefault(ordered[-1], []).append("the worst")
        shown.setdefault(ordered[(len(ordered) - 1) // 2], []).append("the median")
        return {
            f"round {index + 1}, {' and '.join(names)}": self.loads[index]
            for index, names in shown.items()
        }

    def beyond(self) -> list[str]:
        """What is beyond the limits, and what is missing."""
        missing = sum(load.missing_count for load in self.loads)
        texts = [f"{self.title}: {missing:,} messages did not come in time"] if missing else []
        return texts + [
            f"{self.title}: {verdict(self.p999, limit)}"
            for limit in self.limits()
            if self.p999 > limit.millis
        ]

    def print(self) -> None:
        """A line for each round, and the medians beside their limits."""
        print(f"\npublish to receive, {self.title}, in ms, by rounds:")
        print(f"    {'':8}{'p50':>9}{'p99':>9}{'p99.9':>9}{'worst':>9}   bare syncs p99.9, limits")
        for number, load in enumerate(self.loads, 1):
            print(f"    {number:<8}{_row(load.messages.found)}   {_limits(load.bare, load.limits)}")
        found, bare = (
            Percentiles.medians(each)
            for each in ([load.messages.found for load in self.loads], [x.bare for x in self.loads])
        )
        print(f"    {'median':8}{_row(found)}   {_limits(bare, self.limits())}")
        for limit, count in zip(self.limits(), self.within_counts(), strict=True):
            total = len(self.loads)
            print(f"    median {verdict(self.p999, limit)}; {count} of {total} were within theirs")


def _row(found: Percentiles) -> str:
    return "".join(f"{x:9.2f}" for x in (found.p50, found.p99, found.p999, found.worst))


def _limits(bare: Percentiles, limits: Sequence[Limit]) -> str:
    return f"{bare.p999:.2f}, " + ", ".join(f"{limit.millis:.2f}" for limit in limits)


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


async def measure(
    target: Target, own: Trace, directory: Path, seconds: float, rounds: int
) -> list[Rounds]:
    """The loads in so many rounds; `own` notes what holds up this process.

    Raises:
        RuntimeError: A step did not end in time.
    """
    async with step(f"publishing {KEYS:,} keys", SET_UP_SECONDS):
        await fill_with_keys(target, KEYS)
    async with step(f"publishing {BEFORE_BYTES >> 20} MB", SET_UP_SECONDS):
        await durable_publish(
            target, size_bytes=1024, connections=1, seconds=0, total_bytes=BEFORE_BYTES
        )
    async with step(f"finding the rate that a consumer gets, {FINDS} times", SET_UP_SECONDS):
        half = await _half_rate(target)
    async with step(f"and {FINDS} times with all that under way", SET_UP_SECONDS), beside(target):
        half_meanwhile = await _half_rate(target)
    loads = [
        (LOW_RATE, Rounds(f"{LOW_RATE:,} a second", [])),
        (half, Rounds(f"{half:,} a second, half of what a consumer gets", [])),
        (
            half_meanwhile,
            Rounds(f"{half_meanwhile:,} a second, half of what one gets with all that", []),
        ),
    ]

    async def go_on() -> None:
        for number in range(1, rounds + 1):
            before = bare_syncs(directory, SYNCS_SECONDS)
            for rate, each in loads:
                print(f"round {number} of {rounds}, {each.title}:")
                load, before = await one_load(
                    target, directory, rate, seconds, before, is_half_rate=rate != LOW_RATE
                )
                load.print()
                each.loads.append(load)

    await own.watched(go_on())
    return [each for _, each in loads]


async def _half_rate(target: Target) -> int:
    rates: list[float] = []
    for _ in range(FINDS):
        taken = await tailing_consume(target, subscriptions=1, seconds=FIND_SECONDS)
        assert taken.entries_per_second is not None
        rates.append(taken.entries_per_second)
    print("    a second: " + ", ".join(f"{rate:,.0f}" for rate in rates), flush=True)
    return int(statistics.median(rates) / 2)


async def one_load(
    target: Target,
    directory: Path,
    rate: int,
    seconds: float,
    before: list[float],
    *,
    is_half_rate: bool,
) -> tuple[Load, list[float]]:
    """Messages at a rate, and the bare syncs after them; `before` are those before."""
    groups = bare_groups(directory, rate, GROUPS_SECONDS)
    async with step("    under way", seconds + MORE_SECONDS), beside(target):
        times = await timed_messages(target, rate_per_second=rate, seconds=seconds)
    after = bare_syncs(directory, SYNCS_SECONDS)
    bare = Percentiles.of(before + after)
    limits = limits_of(bare.p999, is_half_rate=is_half_rate)
    missing_count = int(rate * (seconds + 1)) - rate - len(times)
    return Load(Messages.of(times), bare, limits, Percentiles.of(groups), missing_count), after


def main() -> None:
    """Measure the loads, and print their worst moments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load in a round")
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for data")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error(f"--rounds is {arguments.rounds}: at least one is needed")
    say_how_it_ends()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    own = Trace()
    gc.disable()  # this process would find nothing, and stand still meanwhile
    # As in the broker's process: 5 ms, for which a thread beside may hold the loop up, would count.
    hurry_threads()
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trace"
        program = (sys.executable, "-m", "benchmarks.traced_broker", str(path))
        target = start_ours(arguments.directory, SETTINGS, program=program)
        print(f"load of the machine at the begin: {os.getloadavg()[0]:.1f}")
        try:
            with stolen_watched(own):
                found = uvloop.run(
                    measure(target, own, arguments.directory, arguments.seconds, arguments.rounds)
                )
        finally:
            target.stop()
        if not path.exists():
            raise SystemExit(
                "the broker was killed, as it had not ended after 30 s: no trace of it"
            )
        spans: list[Span] = [
            (name, start, end) for name, start, end in json.loads(path.read_text())
        ]
    spans += [(f"load: {name}", start, end) for name, start, end in own.spans]
    for each in found:
        for name, load in each.worst_and_median().items():
            print_moments(f"\n{each.title}, {name}", load.messages, spans)
    for each in found:
        each.print()
    exit_with([line for each in found for line in each.beyond()])


if __name__ == "__main__":
    main()
