"""Plays one scenario against a broker: sockets, HTTP, waits; reports what differs and where."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from tests.integration.transcripts import rest
from tests.integration.transcripts.frames import (
    Received,
    decode_frame,
    encode_command,
    encode_step,
    field_of,
)
from tests.integration.transcripts.matching import Matcher, describe
from tests.integration.transcripts.recording import Recording, Scenario, Step
from tests.integration.transcripts.values import Names

DEFAULT_WITHIN_SECONDS = 20.0
LEFTOVER_SECONDS = 0.3
SETTLING_LOOKUPS = 256


@dataclass(frozen=True, slots=True)
class Target:
    """The broker that is asked."""

    broker_host: str
    broker_port: int
    web_host: str
    web_port: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of a scenario showed; no differences means that it passed."""

    name: str
    differences: list[str] = field(default_factory=list)

    @property
    def has_passed(self) -> bool:
        """Whether everything was as recorded."""
        return not self.differences


class Connection:
    """One connection: reads in the background, answers pings unless told not to."""

    def __init__(self, *, answers_pings: bool) -> None:
        self._answers_pings = answers_pings
        self._received: list[Received] = []
        self._news = asyncio.Event()
        self.is_closed = False

    async def open(self, target: Target) -> None:
        """Connect and start to read."""
        self._reader, self._writer = await asyncio.open_connection(
            target.broker_host, target.broker_port, limit=1 << 24
        )
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                received = decode_frame(await self._reader.readexactly(size))
                if self._answers_pings and received.type == "PING":
                    pong = BaseCommand(type=BaseCommand.PONG)
                    pong.pong.SetInParent()
                    self._writer.write(encode_command(pong))
                    continue
                self._received.append(received)
                self._news.set()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.is_closed = True
            self._news.set()

    async def send(self, data: bytes, *, split: bool = False) -> None:
        """Write; a connection the broker has closed takes it without a word."""
        if self._writer.is_closing():
            return
        with contextlib.suppress(OSError):
            if not split:
                self._writer.write(data)
                await self._writer.drain()
                return
            for index in range(len(data)):
                self._writer.write(data[index : index + 1])
                await self._writer.drain()
                await asyncio.sleep(0)

    async def take(self, count: int | None, within: float) -> list[Received]:
        """`count` commands, or what came until the broker closed or the time was over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self.is_closed and (count is None or len(self._received) < count):
                    self._news.clear()
                    await self._news.wait()
        taken = self._received[:count] if count is not None else self._received[:]
        del self._received[: len(taken)]
        return taken

    async def wait_closed(self, within: float) -> bool:
        """Whether the broker closes it in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self.is_closed:
                    self._news.clear()
                    await self._news.wait()
        return self.is_closed

    async def close(self) -> None:
        """Close our side."""
        self._task.cancel()
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._task


