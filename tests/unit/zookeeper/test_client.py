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
from pulsar_py.zookeeper.messages import ErrorCode, Operation
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


def test_a_synced_read_goes_with_its_sync_over_the_next_connection_too() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.handler = lambda _operation, _record: None
        read = (Operation.EXISTS, messages.unwatched("/a"))
        asking = asyncio.ensure_future(  # noqa: TID251  (a test's own task)
            client.request(*read, is_change=False, is_synced=True)
        )
        await asyncio.sleep(0.5)
        server.handler = lambda _operation, _record: (0, b"")
        server.operations.clear()
        server.cut()
        assert (await asking).error == 0
        asked = [each for each in server.operations if each is not Operation.PING]
        assert asked == [Operation.SYNC, Operation.EXISTS]

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
        with pytest.raises(MetadataOutcomeUnknownError, match=r"nothing was heard for 3\.\d s"):
            await client.request(*SYNC, is_change=True)
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


def test_a_read_goes_on_over_the_next_connection() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.handler = lambda _operation, _record: None

        def recover() -> None:
            server.handler = lambda _operation, _record: (0, b"")
            server.cut()

        asyncio.get_running_loop().call_later(1, recover)
        answer = await client.request(*SYNC, is_change=False)
        assert answer.error == 0
        assert server.operations.count(Operation.SYNC) == 3

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


def client_of(
    url: str, settings: ZooKeeperSettings | None = None
) -> tuple[ZooKeeperClient, list[SessionEvent]]:
    client = ZooKeeperClient(
        ZooKeeperAddress.parse(url),
        VirtualClock(),
        Random(7),
        settings or ZooKeeperSettings(session_timeout_millis=6000),
        lambda _event: None,
    )
    events: list[SessionEvent] = []
    client.session.listen(events.append)
    client.start()
    return client, events


def test_a_server_that_gives_reads_only_is_refused_and_the_next_one_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        cut_off, other = ScriptedServer(), ScriptedServer()
        cut_off.is_read_only = True
        await cut_off.start("a")
        await other.start("b")
        client, _ = client_of("zk:a,b")
        for _ in range(6):  # whichever comes first
            await client.request(*SYNC, is_change=False)
            assert client.statistics().server == "b:2181"
            other.cut()
            await asyncio.sleep(0)
        assert Operation.SYNC not in cut_off.operations
        assert "gives reads only" in {
            getattr(record, "reason", "")[-16:] for record in caplog.records
        }
        await client.close()
        cut_off.stop()
        other.stop()

    run_simulated(work())


def test_the_next_server_is_tried_at_once() -> None:
    async def work() -> None:
        servers = [ScriptedServer() for _ in range(3)]
        for name, server in zip("abc", servers, strict=True):
            server.next_session = 7
            await server.start(name)
        client, events = client_of("zk:a,b,c")
        await client.request(*SYNC, is_change=False)
        dead = "abc".index(client.statistics().server[0])
        servers[dead].stop()
        began = VirtualClock().monotonic_seconds()
        await client.request(*SYNC, is_change=False)
        assert VirtualClock().monotonic_seconds() - began < 0.05
        assert events == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]
        await client.close()
        for server in servers:
            server.stop()

    run_simulated(work())


def test_two_frozen_servers_of_three_don_t_bring_the_session_into_doubt() -> None:
    async def work() -> None:
        servers = [ScriptedServer() for _ in range(3)]
        for name, server in zip("abc", servers, strict=True):
            server.timeout_millis = 30_000
            await server.start(name)
        client, events = client_of("zk:a,b,c", ZooKeeperSettings())
        await client.request(*SYNC, is_change=False)
        connected = "abc".index(client.statistics().server[0])
        last = (connected + 2) % 3
        for index, server in enumerate(servers):
            server.is_mute = index != last
        await asyncio.sleep(30)
        assert events == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]
        assert client.session.is_good
        await client.close()
        for server in servers:
            server.stop()

    run_simulated(work())


