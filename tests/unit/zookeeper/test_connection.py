from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute, messages
from pulsar_py.zookeeper.connection import ConnectionLostError, ZooKeeperConnection
from pulsar_py.zookeeper.messages import Operation, WatchEvent
from tests.unit.zookeeper.scripted_server import ScriptedServer, answer


class Events:
    def __init__(self) -> None:
        self.news: list[int] = []
        self.watched: list[WatchEvent] = []
        self.lost: list[str] = []

    def on_news(self, sent_seconds: float, zxid: int) -> None:
        self.news.append(zxid)

    def on_watch_event(self, event: WatchEvent) -> None:
        self.watched.append(event)

    def on_lost(self, reason: str) -> None:
        self.lost.append(reason)


Test = Callable[[ScriptedServer, ZooKeeperConnection, Events], Awaitable[None]]


def connected(test: Test) -> None:
    async def work() -> None:
        server = ScriptedServer()
        await server.start()
        events = Events()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: ZooKeeperConnection(VirtualClock(), events), "server", 2181
        )
        greeting = messages.connect(
            last_zxid=0, timeout_millis=6000, session_id=0, password=b"", may_read_only=False
        )
        assert (await connection.greet(greeting)).session_id == 1
        await test(server, connection, events)
        connection.lose("the test is over")
        server.stop()

    run_simulated(work())


def test_answers_go_to_who_asked_in_order() -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        server.handler = lambda _operation, record: (0, jute.text(record.text().upper()))
        asked = [connection.send(Operation.SYNC, messages.sync(f"/{name}")) for name in "abc"]
        assert [(await each).record.text() for each in asked] == ["/A", "/B", "/C"]
        assert len(events.news) == 3

    connected(test)


def test_who_gave_up_waiting_disturbs_nobody() -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        first, second = connection.send(Operation.SYNC), connection.send(Operation.SYNC)
        first.cancel()
        assert (await second).error == 0

    connected(test)


def test_whoever_waits_is_told_that_the_connection_ended() -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        server.handler = lambda _operation, _record: None
        waiting = connection.send(Operation.SYNC)
        await asyncio.sleep(1)
        assert connection.waiting_seconds == pytest.approx(1)
        server.cut()
        with pytest.raises(ConnectionLostError):
            await waiting
        with pytest.raises(ConnectionLostError, match="has ended"):
            await connection.send(Operation.SYNC)
        assert len(events.lost) == 1

    connected(test)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (answer(99), "an answer to request 99, expected none"),
        (jute.int32(-5), "an answer of -5 bytes"),
        (jute.int32(1 << 30), "an answer of 1073741824 bytes"),
        (jute.buffer(b"\0"), "ends before"),
        (answer(messages.AUTH_XID, -115), "refused what begins a connection: error -115"),
    ],
)
def test_what_makes_no_sense_ends_the_connection(frame: bytes, reason: str) -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        server.push(frame)
        await asyncio.sleep(1)
        assert len(events.lost) == 1
        assert reason in events.lost[0]

    connected(test)


def test_changes_that_watches_tell_and_pings_come_between_answers() -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        event = jute.int32(1) + jute.int32(3) + jute.text("/a")
        asked = connection.send(Operation.SYNC)
        server.push(answer(messages.WATCH_EVENT_XID, 0, event))
        connection.ping()
        await asked
        await asyncio.sleep(1)
        assert events.watched == [WatchEvent(1, "/a")]
        assert len(events.news) == 2
        assert connection.silent_seconds == pytest.approx(1)
        assert connection.waiting_seconds == 0

    connected(test)


def test_an_answer_in_pieces_is_read_when_it_is_whole() -> None:
    async def test(server: ScriptedServer, connection: ZooKeeperConnection, events: Events) -> None:
        server.handler = lambda _operation, _record: None
        asked = connection.send(Operation.SYNC)
        await asyncio.sleep(1)
        for byte in answer(1, -101):
            server.push(bytes([byte]))
            await asyncio.sleep(0.01)
        assert (await asked).error == -101

    connected(test)


def test_it_works_on_uvloop() -> None:
    async def work() -> None:
        came = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.set_result(await reader.readexactly(5))
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: ZooKeeperConnection(VirtualClock(), Events()), "127.0.0.1", port
            )
            with pytest.raises(ConnectionLostError):
                await connection.greet(b"hello")
            assert await came == b"hello"

    uvloop.run(work())
