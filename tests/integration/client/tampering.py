"""A whole broker, and a proxy before it that changes what it says: one kind of command, one way.

Everything runs in memory and in virtual time, so "nothing hangs beyond its time-out" is exact.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pulsar_py.client.client import Client
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.standalone import Broker
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop
from pulsar_py.wire.framing import SIZES, FrameDecoder

OPERATION_TIMEOUT_SECONDS = 10.0
SLACK_SECONDS = 5.0
"""What may come on top of a time-out: closing connections."""
LIMIT = 1 << 30

Say = Callable[[bytes], None]
Tamper = Callable[["Link", bytes, bytes], None]
"""Called with the link, the command and what follows it; says what it likes to the client."""


def framed(command: bytes, rest: bytes = b"") -> bytes:
    return SIZES.pack(4 + len(command) + len(rest), len(command)) + command + rest


class Link(asyncio.Protocol):
    """One connection of a client, and its other half to the broker."""

    def __init__(self, proxy: TamperingProxy) -> None:
        self.proxy = proxy
        self.client: asyncio.Transport | None = None
        self.is_deaf = False
        self._broker = _BrokerHalf(self)
        self._early: list[bytes] = []

    def connection_made(self, transport) -> None:
        self.client = transport
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        work = asyncio.get_running_loop().create_connection(lambda: self._broker, "broker", 6650)
        self._connecting = asyncio.get_running_loop().create_task(work, name="tampering")

    def data_received(self, data: bytes) -> None:
        if self._broker.transport is None:
            self._early.append(data)
        else:
            self._broker.transport.write(data)

    def broker_connected(self) -> None:
        for data in self._early:
            self._broker.transport.write(data)

    def connection_lost(self, exc) -> None:
        if self._broker.transport is not None:
            self._broker.transport.close()

    def say(self, data: bytes) -> None:
        if not self.is_deaf:
            self.client.write(data)

    def close(self) -> None:
        self.client.close()

    def on_frame(self, command: bytes, rest: bytes | None) -> None:
        kind = BaseCommand.FromString(command).type
        tamper = self.proxy.rules.get(kind)
        if tamper is None or self.proxy.times == 0:
            self.say(framed(command, rest or b""))
            return
        self.proxy.times -= 1
        self.proxy.tampered += 1
        tamper(self, command, rest or b"")


class _BrokerHalf(asyncio.Protocol):
    def __init__(self, link: Link) -> None:
        self._link = link
        self._decoder = FrameDecoder(LIMIT)
        self.transport = None

    def connection_made(self, transport) -> None:
        self.transport = transport
        self._link.broker_connected()

    def data_received(self, data: bytes) -> None:
        for command, rest in self._decoder.decode(data):
            if not self._link.client.is_closing():
                self._link.on_frame(command, rest)

    def connection_lost(self, exc) -> None:
        self._link.close()


class TamperingProxy:
    """Listens where clients connect."""

    def __init__(self) -> None:
        self.rules: dict[int, Tamper] = {}
        self.times = -1  # how often; below 0 always
        self.tampered = 0

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Link(self), "proxy", 6650)

    def tamper(self, kind: int, how: Tamper, *, times: int = -1) -> None:
        self.rules[kind] = how
        self.times = times
        self.tampered = 0

    def stop_tampering(self) -> None:
        self.rules.clear()
        self.times = -1


# --- ways to be bad ----------------------------------------------------------------------------


def silent(link: Link, command: bytes, rest: bytes) -> None:
    """Says nothing, but goes on otherwise."""


def dead(link: Link, command: bytes, rest: bytes) -> None:
    """Never says anything again."""
    link.is_deaf = True


def closes(link: Link, command: bytes, rest: bytes) -> None:
    link.close()


def closes_in_the_middle(link: Link, command: bytes, rest: bytes) -> None:
    data = framed(command, rest)
    link.say(data[: len(data) // 2])
    link.close()


def garbage(link: Link, command: bytes, rest: bytes) -> None:
    link.say(random.Random(len(command)).randbytes(300))


def text(link: Link, command: bytes, rest: bytes) -> None:
    link.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def claims_gigabytes(link: Link, command: bytes, rest: bytes) -> None:
    link.say(SIZES.pack(0x7FFFFFFF, len(command)) + command)


def claims_nothing(link: Link, command: bytes, rest: bytes) -> None:
    link.say(SIZES.pack(0, 0))


def claims_a_longer_command(link: Link, command: bytes, rest: bytes) -> None:
    link.say(SIZES.pack(4 + len(command), len(command) + 100) + command)


def claims_a_shorter_command(link: Link, command: bytes, rest: bytes) -> None:
    link.say(SIZES.pack(4 + len(command), len(command) - 1) + command)


def breaks_off_the_command(link: Link, command: bytes, rest: bytes) -> None:
    link.say(framed(command[: len(command) // 2], rest))


def leaves_out_the_fields(link: Link, command: bytes, rest: bytes) -> None:
    link.say(framed(command[:2], rest))


def speaks_of_the_future(link: Link, command: bytes, rest: bytes) -> None:
    """A command type that nobody knows."""
    link.say(framed(b"\x08\xe7\x07"))


def answers_something_else(link: Link, command: bytes, rest: bytes) -> None:
    """The right request id in the wrong command."""
    found = BaseCommand.FromString(command)
    field = getattr(found, _field_of(found))
    request_id = getattr(field, "request_id", 0)
    other = BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE)
    other.getSchemaResponse.request_id = request_id
    other.getSchemaResponse.error_code = ServerError.TopicNotFound
    link.say(framed(other.SerializeToString()))


def speaks_as_a_client(link: Link, command: bytes, rest: bytes) -> None:
    other = BaseCommand(type=BaseCommand.FLOW)
    other.flow.consumer_id = 0
    other.flow.messagePermits = 1
    link.say(framed(other.SerializeToString()))


def _field_of(command: BaseCommand) -> str:
    return next(field.name for field, _ in command.ListFields() if field.name != "type")


EVERY_WAY = (
    silent,
    dead,
    closes,
    closes_in_the_middle,
    garbage,
    text,
    claims_gigabytes,
    claims_nothing,
    claims_a_longer_command,
    claims_a_shorter_command,
    breaks_off_the_command,
    leaves_out_the_fields,
    speaks_of_the_future,
    answers_something_else,
    speaks_as_a_client,
)


# --- the world ---------------------------------------------------------------------------------


@asynccontextmanager
async def bad_world(**options: object) -> AsyncIterator[tuple[Client, TamperingProxy]]:
    """A broker, the proxy, and a client; checks at the end that nothing outlives the client."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    clock = VirtualClock()
    proxy = TamperingProxy()
    config = {"advertisedListeners": "internal:pulsar://proxy:6650"}
    async with Broker(
        config=config, host="broker", port=6650, clock=clock, chance=random.Random(1)
    ):
        await proxy.start()
        before = asyncio.all_tasks()
        client = Client(
            "pulsar://proxy:6650",
            clock=clock,
            chance=random.Random(2),
            **{
                "operation_timeout_seconds": OPERATION_TIMEOUT_SECONDS,
                "connection_timeout_ms": 3_000,
                "keep_alive_interval_seconds": 2.0,
                **options,
            },
        )
        try:
            yield client, proxy
        finally:
            begun = loop.time()
            await client.close()
            assert loop.time() - begun <= OPERATION_TIMEOUT_SECONDS + SLACK_SECONDS
        assert client.context.memory_limit.current_bytes == 0
        await asyncio.sleep(1)
        left = [
            task.get_name()
            for task in asyncio.all_tasks() - before
            if not task.get_name().startswith(("broker", "connections", "tampering"))
        ]
        assert not left
