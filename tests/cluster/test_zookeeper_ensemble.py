"""The ZooKeeper store on three servers of which some die, in real time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from pulsar_py.common.errors import (
    MetadataBadVersionError,
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.settling import put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, Notification, NotificationType, SessionEvent
from pulsar_py.zookeeper import messages
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.connection import ZooKeeperConnection
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.waiting import until
from tests.cluster.zookeeper_process import ZooKeeperEnsemble, ZooKeeperProcess

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

SETTINGS = ZooKeeperSettings(
    session_timeout_millis=8_000, operation_timeout_seconds=10.0, connect_timeout_seconds=2.0
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    made = ZooKeeperEnsemble(tmp_path_factory.mktemp("ensemble"))
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
def ensemble(servers: ZooKeeperEnsemble) -> ZooKeeperEnsemble:
    """All three, whatever the test before did."""
    servers.start()
    return servers


class Client:
    """A store on given servers, what its session tells, and what its watch of everything tells."""

    def __init__(self, store: ZooKeeperMetadataStore) -> None:
        self.store = store
        self.events: list[SessionEvent] = []
        self.heard: list[Notification] = []

    async def start(self) -> None:
        self.session = await self.store.open_session()
        self.session.listen(self.events.append)
        self.store.watch("/", self.heard.append)
        await self.store.sync("/")


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    opened: list[Client] = []

    async def make(*urls: str) -> Client:
        hosts = ",".join(url.removeprefix("zk:") for url in urls)
        address = ZooKeeperAddress.parse(f"zk:{hosts}/{tmp_path.name}")
        store = await ZooKeeperMetadataStore.open(
            address, SystemClock(), chance=Random(7), settings=SETTINGS
        )
        opened.append(Client(store))
        await opened[-1].start()
        return opened[-1]

    yield make
    for client in opened:
        await client.store.close()


Connect = Callable[..., "asyncio.Future[Client]"]


def server_of(client: Client, ensemble: ZooKeeperEnsemble) -> ZooKeeperProcess:
    """The one that it is connected to."""
    hosts = client.store.statistics().server
    return next(server for server in ensemble.servers if server.hosts == hosts)


async def increment(store: ZooKeeperMetadataStore, until_number: int) -> None:
    """Count a key up, whatever happens; each step is known to be made before the next."""
    version = MUST_NOT_EXIST
    while version < until_number:
        value = b"%d" % (version + 1)
        try:
            version = await put_settled(store, "/number", value, expected_version=version)
        except (MetadataUnavailableError, MetadataOutcomeUnknownError):
            await asyncio.sleep(0.05)
        except MetadataBadVersionError as error:
            raise AssertionError("a change was made that nobody knows of") from error


async def test_the_leader_killed_costs_neither_session_nor_changes(
    ensemble: ZooKeeperEnsemble, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    leader = ensemble.leader
    client, writer = await connect(ensemble.url), await connect(ensemble.url)
    others = await connect(*(each.url for each in ensemble.servers if each is not leader))
    session_id = client.session.session_id
    await client.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=client.session)
    seen: list[bytes] = []

    async def read_whenever_told() -> None:
        while not seen or seen[-1] != b"400":
            count = len(client.heard)
            found = await client.store.get("/number")
            if found is not None:
                seen.append(found.value)
            if not seen or seen[-1] != b"400":
                await until(lambda count=count: len(client.heard) > count)  # type: ignore[misc]

    async def kill_soon() -> None:
        await until(lambda: bool(seen) and int(seen[-1]) > 50)
        await asyncio.to_thread(leader.kill)

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(read_whenever_told())
        group.create_task(increment(writer.store, 400))
        group.create_task(kill_soon())
    assert [int(value) for value in seen] == sorted(int(value) for value in seen)
    assert client.session.session_id == session_id
    assert client.session.is_good
    assert SessionEvent.NEW_SESSION not in client.events + writer.events
    kept = await others.store.get("/mine")
    assert kept is not None
    assert kept.owner == session_id
    # Each was connected anew: a leader's end resets all connections of its followers.
    assert Notification(NotificationType.ANYTHING, "/") in client.heard
    counted = client.store.statistics()
    assert counted.connections_count >= 2
    assert counted.lost_connections_count >= 1
    assert counted.watch_gaps_count == counted.connections_count - 1
    lost = [record for record in caplog.records if record.message == "connection to zookeeper lost"]
    assert {getattr(record, "server", "") for record in lost} <= {
        each.hosts for each in ensemble.servers
    }
    assert all(getattr(record, "reason", "") for record in lost)
    await others.store.put("/after", b"")
    await until(lambda: Notification(NotificationType.CREATED, "/after") in client.heard)


async def test_what_was_written_over_another_server_is_newest_at_once(
    ensemble: ZooKeeperEnsemble, connect: Callable[..., object]
) -> None:
    """A follower answers what comes behind a SYNC with all that the leader had by then.

    The leader does not wait with its own: it may be behind what a follower has told already.
    """
    clients = [await connect(server.url) for server in ensemble.servers]  # type: ignore[misc]
    readers = [
        client.store
        for client, server in zip(clients, ensemble.servers, strict=True)
        if server is not ensemble.leader
    ]
    for number in range(300):
        version = await clients[number % 3].store.put("/newest", b"%d" % number)
        found = await asyncio.gather(*(each.get_newest("/newest") for each in readers))
        assert [(each.value, each.version) for each in found] == [(b"%d" % number, version)] * 2


async def test_the_own_server_killed_is_followed_by_another(
    ensemble: ZooKeeperEnsemble, connect: Connect
) -> None:
    client = await connect(ensemble.url)
    await client.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=client.session)
    session_id = client.session.session_id
    for _ in range(2):
        server = server_of(client, ensemble)
        await asyncio.to_thread(server.kill)
        await until(lambda: SessionEvent.RECONNECTED in client.events)
        client.events.clear()
        assert server_of(client, ensemble) is not server
        found = await client.store.get("/mine")
        assert found is not None
        assert found.owner == session_id == client.session.session_id
        await asyncio.to_thread(ensemble.start)


async def test_a_frozen_server_is_left_before_the_session_is_in_doubt(
    ensemble: ZooKeeperEnsemble, connect: Connect
) -> None:
    client = await connect(ensemble.url)
    followers = [each for each in ensemble.servers if each.mode == "follower"]
    alone = await connect(followers[0].url, followers[1].url)
    server = server_of(alone, ensemble)
    server.freeze()
    try:
        await until(lambda: SessionEvent.RECONNECTED in alone.events)
    finally:
        server.thaw()
    assert SessionEvent.IN_DOUBT not in alone.events
    assert server_of(alone, ensemble) is not server
    assert await client.store.exists("/") is True


async def test_a_server_cut_off_from_the_others_is_refused(
    ensemble: ZooKeeperEnsemble, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(ensemble.url)
    await client.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=client.session)
    session_id = client.session.session_id
    first, second, last = ensemble.servers
    for server in (first, second):
        await asyncio.to_thread(server.kill)
    await until(lambda: last.mode == "read-only")
    assert not client.store.statistics().server
    await until(lambda: not client.session.is_good)
    with pytest.raises(MetadataError, match="no connection"):
        await client.store.get("/mine")  # it would be answered by who serves reads only
    assert {getattr(record, "server", last.hosts) for record in caplog.records} >= {last.hosts}
    await asyncio.to_thread(ensemble.start)
    await until(lambda: client.session.is_good)
    assert client.session.session_id == session_id
    kept = await client.store.get("/mine")
    assert kept is not None
    assert kept.owner == session_id
    assert SessionEvent.IN_DOUBT in client.events


class Nobody:
    """Hears what a connection tells."""

    def on_news(self, sent_seconds: float, zxid: int) -> None:
        pass

    def on_watch_event(self, event: messages.WatchEvent) -> None:
        pass

    def on_lost(self, reason: str) -> None:
        pass


async def test_a_session_that_moved_to_another_server_is_taken_back(
    ensemble: ZooKeeperEnsemble, connect: Connect
) -> None:
    client = await connect(ensemble.url)
    session = client.store._client.session
    here = server_of(client, ensemble)
    there = next(server for server in ensemble.servers if server is not here)
    _, other = await asyncio.get_running_loop().create_connection(
        lambda: ZooKeeperConnection(SystemClock(), Nobody()), "127.0.0.1", there.port
    )
    granted = await other.greet(
        messages.connect(
            last_zxid=0,
            timeout_millis=8_000,
            session_id=session.number,
            password=session.password,
            may_read_only=False,
        )
    )
    assert granted.session_id == session.number
    with pytest.raises(MetadataError):
        await client.store.put("/a", b"1")  # sent to where the session is no more
    await client.store.sync("/a")
    assert await client.store.put("/b", b"2") == 0
    assert not await client.store.exists("/a")
    assert SessionEvent.CONNECTION_LOST in client.events
    assert SessionEvent.NEW_SESSION not in client.events
    other.lose("the test is over")
