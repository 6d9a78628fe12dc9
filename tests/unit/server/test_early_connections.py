from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import pytest
import uvloop

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConnect
from pulsar_py.server import early_connections
from pulsar_py.server.early_connections import EarlyConnections
from pulsar_py.server.listeners import Listener
from pulsar_py.wire.commands import encode
from tests.unit.server.test_listeners import connections

CONNECT = encode(CommandConnect(client_version="x", protocol_version=3))
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])

NewLoop = Callable[[], asyncio.AbstractEventLoop]


class HeldImports:
    """An import that waits until it may go on, and may fail then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        self.names: list[Sequence[str]] = []
        self.may_go_on = threading.Event()
        self.fails = fails
        monkeypatch.setattr(early_connections, "import_all", self)

    def __call__(self, names: Sequence[str]) -> None:
        self.names.append(names)
        assert self.may_go_on.wait(30)
        if self.fails:
            raise ImportError(f"no {names[0]}")


async def opened(listener: Listener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", listener.port)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - it is known by asking
            await asyncio.sleep(0)


async def answer(reader: asyncio.StreamReader) -> BaseCommand:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return BaseCommand.FromString((await reader.readexactly(size))[4:])


@LOOPS
def test_sockets_wait_for_the_import_and_lose_nothing(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = HeldImports(monkeypatch)

    async def serve() -> None:
        served = connections()
        listener = Listener(served)
        await listener.start("127.0.0.1", 0)
        (first, writer), (second, other) = await opened(listener), await opened(listener)
        writer.write(CONNECT[:5])
        other.write(CONNECT)
        await until(lambda: len(listener._early._waiting) == 2)
        writer.write(CONNECT[5:])
        assert served.count == 0
        imports.may_go_on.set()
        assert (await answer(first)).connected.protocol_version == 3
        assert (await answer(second)).connected.protocol_version == 3
        assert served.count == 2
        assert imports.names == [early_connections.SERVING_MODULES], "once"
        third, last = await opened(listener)
        last.write(CONNECT)
        assert (await answer(third)).connected.protocol_version == 3
        assert imports.names == [early_connections.SERVING_MODULES]
        await listener.close()
        await served.close()
        for each in (writer, other, last):
            each.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


@LOOPS
def test_a_client_that_leaves_meanwhile_is_forgotten(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = HeldImports(monkeypatch)

    async def serve() -> None:
        served = connections()
        listener = Listener(served)
        await listener.start("127.0.0.1", 0)
        _, leaving = await opened(listener)
        reader, writer = await opened(listener)
        await until(lambda: len(listener._early._waiting) == 2)
        leaving.transport.abort()
        imports.may_go_on.set()
        writer.write(CONNECT)
        assert (await answer(reader)).connected.protocol_version == 3
        # It may have become a connection before its end was seen.
        await until(lambda: served.count == 1)
        assert not listener._early._waiting
        await listener.close()
        await served.close()
        writer.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


@LOOPS
def test_closing_drops_those_that_wait(new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    imports = HeldImports(monkeypatch)

    async def serve() -> None:
        served = connections()
        listener = Listener(served)
        await listener.start("127.0.0.1", 0)
        reader, writer = await opened(listener)
        await until(lambda: len(listener._early._waiting) == 1)
        await listener.close()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        assert served.count == 0
        imports.may_go_on.set()
        await served.close()
        writer.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


@LOOPS
def test_a_socket_that_is_connected_after_the_import_is_served(
    new_loop: NewLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS the protocol is made before the handshake, and connected after it."""
    HeldImports(monkeypatch).may_go_on.set()

    async def serve() -> None:
        served = connections()
        early = EarlyConnections(served)
        protocol = early.new_connection()
        await until(lambda: early._is_imported)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.write(CONNECT)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, ours)
        assert (await answer(reader)).connected.protocol_version == 3
        await early.close()
        await served.close()
        writer.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())


def test_where_the_import_fails_clients_are_dropped_and_the_next_one_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    imports = HeldImports(monkeypatch, fails=True)
    imports.may_go_on.set()

    async def serve() -> None:
        served = connections()
        listener = Listener(served)
        await listener.start("127.0.0.1", 0)
        reader, writer = await opened(listener)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        assert "no pulsar_py.server.connection.server_cnx" in caplog.text
        imports.fails = False
        reader, writer = await opened(listener)
        writer.write(CONNECT)
        assert (await answer(reader)).connected.protocol_version == 3
        await listener.close()
        await served.close()
        writer.close()

    asyncio.run(serve())


FIRST_CLIENT = """
import asyncio, sys, threading
from pulsar_py.client.client import Client
from pulsar_py.standalone import Broker

late = []
class Spy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("pulsar_py."):
            late.append((name, threading.current_thread() is threading.main_thread()))

async def serve():
    async with Broker() as broker:
        known = set(sys.modules)
        print("pulsar_py.server.connection.server_cnx" in known,
              "pulsar_py.server.topics.persistent" in known,
              "pulsar_py.managed_ledger.managed_ledger" in known)
        sys.meta_path.insert(0, Spy)
        async with Client(broker.service_url) as client:
            consumer = await client.subscribe("t", "s")
            producer = await client.create_producer("t")
            await producer.send(b"m")
            print((await consumer.receive()).data().decode())
        parts = ("pulsar_py.server.", "pulsar_py.managed_ledger.", "pulsar_py.storage.")
        print(any(name.startswith(parts) for name, _ in late),
              *[name for name, is_loop in late if is_loop and name.startswith(parts)])

asyncio.run(serve())
"""


def test_a_thread_imports_what_serves_the_first_client() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CLIENT], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False False False", "m", "True"]