@pytest.mark.parametrize(
    "code", [ErrorCode.SESSION_MOVED, ErrorCode.SESSION_EXPIRED, ErrorCode.NOT_READ_ONLY]
)
def test_an_answer_that_only_another_connection_helps_ends_this_one(code: ErrorCode) -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.handler = lambda _operation, _record: (code, b"")
        answer = await client.request(*SYNC, is_change=True)
        assert answer.error == code
        server.handler = lambda _operation, _record: (0, b"")
        await client.request(*SYNC, is_change=False)
        assert len(server.connected) == 2
        assert events[0] is SessionEvent.CONNECTION_LOST

    with_client(test)


def test_no_more_requests_are_under_way_than_there_is_room_for() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        held: list[None] = []

        def handler(_operation: Operation, _record: object) -> None:
            held.append(None)

        server.handler = handler
        requests = [client.request(*SYNC, is_change=True) for _ in range(50)]
        asyncio.get_running_loop().call_later(1, server.cut)
        results = await asyncio.gather(*requests, return_exceptions=True)
        assert len(held) == 16  # the others found another connection, which was silent, too
        kinds = {type(each) for each in results}
        assert kinds == {MetadataOutcomeUnknownError, MetadataUnavailableError}
        assert client.statistics().under_way_count == 0

    with_client(
        test,
        ZooKeeperSettings(
            session_timeout_millis=6000, max_under_way_count=8, operation_timeout_seconds=3
        ),
    )


def test_a_request_ends_in_time_although_the_server_answers_pings() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.handler = lambda _operation, _record: None
        began = VirtualClock().monotonic_seconds()
        with pytest.raises(MetadataOutcomeUnknownError, match="not within 2 s"):
            await client.request(*SYNC, is_change=True)
        with pytest.raises(MetadataUnavailableError, match="no answer: not within 2 s"):
            await client.request(*SYNC, is_change=False)
        assert VirtualClock().monotonic_seconds() - began < 4.1

    with_client(test, ZooKeeperSettings(session_timeout_millis=6000, operation_timeout_seconds=2))


def test_what_became_of_connections_and_requests_is_counted() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        client.watched["/a"] = None
        await client.request(*SYNC, is_change=True)
        server.cut()
        await asyncio.sleep(1)
        server.is_mute = True
        with pytest.raises(MetadataOutcomeUnknownError):
            await client.request(*SYNC, is_change=True)
        await asyncio.sleep(2)
        server.is_mute, server.knows_sessions = False, False
        await client.request(*SYNC, is_change=False)
        counted = client.statistics()
        assert (counted.reads.answered_count, counted.changes.answered_count) == (2, 1)
        assert counted.changes.failed_count == counted.unknown_outcomes_count == 1
        assert sum(counted.reads.latency_counts) == 2
        assert counted.connections_count == 3
        assert counted.lost_connections_count == 2
        assert counted.watch_gaps_count == 2
        assert counted.doubts_count == counted.expired_sessions_count == 1
        assert counted.failed_connections_count >= 2
        assert (counted.server, counted.session_id) == ("server:2181", "0x2")
        assert counted.is_session_good
        assert counted.session_timeout_millis == 6000

    with_client(test)


def test_in_doubt_a_change_does_not_wait_for_a_connection() -> None:
    async def test(
        server: ScriptedServer, client: ZooKeeperClient, events: list[SessionEvent]
    ) -> None:
        server.stop()
        await asyncio.sleep(5.5)
        began = VirtualClock().monotonic_seconds()
        with pytest.raises(SessionInDoubtError):
            await client.request(*SYNC, is_change=True)
        assert VirtualClock().monotonic_seconds() == began
        await server.start()
        await client.request(*SYNC, is_change=False)
        await client.request(*SYNC, is_change=True)

    with_client(test)
