"""The ZooKeeper store while servers die, freeze and connections break: a real server, real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from pulsar_py.common.errors import (
    MetadataOutcomeUnknownError,
    MetadataTooLargeError,
    MetadataUnavailableError,
    SessionInDoubtError,
)
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.store import MUST_NOT_EXIST, Notification, NotificationType, SessionEvent
from pulsar_py.testing.faulty_proxy import FaultyProxy
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.waiting import until
from tests.cluster.zookeeper_process import ZooKeeperProcess

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

SETTINGS = ZooKeeperSettings(
    session_timeout_millis=2_000, operation_timeout_seconds=5.0, connect_timeout_seconds=1.0
)


@pytest.fixture(scope="module")
def own_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A server that may be frozen and killed."""
    process = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    try:
        process.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield process
    process.kill()


class Setting:
    """A store behind a proxy, another one beside it, and what the first one's session tells."""

    def __init__(self, process: ZooKeeperProcess, root: str) -> None:
        self.process = process
        self.root = root
        self.proxy = FaultyProxy("127.0.0.1", process.port, Random(7))
        self.events: list[SessionEvent] = []
        self.heard: list[Notification] = []

    async def open(self) -> None:
        await self.proxy.start()
        self.other = await self.connect(self.process.port)
        self.store = await self.connect(self.proxy.port)
        self.session = await self.store.open_session()
        self.session.listen(self.events.append)
        self.store.watch("/", self.heard.append)
        await self.store.sync("/")

    async def connect(self, port: int) -> ZooKeeperMetadataStore:
        address = ZooKeeperAddress.parse(f"zk:127.0.0.1:{port}/{self.root}")
        return await ZooKeeperMetadataStore.open(
            address, SystemClock(), chance=Random(7), settings=SETTINGS
        )

    async def close(self) -> None:
        await self.store.close()
        await self.other.close()
        await self.proxy.close()


@pytest.fixture
async def setting(own_zookeeper: ZooKeeperProcess, tmp_path: Path) -> AsyncIterator[Setting]:
    made = Setting(own_zookeeper, tmp_path.name)
    await made.open()
    yield made
    await made.close()


async def test_a_cut_connection_keeps_the_session_and_its_keys(setting: Setting) -> None:
    await setting.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=setting.session)
    session_id = setting.session.session_id
    setting.proxy.cut()
    await until(lambda: SessionEvent.RECONNECTED in setting.events)
    assert setting.events == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]
    assert setting.session.session_id == session_id
    found = await setting.store.get("/mine")
    assert found is not None
    assert found.owner == session_id
    assert Notification(NotificationType.ANYTHING, "/") in setting.heard


async def test_watches_go_on_after_a_cut(setting: Setting) -> None:
    setting.proxy.cut()
    await until(lambda: SessionEvent.RECONNECTED in setting.events)
    await setting.store.sync("/")
    await setting.other.put("/late", b"")
    await until(lambda: Notification(NotificationType.CREATED, "/late") in setting.heard)


async def test_a_change_whose_answer_is_cut_off_has_an_unknown_outcome(setting: Setting) -> None:
    setting.proxy.stall()
    asyncio.get_running_loop().call_later(0.1, setting.proxy.cut)
    with pytest.raises(MetadataOutcomeUnknownError):
        await setting.store.put("/a", b"1")
    await setting.store.sync("/a")  # from here on it was made or never is
    assert await setting.store.put("/a", b"2") in (0, 1)


async def test_a_session_is_in_doubt_before_the_server_ends_it(setting: Setting) -> None:
    await setting.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=setting.session)
    first_id = setting.session.session_id
    port = setting.proxy.port
    await setting.proxy.close()
    await until(lambda: not setting.session.is_good)
    assert await setting.other.exists("/mine")
    gone: list[Notification] = []
    setting.other.watch("/mine", gone.append)
    await until(lambda: bool(gone))
    setting.proxy = FaultyProxy("127.0.0.1", setting.process.port, Random(7))
    await setting.proxy.start(port=port)
    await until(lambda: SessionEvent.NEW_SESSION in setting.events)
    assert SessionEvent.IN_DOUBT in setting.events
    assert setting.session.session_id != first_id
    assert setting.session.is_good
    await setting.store.put("/mine", b"", expected_version=MUST_NOT_EXIST, session=setting.session)


