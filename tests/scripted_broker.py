"""A broker that does as it is told: answers politely by default, badly where a test says so.

It lives in a `SimulatedLoop`, speaks the real protocol, keeps all it received, and can push any
command at any time. `script[BaseCommand.X]` replaces the answer to a type: a function of the command
that returns frames, bytes, or nothing for silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from pulsar_py.client.client import Client
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, FeatureFlags
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.wire import commands
from pulsar_py.wire.framing import DEFAULT_MAX_MESSAGE_SIZE, FrameDecoder, max_frame_bytes

Answer = Callable[["BrokerEnd", BaseCommand], Iterable[bytes] | bytes | None]


class BrokerEnd(asyncio.Protocol):
    """One connection, at the broker's end."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.decoder = FrameDecoder(max_frame_bytes(DEFAULT_MAX_MESSAGE_SIZE))
        self.received: list[BaseCommand] = []
        self.transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.broker.ends.append(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True

    def data_received(self, data: bytes) -> None:
        for frame in self.decoder.decode(data):
            command = commands.read_command(frame.command)
            self.received.append(command)
            self.broker.received.append(command)
            if frame.headers_and_payload is not None:
                self.broker.entries.append(frame.headers_and_payload)
            answer = self.broker.script.get(command.type, _SILENT)(self, command)
            self.push(*([answer] if isinstance(answer, bytes) else answer or ()))

    def push(self, *frames: bytes) -> None:
        for frame in frames:
            self.transport.write(frame)

    def cut(self) -> None:
        self.transport.abort()


class ScriptedBroker:
    """One address with a script."""

    def __init__(self, *, host: str = "broker") -> None:
        self.ends: list[BrokerEnd] = []
        self.received: list[BaseCommand] = []
        # What came after the command, of each SEND.
        self.entries: list[bytes] = []
        self.script: dict[int, Answer] = dict(POLITE)
        self.address = ""
        self._host = host
        self._server: asyncio.AbstractServer | None = None

    async def start(self, *, ssl: object = None) -> ScriptedBroker:
        """Listen; with an SSL context on a real loop only, with `host` a real one, too."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: BrokerEnd(self), self._host, 0, ssl=ssl)
        self.address = f"{self._host}:{self._server.sockets[0].getsockname()[1]}"
        return self

    @property
    def service_url(self) -> str:
        return f"pulsar://{self.address}"

    @property
    def end(self) -> BrokerEnd:
        """The newest connection that is not lost."""
        return next(end for end in reversed(self.ends) if not end.is_lost)

    @property
    def open_ends(self) -> list[BrokerEnd]:
        return [end for end in self.ends if not end.is_lost]

    def types(self) -> list[str]:
        """What was received, by name."""
        return [BaseCommand.Type.Name(command.type) for command in self.received]

    def of(self, kind: int) -> list[BaseCommand]:
        return [command for command in self.received if command.type == kind]

    def close(self) -> None:
        self._server.close()
        for end in self.open_ends:
            end.cut()


def _SILENT(end: BrokerEnd, command: BaseCommand) -> None:  # noqa: N802 - a constant
    return None


def connected(end: BrokerEnd, command: BaseCommand) -> bytes:
    return commands.connected("test", 21, DEFAULT_MAX_MESSAGE_SIZE, FeatureFlags())


def owned_here(end: BrokerEnd, command: BaseCommand) -> bytes:
    return lookup_answer(command, end.broker.address)


def lookup_answer(command: BaseCommand, address: str, **options: bool) -> bytes:
    flags = {
        "is_redirect": False,
        "is_authoritative": True,
        "is_proxy_through_service_url": False,
        **options,
    }
    return commands.lookup_response(
        command.lookupTopic.request_id,
        broker_service_url=f"pulsar://{address}",
        broker_service_url_tls=f"pulsar+ssl://{address}",
        **flags,
    )


def _success(field: str) -> Answer:
    return lambda end, command: commands.success(getattr(command, field).request_id)


POLITE: dict[int, Answer] = {
    BaseCommand.CONNECT: connected,
    BaseCommand.PING: lambda end, command: commands.pong(),
    BaseCommand.LOOKUP: owned_here,
    BaseCommand.PARTITIONED_METADATA: lambda end, command: commands.partitioned_metadata_response(
        command.partitionMetadata.request_id, 0
    ),
    BaseCommand.PRODUCER: lambda end, command: commands.producer_success(
        command.producer.request_id, command.producer.producer_name or "p"
    ),
    BaseCommand.SUBSCRIBE: _success("subscribe"),
    BaseCommand.CLOSE_PRODUCER: _success("close_producer"),
    BaseCommand.CLOSE_CONSUMER: _success("close_consumer"),
    BaseCommand.UNSUBSCRIBE: _success("unsubscribe"),
}


def simulated_client(broker: Any, **options: Any) -> Client:
    """A client of a scripted broker, or of a URL, in virtual time; its chance never changes."""
    url = broker.service_url if isinstance(broker, ScriptedBroker) else broker
    return Client(url, clock=VirtualClock(), chance=Random(7), **options)


def simulated(test: Callable[[ScriptedBroker], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time beside one scripted broker."""

    async def work() -> None:
        broker = await ScriptedBroker().start()
        try:
            await test(broker)
        finally:
            broker.close()

    def run() -> None:
        run_simulated(work())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    run.__module__ = test.__module__
    return run
