"""Answers of a real ZooKeeper that are lost, late or torn, and who finds out what was done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
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
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord
from pulsar_py.metadata.ledger_ids import MetadataLedgerIds
from pulsar_py.metadata.settling import delete_settled, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.testing.faulty_proxy import Faults, FaultyProxy
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.waiting import until
from tests.cluster.zookeeper_process import ZooKeeperProcess

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

SETTINGS = ZooKeeperSettings(
    session_timeout_millis=4_000, operation_timeout_seconds=5.0, connect_timeout_seconds=1.0
)


class Setting:
    """A store behind a proxy, and another one beside it that sees what is stored."""

    def __init__(self, zookeeper: ZooKeeperProcess, root: str) -> None:
        self.proxy = FaultyProxy("127.0.0.1", zookeeper.port, Random(7))
        self._address = f"zk:127.0.0.1:{{}}/{root}"
        self._port = zookeeper.port

    async def open(self) -> None:
        await self.proxy.start()
        self.other = await self._connect(self._port)
        self.store = await self._connect(self.proxy.port)

    async def _connect(self, port: int) -> ZooKeeperMetadataStore:
        address = ZooKeeperAddress.parse(self._address.format(port))
        return await ZooKeeperMetadataStore.open(
            address, SystemClock(), chance=Random(7), settings=SETTINGS
        )

    def lose_answers(self) -> None:
        """What is asked arrives, what is answered does not; a moment later the connection ends."""
        for link in self.proxy._links:
            link.far.is_dropping = True
        asyncio.get_running_loop().call_later(0.3, self.proxy.cut)

    async def close(self) -> None:
        await self.store.close()
        await self.other.close()
        await self.proxy.close()


@pytest.fixture
async def setting(zookeeper: ZooKeeperProcess, tmp_path: Path) -> AsyncIterator[Setting]:
    made = Setting(zookeeper, tmp_path.name)
    await made.open()
    yield made
    await made.close()


async def create(store: ZooKeeperMetadataStore) -> object:
    return await store.put("/new", b"1", expected_version=MUST_NOT_EXIST)


async def change(store: ZooKeeperMetadataStore) -> object:
    return await store.put("/old", b"1", expected_version=0)


async def overwrite(store: ZooKeeperMetadataStore) -> object:
    return await store.put("/old", b"1")


async def delete(store: ZooKeeperMetadataStore) -> object:
    await store.delete("/old", expected_version=0)
    return None


async def number(store: ZooKeeperMetadataStore) -> object:
    return await store.create_sequential("/parent/n-", b"1")


@pytest.mark.parametrize(
    "make", [create, change, overwrite, delete, number], ids=lambda each: each.__name__
)
async def test_a_change_that_was_made_and_not_answered_is_told_as_unknown(
    setting: Setting, make: Callable[[ZooKeeperMetadataStore], Awaitable[object]]
) -> None:
    for path in ("/old", "/parent/a", "/parent/b"):
        await setting.other.put(path, b"0")
    await setting.store.sync("/")
    before = await everything(setting.other)
    setting.lose_answers()
    with pytest.raises(MetadataOutcomeUnknownError):
        await make(setting.store)
    assert await everything(setting.other) != before, "it was made"
    assert setting.store.statistics().unknown_outcomes_count == 1


async def everything(store: ZooKeeperMetadataStore, path: str = "/") -> dict[str, object]:
    await store.sync(path)
    found: dict[str, object] = {path: await store.get(path)}
    for name in await store.children(path):
        found |= await everything(store, f"{path.rstrip('/')}/{name}")
    return found


async def test_who_writes_what_several_write_finds_out(setting: Setting) -> None:
    setting.lose_answers()
    assert await put_settled(setting.store, "/a", b"0", expected_version=MUST_NOT_EXIST) == 0
    setting.lose_answers()
    assert await put_settled(setting.store, "/a", b"1", expected_version=0) == 1
    with pytest.raises(MetadataBadVersionError):
        await put_settled(setting.store, "/a", b"1", expected_version=0)
    setting.lose_answers()
    await delete_settled(setting.store, "/a", expected_version=1)
    assert not await setting.other.exists("/a")


async def test_the_owner_of_a_record_finds_out_with_its_next_write(setting: Setting) -> None:
    record = OwnedRecord(setting.store, "/record")
    await record.write(b"0")
    setting.lose_answers()
    with contextlib.suppress(MetadataError):
        await record.write(b"1")
    await record.write(b"2")
    assert not record.is_in_doubt
    found = await setting.other.get("/record")
    assert found is not None
    assert (found.value, found.version) == (b"2", record.version)


async def test_no_ledger_id_is_given_twice(setting: Setting) -> None:
    ids = MetadataLedgerIds(setting.store)
    given = [await ids.next()]
    for _ in range(3):
        setting.lose_answers()
        while True:
            try:
                given.append(await ids.next())
                break
            except MetadataError:
                continue
    await ids.close()
    assert given == sorted(set(given))


async def test_cuts_delays_and_torn_answers_lose_no_change(setting: Setting) -> None:
    setting.proxy.faults = Faults(
        delay_seconds=(0.0, 0.02),
        piece_bytes=50,
        cut_every_seconds=0.5,
        torn_every_seconds=0.5,
        stall_every_seconds=2.0,
        stall_seconds=(0.1, 0.5),
    )
    setting.proxy.cut()
    heard = 0

    def hear(_: object) -> None:
        nonlocal heard
        heard += 1

    setting.store.watch("/", hear)

    async def count_up(path: str, until_number: int) -> None:
        version = MUST_NOT_EXIST
        while version < until_number:
            try:
                value = b"%d" % (version + 1)
                version = await put_settled(setting.store, path, value, expected_version=version)
            except (MetadataOutcomeUnknownError, MetadataUnavailableError):
                await asyncio.sleep(0.01)

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for index in range(10):
            group.create_task(count_up(f"/n{index}", 200))
    for index in range(10):
        found = await setting.other.get(f"/n{index}")
        assert found is not None
        assert (found.value, found.version) == (b"200", 200), "each was made once"
    setting.proxy.calm()
    counted = setting.store.statistics()
    assert setting.proxy.seen["torn"] + setting.proxy.seen["cut"] > 3
    assert counted.connections_count > 3
    assert counted.watch_gaps_count > 0
    heard = 0
    await setting.store.sync("/")
    await setting.other.put("/after", b"")
    await until(lambda: heard > 0)


async def test_a_server_that_ends_its_side_in_order_is_left(setting: Setting) -> None:
    for link in list(setting.proxy._links):
        assert link.near._transport is not None
        link.near._transport.write_eof()  # type: ignore[attr-defined]  # a TCP transport's
    await until(lambda: setting.store.statistics().lost_connections_count == 1)
    assert await setting.store.put("/a", b"") == 0
    assert setting.store.statistics().connections_count == 2
