"""What a real server seldom answers; everything else is in the contract's suite."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
    MetadataTooLargeError,
    MetadataUnavailableError,
)
from pulsar_py.metadata.store import MUST_NOT_EXIST
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.messages import ErrorCode, Operation
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.unit.zookeeper.scripted_server import ScriptedServer, stat

MULTI_FAILED = jute.int32(-1) + b"\0" + jute.int32(-101) + jute.int32(-101)
MULTI_END = jute.int32(-1) + b"\1" + jute.int32(-1)

Test = Callable[[ScriptedServer, ZooKeeperMetadataStore], Awaitable[None]]


def with_store(test: Test, settings: ZooKeeperSettings | None = None) -> None:
    async def work() -> None:
        server = ScriptedServer()
        await server.start()
        address = ZooKeeperAddress.parse("zk:server:2181")
        store = await ZooKeeperMetadataStore.open(
            address, VirtualClock(), chance=Random(7), settings=settings
        )
        await test(server, store)
        await store.close()
        server.stop()

    run_simulated(work())


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.SESSION_EXPIRED, MetadataUnavailableError),
        (ErrorCode.SESSION_MOVED, MetadataUnavailableError),
        (ErrorCode.THROTTLED, MetadataUnavailableError),
        (ErrorCode.CONNECTION_LOSS, MetadataOutcomeUnknownError),
        (ErrorCode.NO_AUTH, MetadataError),
        (ErrorCode.NO_CHILDREN_FOR_EPHEMERALS, MetadataError),
        (-77, MetadataError),
    ],
)
def test_what_a_server_refuses_says_whether_it_was_done(
    code: int, error: type[MetadataError]
) -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.handler = lambda _operation, _record: (code, b"")
        for change in (
            store.put("/a", b""),
            store.put("/a", b"", expected_version=MUST_NOT_EXIST),
            store.delete("/a"),
            store.create_sequential("/a-", b""),
        ):
            with pytest.raises(MetadataError, match="/a") as raised:
                await change
            assert raised.type is error

    with_store(test)


def test_parents_that_vanish_whenever_they_are_made_end_a_put() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.handler = lambda operation, _record: (
            (0, jute.text("/p") + stat())
            if operation is Operation.CREATE_CONTAINER
            else (ErrorCode.NO_NODE, b"")
        )
        with pytest.raises(MetadataUnavailableError, match="/p/a: its parents vanish"):
            await store.put("/p/a", b"", expected_version=MUST_NOT_EXIST)

    with_store(test)


def test_one_sync_serves_all_who_ask_while_another_one_is_under_way() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.handler = lambda _operation, _record: (0, jute.text("/"))
        await asyncio.gather(*(store.sync(f"/{number}") for number in range(100)))
        assert server.operations.count(Operation.SYNC) == 2
        await store.sync("/later")
        assert server.operations.count(Operation.SYNC) == 3

    with_store(test)


def test_newest_values_are_read_right_behind_one_sync_a_turn() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.handler = lambda _operation, _record: (0, jute.buffer(b"v") + stat(version=4))
        server.operations.clear()
        found = await asyncio.gather(*(store.get_newest(f"/{number}") for number in range(3)))
        assert [(each.value, each.version) for each in found if each] == [(b"v", 4)] * 3
        assert server.operations == [Operation.SYNC, *[Operation.GET_DATA] * 3]
        await store.get_newest("/later")
        assert server.operations[4:] == [Operation.SYNC, Operation.GET_DATA]

    with_store(test)


def test_a_read_behind_a_sync_that_was_refused_is_refused() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.handler = lambda operation, _record: (
            (ErrorCode.THROTTLED, b"")
            if operation is Operation.SYNC
            else (0, jute.buffer(b"v") + stat())
        )
        with pytest.raises(MetadataUnavailableError, match="/a: ZooKeeper answered THROTTLED"):
            await store.get_newest("/a")

    with_store(test)


def test_many_keys_are_deleted_by_one_request() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        done = jute.int32(Operation.DELETE) + b"\0" + jute.int32(0)
        server.handler = lambda _operation, _record: (0, done * 100 + MULTI_END)
        await store.delete_each([f"/ids/{number}" for number in range(100)])
        assert server.operations.count(Operation.MULTI) == 1
        assert server.operations.count(Operation.DELETE) == 0

    with_store(test)


def test_changes_of_one_moment_are_one_request() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        made = jute.int32(Operation.CREATE_2) + b"\0" + jute.int32(0) + jute.text("/i-3") + stat()
        changed = jute.int32(Operation.SET_DATA) + b"\0" + jute.int32(0) + stat(version=5)
        deleted = jute.int32(Operation.DELETE) + b"\0" + jute.int32(0)
        server.handler = lambda _operation, _record: (0, made + changed + deleted + MULTI_END)
        server.operations.clear()
        found = tuple(
            await asyncio.gather(
                store.create_sequential("/i-", b""), store.put("/a", b"v"), store.delete("/b")
            )
        )
        assert found == ("/i-3", 5, None)
        assert server.operations == [Operation.MULTI]
        assert store.statistics().change_requests_count == 1
        assert store.statistics().changes.answered_count == 3

    with_store(test)


def test_containers_and_nodes_for_a_time_belong_to_no_session() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        for owner, told in ((-(1 << 63), None), (-1, None), (0, None), (0x123, "0x123")):
            record = jute.buffer(b"") + stat(owner=owner)
            server.handler = lambda _operation, _record, record=record: (0, record)  # type: ignore[misc]
            found = await store.get("/a")
            assert found is not None
            assert found.owner == told

    with_store(test)


def test_a_subtree_deleted_in_part_has_an_unknown_outcome() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        def handler(operation: Operation, record: jute.RecordReader) -> tuple[int, bytes]:
            if operation is Operation.GET_CHILDREN_2:
                names = ["x", "y"] if record.text() == "/a" else []
                return 0, jute.vector(map(jute.text, names)) + stat()
            if operation is Operation.MULTI:
                return 0, MULTI_FAILED
            return (ErrorCode.THROTTLED, b"") if record.text() == "/a/y" else (0, b"")

        server.handler = handler
        with pytest.raises(MetadataOutcomeUnknownError, match="deleted in part"):
            await store.delete_recursive("/a")

    with_store(test)


def test_a_path_longer_than_a_request_is_refused_before_it_is_sent() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        with pytest.raises(MetadataTooLargeError, match="the servers take 1048575"):
            await store.get("/" + "a" * 1_048_574)

    with_store(test)


def test_a_subtree_goes_by_one_request_a_batch() -> None:
    deleted: list[int] = []

    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        def handler(operation: Operation, record: jute.RecordReader) -> tuple[int, bytes]:
            if operation is Operation.GET_CHILDREN_2:
                names = [f"{i:04d}" for i in range(1500)] if record.text() == "/a" else []
                return 0, jute.vector(map(jute.text, names)) + stat()
            if operation is Operation.MULTI:
                count = 0
                while record.int32() == Operation.DELETE:
                    record.boolean(), record.int32(), record.text(), record.int32()
                    count += 1
                deleted.append(count)
                done = jute.int32(Operation.DELETE) + b"\0" + jute.int32(0)
                return 0, done * count + MULTI_END
            return 0, b""

        server.handler = handler
        server.operations.clear()
        await store.delete_recursive("/a")
        assert deleted == [1000, 500]
        assert server.operations.count(Operation.DELETE) == 1  # the root of it

    with_store(test)


def test_the_servers_limit_is_a_setting() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        assert store.limits.max_value_bytes == 3 * 1024
        with pytest.raises(MetadataTooLargeError, match="the store takes at most 3072"):
            await store.put("/a", bytes(3073))
        with pytest.raises(MetadataTooLargeError, match="max_request_bytes"):
            await store.put("/" + "a" * 1024, bytes(3072))
        assert Operation.SET_DATA not in server.operations

    with_store(test, ZooKeeperSettings(max_request_bytes=4096))


def test_a_watch_is_added_once_and_removed_with_its_last_watcher() -> None:
    async def test(server: ScriptedServer, store: ZooKeeperMetadataStore) -> None:
        server.operations.clear()
        first = store.watch("/a", print)
        second = store.watch("/a", print)
        first()
        first()
        await store.sync("/a")
        assert server.operations == [Operation.ADD_WATCH, Operation.SYNC]
        second()
        await store.sync("/a")
        assert server.operations[2:] == [Operation.REMOVE_WATCHES, Operation.SYNC]

    with_store(test)