class Player:
    """One run of one scenario."""

    def __init__(
        self,
        recording: Recording,
        scenario: Scenario,
        target: Target,
        results: Mapping[int, Any] | None = None,
    ) -> None:
        """`results` replaces recorded results, by the index of their step."""
        self._scenario = scenario
        self._target = target
        self._names = Names()
        self._matcher = Matcher(recording, self._names)
        self._results = results or {}
        self._connections: dict[str, Connection] = {}
        self._all: list[Connection] = []
        self._differences: list[str] = []
        self._last_step = 0

    async def play(self) -> Outcome:
        """Play all steps; stops at the first that differs."""
        try:
            for index, step in enumerate(self._scenario.steps):
                self._last_step = index
                if step.get("at_the_end"):
                    break
                await self._play_step(step, self._results.get(index, step.get("result")))
                if self._differences:
                    break
            else:
                self._last_step += 1
            if not self._differences:
                await self._look_at_leftovers()
        except (OSError, KeyError, ValueError, TimeoutError) as error:
            self._note(f"{type(error).__name__}: {error}")
        finally:
            for connection in self._all:
                await connection.close()
        return Outcome(self._scenario.name, self._differences)

    def _note(self, *differences: str) -> None:
        for difference in differences:
            self._differences.append(f"step {self._last_step}: {difference}")

    async def _play_step(self, step: Step, result: Any) -> None:
        if "open" in step:
            await self._open(step["open"], answers_pings=step.get("answer_pings", True))
        elif "connect" in step:
            await self._connect(step)
        elif "close" in step:
            await self._connections[step["close"]].close()
        elif "wait" in step:
            await asyncio.sleep(step["wait"])
        elif "rest" in step:
            await self._rest(step, result)
        elif "receive" in step:
            await self._receive(step, result)
        elif "silence" in step:
            taken = await self._take_in_silence(step, len(result["commands"]))
            self._compare(step, result, taken)
        else:
            await self._send(step)

    async def _open(self, name: str, *, answers_pings: bool = True) -> Connection:
        connection = Connection(answers_pings=answers_pings)
        await connection.open(self._target)
        self._connections[name] = connection
        self._all.append(connection)
        return connection

    async def _connect(self, step: Step) -> None:
        connection = await self._open(step["connect"])
        command = BaseCommand(type=BaseCommand.CONNECT)
        command.connect.client_version = "wire-suite"
        command.connect.protocol_version = step["protocol_version"]
        for flag, value in (step.get("feature_flags") or {}).items():
            setattr(command.connect.feature_flags, flag, value)
        await connection.send(encode_command(command))
        answers = await connection.take(1, DEFAULT_WITHIN_SECONDS)
        if [answer.type for answer in answers] != ["CONNECTED"]:
            self._note(f"no CONNECTED but {[describe(answer) for answer in answers]}")

    async def _send(self, step: Step) -> None:
        connection = self._connections[step["on"]]
        if "raw" in step:
            parts = (
                bytes.fromhex(part) if isinstance(part, str) else bytes(part["zeros"])
                for part in step["raw"]
            )
            await connection.send(b"".join(parts))
        elif "send_together" in step:
            frames = [encode_step(item, self._names) for item in step["send_together"]]
            await connection.send(b"".join(frames))
        else:
            frame = encode_step(dict(step), self._names)
            await connection.send(frame, split=step.get("split") == "every byte")

    async def _take_in_silence(self, step: Step, count: int) -> list[Received]:
        """What comes while we are silent. A slow disk gets more time for what was recorded."""
        connection = self._connections[step["on"]]
        taken = await connection.take(None, step["silence"])
        if len(taken) < count:
            taken += await connection.take(count - len(taken), DEFAULT_WITHIN_SECONDS)
        return taken

    async def _rest(self, step: Step, result: Any) -> None:
        status, body = await rest.call(
            self._target.web_host,
            self._target.web_port,
            step["rest"],
            step["path"],
            step.get("body"),
        )
        if status != result["status"]:
            self._note(
                f"{step['rest']} {step['path']}: expected {result['status']}, "
                f"came {status} {json.dumps(body)[:300]}"
            )
        elif "body" in result and body != result["body"]:
            self._note(f"{step['rest']} {step['path']}: expected {result['body']}, came {body}")

    async def _receive(self, step: Step, result: Any) -> None:
        connection = self._connections[step["on"]]
        within = step.get("within", DEFAULT_WITHIN_SECONDS)
        count = None if step["receive"] == "until closed" else step["receive"]
        taken = await connection.take(count, within)
        if result["closed"]:
            await connection.wait_closed(within)
        self._compare(step, result, taken)

    def _compare(self, step: Step, result: Any, taken: list[Received]) -> None:
        any_order = bool(step.get("any_order"))
        self._note(*self._matcher.compare(result["commands"], taken, any_order=any_order))
        is_closed = self._connections[step["on"]].is_closed
        if is_closed != result["closed"]:
            self._note(f"expected closed={result['closed']}, is closed={is_closed}")

    async def _look_at_leftovers(self) -> None:
        recorded = {
            step["on"]: self._results.get(index, step["result"])
            for index, step in enumerate(self._scenario.steps)
            if step.get("at_the_end")
        }
        await asyncio.sleep(LEFTOVER_SECONDS)
        for name, connection in self._connections.items():
            taken = await connection.take(None, 0)
            result = recorded.get(name)
            expected = result["commands"] if result else []
            self._note(*self._matcher.compare(expected, taken, any_order=True))
            if result and result["closed"] and not await connection.wait_closed(1):
                self._note(f"connection {name} is open at the end")


async def settle(target: Target) -> None:
    """Look topics of `public/default` up, so that all its bundles have their owner."""
    connection = Connection(answers_pings=True)
    await connection.open(target)
    connect = BaseCommand(type=BaseCommand.CONNECT)
    connect.connect.client_version = "wire-suite"
    connect.connect.protocol_version = 21
    await connection.send(encode_command(connect))
    for attempt in range(SETTLING_LOOKUPS):
        command = BaseCommand(type=BaseCommand.LOOKUP)
        lookup = getattr(command, field_of("LOOKUP"))
        lookup.topic = f"persistent://public/default/settle-{attempt}"
        lookup.request_id = attempt
        await connection.send(encode_command(command))
    answers = await connection.take(1 + SETTLING_LOOKUPS, 60)
    await connection.close()
    if len(answers) != 1 + SETTLING_LOOKUPS:
        raise TimeoutError(f"{len(answers) - 1} of {SETTLING_LOOKUPS} lookups were answered")


async def play_all(
    recording: Recording,
    scenarios: list[Scenario],
    target: Target,
    *,
    at_once: int = 64,
    results: Mapping[str, Mapping[int, Any]] | None = None,
) -> dict[str, Outcome]:
    """Play scenarios, many at once; outcomes by name."""
    gate = asyncio.Semaphore(at_once)
    replaced = results or {}

    async def play_one(scenario: Scenario) -> Outcome:
        async with gate:
            player = Player(recording, scenario, target, replaced.get(scenario.name))
            return await player.play()

    outcomes = await asyncio.gather(*(play_one(scenario) for scenario in scenarios))
    return {outcome.name: outcome for outcome in outcomes}
