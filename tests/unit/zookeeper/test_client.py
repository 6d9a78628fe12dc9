from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperClient, ZooKeeperSettings
from pulsar_py.zookeeper.messages import Operation
from tests.unit.zookeeper.scripted_server import ScriptedServer

Test = Callable[[ScriptedServer, ZooKeeperClient, list[SessionEvent]], Awaitable[None]]

SYNC = (Operation.SYNC, messages.sync("/"))


def with_client(test: Test, settings: ZooKeeperSettings | None = None) -> None:
    async def work() -> None:
        server = ScriptedServer()
        await server.start()
        client = ZooKeeperClient(
            ZooKeeperAddress.parse("zk:server:2181"),
            VirtualClock(),
            Random(7),
            settings or ZooKeeperSettings(session_timeout_millis=6000),
            lambda _event: None,
        )
        client.start()
        await client.request(*SYNC, is_change=False)
        events: list[SessionEvent] = []
        client.session.listen(events.append)
        await test(server, client, events)
        await client.close()
        await client.close()
        server.stop()

    run_simulated(work())


def test_a_session_goes_on_over_another_connection() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.cut()
        await asyncio.sleep(1)
        assert server.connected == [(0, 1), (1, 1)]
        assert events == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]

    with_client(test)


def test_an_expired_session_is_followed_by_a_new_one() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.knows_sessions = False
        server.cut()
        await asyncio.sleep(1)
        assert server.connected == [(0, 1), (1, 0), (0, 2)]
        assert events == [SessionEvent.CONNECTION_LOST, SessionEvent.NEW_SESSION]
        assert client.session.session_id == "0x2"

    with_client(test)


def test_watches_are_set_again_in_requests_of_bounded_size() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        connected: list[str] = []
        client.on_connected = lambda: connected.append("again")
        client.watched.update(dict.fromkeys(f"/{number:0100d}" for number in range(2000)))
        server.operations.clear()
        server.cut()
        await asyncio.sleep(1)
        assert server.operations == [Operation.SET_WATCHES_2] * 2
        assert connected == ["again"]

    with_client(test)


def test_an_idle_session_is_kept_by_pings() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        await asyncio.sleep(60)
        assert client.session.is_good
        assert events == []
        assert 25 < server.operations.count(Operation.PING) < 45

    with_client(test)


def test_a_server_that_answers_nothing_is_left() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.is_mute = True
        waiting = client.request(*SYNC, is_change=False)
        with pytest.raises(MetadataUnavailableError, match="nothing was answered"):
            await waiting
        with pytest.raises(MetadataUnavailableError, match="no connection for 30 s"):
            await client.request(*SYNC, is_change=False)
        assert SessionEvent.IN_DOUBT in events
        server.is_mute = False
        await client.request(*SYNC, is_change=False)
        assert client.session.is_good

    with_client(test)


def test_a_change_that_was_sent_and_not_answered_may_have_been_made() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.handler = lambda _operation, _record: None
        asyncio.get_running_loop().call_later(1, server.cut)
        with pytest.raises(MetadataOutcomeUnknownError):
            await client.request(*SYNC, is_change=True)

    with_client(test)


def test_nothing_is_changed_while_the_session_is_in_doubt() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        client.session._last_news_seconds -= 5.5
        server.operations.clear()
        with pytest.raises(SessionInDoubtError):
            await client.request(*SYNC, is_change=True)
        assert server.operations == []

    with_client(test)


def test_a_closed_session_is_ended_at_the_server_and_followed_by_another() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        session = client.session
        await session.close()
        await client.request(*SYNC, is_change=False)
        assert Operation.CLOSE_SESSION in server.operations
        assert server.connected == [(0, 1), (0, 2)]
        assert not session.is_good
        assert client.session.is_good
        assert events == []

    with_client(test)


def test_who_waits_for_a_connection_is_told_when_the_client_closes() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.stop()
        await asyncio.sleep(1)
        asyncio.get_running_loop().call_later(
            1, lambda: closing.append(asyncio.get_running_loop().create_task(client.close()))
        )
        closing: list[asyncio.Task[None]] = []
        with pytest.raises(MetadataError, match="closed"):
            await client.request(*SYNC, is_change=False)
        await closing[0]

    with_client(test)


def test_proofs_of_identity_are_sent_first_on_each_connection() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        assert server.operations[0] is Operation.AUTH
        server.operations.clear()
        server.cut()
        await asyncio.sleep(1)
        assert server.operations[0] is Operation.AUTH

    with_client(
        test,
        ZooKeeperSettings(session_timeout_millis=6000, credentials=(("digest", b"user:secret"),)),
    )