async def test_nothing_is_changed_in_doubt(setting: Setting) -> None:
    port = setting.proxy.port
    await setting.proxy.close()
    await until(lambda: not setting.session.is_good)
    setting.proxy = FaultyProxy("127.0.0.1", setting.process.port, Random(7))
    change = setting.store.put("/b", b"")
    setting.process.freeze()  # the connection is made, and not answered
    await setting.proxy.start(port=port)
    try:
        with pytest.raises((SessionInDoubtError, MetadataUnavailableError)):
            await change
    finally:
        setting.process.thaw()
    await until(lambda: setting.session.is_good)
    assert not await setting.store.exists("/b")


async def test_a_frozen_server_ends_waiting_in_bounded_time(setting: Setting) -> None:
    setting.process.freeze()
    try:
        async with asyncio.timeout(SETTINGS.operation_timeout_seconds + 2):
            read, change = await asyncio.gather(
                setting.store.get("/a"), setting.store.put("/a", b""), return_exceptions=True
            )
        assert isinstance(read, MetadataUnavailableError)
        assert "no connection for 5 s" in str(read)
        assert isinstance(change, MetadataOutcomeUnknownError)
        assert "nothing was heard" in str(change)
    finally:
        setting.process.thaw()
    await until(lambda: setting.session.is_good)
    await setting.store.sync("/a")
    assert await setting.store.put("/b", b"") == 0


async def test_a_server_killed_and_started_again_is_found(setting: Setting) -> None:
    await setting.store.put("/kept", b"1")
    setting.process.kill()
    await until(lambda: SessionEvent.CONNECTION_LOST in setting.events)
    await asyncio.to_thread(setting.process.start)
    await until(lambda: setting.session.is_good)
    found = await setting.store.get("/kept")
    assert found is not None
    assert found.value == b"1"


async def test_a_value_beyond_what_the_server_takes_is_refused_before_it_is_sent(
    setting: Setting,
) -> None:
    largest = setting.store.limits.max_value_bytes
    await setting.store.put("/a", bytes(largest))
    with pytest.raises(MetadataTooLargeError, match=f"the store takes at most {largest}"):
        await setting.store.put("/a", bytes(largest + 1))
    assert setting.events == []


async def test_an_answer_larger_than_a_request_may_be_is_read(setting: Setting) -> None:
    name = "n" * 1000
    await asyncio.gather(*(setting.store.put(f"/p/{name}{i}", b"") for i in range(1500)))
    assert len(await setting.store.children("/p")) == 1500
    before = setting.store.statistics().changes.answered_count
    await setting.store.delete_recursive("/p")
    assert await setting.store.children("/") == []
    assert setting.store.statistics().changes.answered_count - before < 20, "by the batch"


async def test_a_batch_of_deletes_that_fails_is_done_one_by_one(setting: Setting) -> None:
    for path in ("/p/a", "/p/b/c", "/p/d"):
        await setting.store.put(path, b"")
    assert await setting.store._delete_batch(["/p/a", "/p/missing"])
    assert await setting.store.children("/p") == ["b", "d"]
    assert not await setting.store._delete_batch(["/p/d", "/p/b"]), "it has a child"
    assert await setting.store.children("/p") == ["b"]
    assert await setting.store.children("/p/b") == ["c"]


async def test_thousands_of_requests_are_under_way_at_once(setting: Setting) -> None:
    versions = await asyncio.gather(*(setting.store.put("/a", b"%d" % i) for i in range(5000)))
    assert sorted(versions) == list(range(5000))


async def test_parents_that_the_server_removes_are_made_again(setting: Setting) -> None:
    await setting.store.put("/p/q/r", b"")
    await setting.store.delete("/p/q/r")
    await setting.other.delete("/p/q")
    await setting.other.delete("/p")
    assert await setting.store.put("/p/q/r", b"") == 0


async def test_no_server_is_told_with_the_reason(tmp_path: Path) -> None:
    address = ZooKeeperAddress.parse("zk:127.0.0.1:1/x")
    settings = replace(SETTINGS, operation_timeout_seconds=0.3)
    with pytest.raises(MetadataUnavailableError, match=r"127\.0\.0\.1:1: .*Connect call failed"):
        await ZooKeeperMetadataStore.open(address, SystemClock(), settings=settings)
