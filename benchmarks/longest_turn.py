"""Measures how long one command of the largest form keeps other connections waiting.

The broker runs in a thread with a loop that adds up what each of its turns costs that thread in CPU
time. From this thread one connection sends the command and a PING behind it, while another
publishes; when the PONG is there, all that the command asked for is done, or goes on by itself.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

from benchmarks.large_frames import LargestCommand
from benchmarks.largest_commands import largest_commands
from benchmarks.loads import fresh_topic
from benchmarks.raw_client import RawConnection, entry, frame, send_block
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandPing, CommandPong, CommandSubscribe

BOUND_MILLIS = 100
"""The most that one turn may cost."""

ENTRIES = 40_000
"""In the topic that the commands are about; all are unacknowledged at the consumer."""

DEADLINE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Turn:
    """The turns of the broker's loop that one command caused."""

    command: str
    frame_bytes: int
    longest_turn_millis: float
    closing_turn_millis: float
    """The longest one when the connection is closed afterwards, with all that it holds."""
    total_cpu_millis: float
    published_count: int
    """Messages of the other connection that were confirmed meanwhile."""


class TurnTimingLoop(asyncio.SelectorEventLoop):
    """A loop that knows its longest turn, in CPU seconds of its thread."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_turn_seconds = 0.0

    def _run_once(self) -> None:
        start = time.thread_time()
        super()._run_once()  # type: ignore[misc]  # asyncio's own, which the stubs leave out
        self.longest_turn_seconds = max(self.longest_turn_seconds, time.thread_time() - start)


class TimedBroker:
    """A broker in memory, in a thread of its own."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._started: Future[tuple[str, int]] = Future()
        self._stopping: asyncio.Event | None = None
        self._loop: TurnTimingLoop | None = None
        self._thread = threading.Thread(target=self._run, name="broker")
        self.host, self.port = "", 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.host, self.port = self._started.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=TurnTimingLoop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        from pulsar_py.server.config import BrokerConfig  # noqa: PLC0415  # as in calls_per_send
        from pulsar_py.standalone import Broker  # noqa: PLC0415

        self._loop = cast("TurnTimingLoop", asyncio.get_running_loop())
        self._stopping = asyncio.Event()
        try:
            async with Broker(config=BrokerConfig(**self._settings)) as broker:
                host, _, port = broker.service_url.removeprefix("pulsar://").rpartition(":")
                self._started.set_result((host, int(port)))
                await self._stopping.wait()
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)
            raise

    def take(self) -> tuple[float, float]:
        """The longest turn since the last call, and CPU seconds of the loop's thread so far."""
        assert self._loop is not None
        longest, self._loop.longest_turn_seconds = self._loop.longest_turn_seconds, 0.0
        clock = time.pthread_getcpuclockid(self._thread.ident or 0)
        return longest, time.clock_gettime(clock)


async def _filled_topic(broker: TimedBroker, topic: str) -> int:
    """Publish the entries; returns the id of their ledger."""
    connection = await RawConnection.connect(broker.host, broker.port)
    await connection.create_producer(topic, 1)
    connection.start_counting()
    for first in range(0, ENTRIES, 500):
        connection.write(send_block(1, first, 500, entry(b"x")))
        while connection.frames_count < first:
            await asyncio.sleep(0.001)
    while connection.frames_count < ENTRIES:
        await asyncio.sleep(0.001)
    receipt = BaseCommand.FromString(connection.last_frame[8:]).send_receipt
    connection.close()
    return receipt.message_id.ledgerId


async def _attacker(broker: TimedBroker, topic: str, row: LargestCommand) -> RawConnection:
    """A connection whose consumer holds all entries."""
    connection = await RawConnection.connect(broker.host, broker.port)
    await connection.lookup(topic)
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic, subscribe.subscription = topic, f"held-{row.name}"
    subscribe.subType = cast("CommandSubscribe.SubType.ValueType", row.subscription_type)
    subscribe.consumer_id, subscribe.request_id = 1, connection.next_request_id()
    subscribe.initialPosition = CommandSubscribe.Earliest
    await connection.request(command, BaseCommand.SUCCESS)
    sent = f"{topic}-sent"
    await connection.create_producer(sent, 1)
    shared = CommandSubscribe.Shared
    await connection.subscribe(sent, f"sent-{row.name}", 3, kind=shared)
    connection.start_counting()
    connection.flow(3, 1)
    connection.flow(1, ENTRIES)
    async with asyncio.timeout(DEADLINE_SECONDS):
        while connection.frames_count < ENTRIES:
            await asyncio.sleep(0.001)
    return connection


async def _measure(broker: TimedBroker, topic: str, row: LargestCommand) -> Turn:
    attacker = await _attacker(broker, topic, row)
    other = await RawConnection.connect(broker.host, broker.port)
    await other.create_producer(fresh_topic(), 1)
    other.start_counting()
    stored, done = entry(b"x" * 100), asyncio.Event()

    async def publish() -> None:
        while not done.is_set():
            before = other.frames_count
            other.write(send_block(1, 0, 1, stored))
            while other.frames_count == before and not done.is_set():
                await asyncio.sleep(0.001)

    def on_frame(data: memoryview) -> None:
        size = int.from_bytes(data[4:8], "big")
        command = BaseCommand.FromString(bytes(data[8 : 8 + size]))
        if command.type == BaseCommand.PONG:
            done.set()
        elif command.type == BaseCommand.PING:
            attacker.write(frame(BaseCommand(type=BaseCommand.PONG, pong=CommandPong())))

    publishing = asyncio.create_task(publish())
    attacker.on_frame = on_frame
    _, before = broker.take()
    attacker.write(row.frame)
    attacker.write(frame(BaseCommand(type=BaseCommand.PING, ping=CommandPing())))
    assert attacker.transport is not None
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not done.is_set():
            done_or_closed = attacker.transport.is_closing()
            if done_or_closed:
                done.set()  # the broker refused the connection
            await asyncio.sleep(0.002)
    await asyncio.sleep(0.3)  # what follows by itself: tasks, entries sent again
    longest, after = broker.take()
    await publishing
    published = other.frames_count
    attacker.close()
    other.close()
    await asyncio.sleep(0.1)
    closing, _ = broker.take()  # what it held goes back
    return Turn(
        row.name,
        len(row.frame),
        longest * 1e3,
        closing * 1e3,
        (after - before) * 1e3,
        published,
    )


async def _measure_all(broker: TimedBroker, only: str) -> list[Turn]:
    topic = fresh_topic("largest")
    ledger_id = await _filled_topic(broker, topic)
    turns = []
    for row in largest_commands(topic, ledger_id, ENTRIES):
        if only in row.name:
            turn = await _measure(broker, topic, row)
            print_turn(turn)
            turns.append(turn)
    return turns


def print_turn(turn: Turn) -> None:
    """One line of the table."""
    longest = max(turn.longest_turn_millis, turn.closing_turn_millis)
    verdict = "" if longest <= BOUND_MILLIS else f"  ABOVE {BOUND_MILLIS} ms"
    print(
        f"    {turn.command:<44} longest turn {turn.longest_turn_millis:7.1f} ms, "
        f"closing {turn.closing_turn_millis:5.1f} ms, CPU "
        f"{turn.total_cpu_millis:7.0f} ms, others published {turn.published_count}{verdict}",
        flush=True,
    )


def longest_turns(only: str = "") -> list[Turn]:
    """Send each largest command whose name holds `only` to one broker, and print its line."""
    with TimedBroker() as broker:
        return asyncio.run(_measure_all(broker, only))


if __name__ == "__main__":
    import sys

    longest_turns(*sys.argv[1:2])
