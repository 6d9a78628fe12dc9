"""Values of the metrics on BookKeeper and ZooKeeper, after what scripted servers said and did.

As `test_metric_values`: what is expected is counted here, at the servers or by what was sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from pulsar_py.bookkeeper.protocol.frames import BookieCode, BookieOperation
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.bookkeeper.writing.sent_entries import ENTRY_OVERHEAD_BYTES
from pulsar_py.common.errors import (
    MetadataError,
    MetadataOutcomeUnknownError,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper import jute
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.messages import ErrorCode
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.unit.admin.metrics.metric_pages import by, of_stores, only
from tests.unit.bookkeeper.scripted_cluster import (
    SETTINGS,
    THREE,
    Listener,
    ScriptedCluster,
    filled,
    with_cluster,
)
from tests.unit.zookeeper.scripted_server import ScriptedServer, answer, stat

BOOKKEEPER = "pulsar_py_bookkeeper_"
OF_A_BOOKIE = f"{BOOKKEEPER}bookie_"
ZOOKEEPER = "pulsar_py_zookeeper_"


def asked(cluster: ScriptedCluster, operation: BookieOperation) -> dict[str, int]:
    """How often each bookie was asked to do it."""
    return {
        each.bookie_id: sum(said[0] == operation for said in each.asked) for each in cluster.bookies
    }


@pytest.mark.metric(
    f"{OF_A_BOOKIE}adds_total",
    f"{OF_A_BOOKIE}reads_total",
    f"{OF_A_BOOKIE}errors_total",
    f"{OF_A_BOOKIE}add_latency_ms",
    f"{OF_A_BOOKIE}read_latency_ms",
)
def test_what_each_bookie_did_and_how_long_it_took() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        delays = dict(zip(cluster.bookies, (0.05, 0.1, 0.2), strict=True))
        for bookie, seconds in delays.items():
            bookie.delay_seconds = seconds
        writer, _ = await filled_slowly(store, 20)
        assert list(await writer.read(0, 19, 10_000))
        await asyncio.sleep(1)
        failing = cluster.bookies[2]
        failing.says = lambda operation, _ledger, _entry: (
            BookieCode.ENOENTRY if operation == BookieOperation.READ else None
        )
        metrics = of_stores(store)
        adds = asked(cluster, BookieOperation.ADD)
        reads = asked(cluster, BookieOperation.READ)
        assert by(metrics, f"{OF_A_BOOKIE}adds_total", "bookie") == adds
        assert sum(adds.values()) == 3 * 20
        assert by(metrics, f"{OF_A_BOOKIE}reads_total", "bookie") == reads
        assert sum(reads.values()) == 20
        latencies = by(metrics, f"{OF_A_BOOKIE}add_latency_ms", "bookie", "quantile")
        for bookie, seconds in delays.items():
            for quantile in ("0.5", "0.99"):
                found = latencies[f"{bookie.bookie_id}/{quantile}"]
                assert found == pytest.approx(seconds * 1000, rel=0.15), "an eighth at most"
        latencies = by(metrics, f"{OF_A_BOOKIE}read_latency_ms", "bookie", "quantile")
        for bookie, seconds in delays.items():
            found = latencies[f"{bookie.bookie_id}/0.5"]
            expected = seconds * 1000 if reads[bookie.bookie_id] else 0
            assert found == pytest.approx(expected, rel=0.15)
        assert not metrics.get(f"{OF_A_BOOKIE}errors_total")
        failing.says = lambda _operation, _ledger, _entry: BookieCode.EIO
        failing.asked.clear()
        writer.append(b"x")
        await asyncio.sleep(3)
        wrong = len(failing.asked)
        errors = by(of_stores(store), f"{OF_A_BOOKIE}errors_total", "bookie", "code")
        assert errors == {f"{failing.bookie_id}/EIO": wrong}
        assert wrong > 0

    with_cluster(test)


async def filled_slowly(store: BookKeeperLedgerStore, count: int) -> tuple[object, Listener]:
    listener = Listener()
    writer = await store.create(listener, THREE)
    for _ in range(count):
        writer.append(b"x" * 100)
        await asyncio.sleep(0.5)
    assert listener.last == count - 1
    return writer, listener


@pytest.mark.metric(
    f"{BOOKKEEPER}pinned_bytes",
    f"{BOOKKEEPER}waiting_bytes",
    f"{BOOKKEEPER}open_ledgers",
    f"{BOOKKEEPER}connected_bookies",
    f"{OF_A_BOOKIE}pending_bytes",
    f"{OF_A_BOOKIE}connected",
)
def test_what_is_under_way_to_a_bookie_that_does_not_answer() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        held = cluster.bookies[1]
        writers = [await store.create(Listener(), THREE) for _ in range(2)]
        held.is_holding = True
        sizes = (1000, 2000, 3000)
        for size in sizes:
            for writer in writers:
                writer.append(bytes(size))
        await asyncio.sleep(0.1)
        metrics = of_stores(store)
        assert only(metrics, f"{BOOKKEEPER}open_ledgers") == 2
        assert only(metrics, f"{BOOKKEEPER}connected_bookies") == 3
        pinned = 2 * sum(size + ENTRY_OVERHEAD_BYTES for size in sizes)
        assert only(metrics, f"{BOOKKEEPER}pinned_bytes") == pinned
        # Of a request that is 4 bytes of length, 4 of head, 20 of a key, 40 before the entry.
        waiting = only(metrics, f"{BOOKKEEPER}waiting_bytes")
        assert waiting == pytest.approx(2 * sum(size + 68 for size in sizes), abs=6 * 8)
        pending = by(metrics, f"{OF_A_BOOKIE}pending_bytes", "bookie")
        assert pending == {
            each.bookie_id: waiting if each is held else 0 for each in cluster.bookies
        }
        held.release()
        await asyncio.sleep(0.1)
        gone = cluster.bookies[2]
        gone.stop()
        await asyncio.sleep(0.1)
        await writers[0].close()
        metrics = of_stores(store)
        assert only(metrics, f"{BOOKKEEPER}open_ledgers") == 1
        assert only(metrics, f"{BOOKKEEPER}pinned_bytes") == 0
        assert only(metrics, f"{BOOKKEEPER}waiting_bytes") == 0
        assert only(metrics, f"{BOOKKEEPER}connected_bookies") == 2
        assert by(metrics, f"{OF_A_BOOKIE}connected", "bookie") == {
            each.bookie_id: each is not gone for each in cluster.bookies
        }

    with_cluster(test)


@pytest.mark.metric(
    f"{BOOKKEEPER}quarantines_total", f"{OF_A_BOOKIE}quarantined", f"{OF_A_BOOKIE}failing"
)
def test_a_bookie_that_fails_again_and_again_is_avoided() -> None:
    async def test(cluster: ScriptedCluster, store: BookKeeperLedgerStore) -> None:
        bad = cluster.bookies[1]
        names = (f"{OF_A_BOOKIE}failing", f"{OF_A_BOOKIE}quarantined")
        writer, _ = await filled(store, 1)
        metrics = of_stores(store)
        assert [sum(metrics[name].values()) for name in names] == [0, 0]
        assert only(metrics, f"{BOOKKEEPER}quarantines_total") == 0
        for _ in range(5):
            bad.says = lambda _operation, _ledger, _entry: None
            await asyncio.sleep(8)
            bad.says = lambda _operation, _ledger, _entry: BookieCode.EIO
            writer = await store.create(Listener(), THREE)
            writer.append(b"x")
            await asyncio.sleep(1)
        metrics = of_stores(store)
        for name in names:
            assert by(metrics, name, "bookie") == {
                each.bookie_id: each is bad for each in cluster.bookies
            }, name
        assert only(metrics, f"{BOOKKEEPER}quarantines_total") == 1

    with_cluster(test)


@pytest.mark.metric(f"{BOOKKEEPER}read_ahead_bytes")
def test_what_was_read_ahead_is_held_until_it_is_read() -> None:
    async def test(cluster: ScriptedCluster, _: BookKeeperLedgerStore) -> None:
        size = 100
        store = await cluster.connect(settings=replace(SETTINGS, read_ahead_bytes=40 * size))
        listener = Listener()
        writer = await store.create(listener, THREE)
        for _number in range(100):
            writer.append(bytes(size))
        await asyncio.sleep(0.1)
        await writer.close()
        reader = await store.open(writer.ledger_id)
        for first in (0, 10):
            await reader.read(first, first + 9, 10 * size)
        await asyncio.sleep(0.1)
        ahead = sum(asked(cluster, BookieOperation.READ).values()) - 20
        assert ahead > 0
        held = only(of_stores(store), f"{BOOKKEEPER}read_ahead_bytes")
        assert held == pytest.approx(ahead * size, rel=0.45), "with what an entry takes itself"
        await reader.close()
        assert only(of_stores(store), f"{BOOKKEEPER}read_ahead_bytes") == 0

    with_cluster(test)


@pytest.mark.metric(
    *(
        f"{ZOOKEEPER}{name}"
        for name in (
            "latency_ms",
            "failed_requests_total",
            "connected",
            "session_good",
            "session_timeout_ms",
            "requests_under_way",
            "change_requests_total",
            "unknown_outcomes_total",
            "connections_total",
            "lost_connections_total",
            "watch_events_total",
        )
    )
)
def test_what_a_zookeeper_server_was_asked_and_said() -> None:
    async def run() -> None:
        server = ScriptedServer()
        await server.start()
        store = await ZooKeeperMetadataStore.open(
            ZooKeeperAddress.parse("zk:server:2181"), VirtualClock(), chance=Random(7)
        )
        await store.exists("/")
        before = of_stores(store)
        assert only(before, f"{ZOOKEEPER}connected") == 1
        assert only(before, f"{ZOOKEEPER}session_good") == 1
        assert only(before, f"{ZOOKEEPER}session_timeout_ms") == server.timeout_millis
        for _ in range(4):
            await store.exists("/a")
        for number in range(3):
            await store.put("/a", b"%d" % number)
        server.handler = lambda _operation, _record: (ErrorCode.NO_AUTH, b"")
        with pytest.raises(MetadataError):
            await store.put("/a", b"")
        server.push(watch_event("/a"))
        server.handler = lambda _operation, _record: None
        calls = [asyncio.ensure_future(store.exists(f"/{number}")) for number in range(5)]
        calls.append(asyncio.ensure_future(store.put("/b", b"")))
        await asyncio.sleep(0.1)
        after = of_stores(store)
        assert only(after, f"{ZOOKEEPER}requests_under_way") == 6
        counts = by(after, f"{ZOOKEEPER}latency_ms_count", "operation")
        earlier = by(before, f"{ZOOKEEPER}latency_ms_count", "operation")
        assert counts["read"] - earlier["read"] == 4
        assert counts["change"] - earlier["change"] == 4, "a refusal is an answer"
        requests = f"{ZOOKEEPER}change_requests_total"
        assert only(after, requests) - only(before, requests) == 5
        assert only(after, f"{ZOOKEEPER}watch_events_total") == 1
        server.cut()
        answers = await asyncio.gather(*calls[5:], return_exceptions=True)
        assert [type(each) for each in answers] == [MetadataOutcomeUnknownError]
        server.handler = lambda _operation, _record: (0, stat())
        await asyncio.gather(*calls[:5])
        last = of_stores(store)
        assert only(last, f"{ZOOKEEPER}unknown_outcomes_total") == 1
        assert by(last, f"{ZOOKEEPER}failed_requests_total", "operation") == {
            "read": 0,
            "change": 1,
        }
        assert only(last, f"{ZOOKEEPER}lost_connections_total") == 1
        assert only(last, f"{ZOOKEEPER}connections_total") == len(server.connected) == 2
        assert only(last, f"{ZOOKEEPER}requests_under_way") == 0
        await store.close()
        server.stop()
        assert only(of_stores(store), f"{ZOOKEEPER}connected") == 0

    run_simulated(run())


def watch_event(path: str) -> bytes:
    """Data of a node has changed, in a session that is connected."""
    return answer(-1, record=jute.int32(3) + jute.int32(3) + jute.text(path), zxid=-1)


@pytest.mark.metric(f"{ZOOKEEPER}latency_ms")
def test_how_long_a_zookeeper_server_took() -> None:
    async def run() -> None:
        server = ScriptedServer()
        await server.start()
        store = await ZooKeeperMetadataStore.open(
            ZooKeeperAddress.parse("zk:server:2181"), VirtualClock(), chance=Random(7)
        )
        await store.exists("/")
        before = of_stores(store)
        loop = asyncio.get_running_loop()
        began = loop.time()
        took = []
        for number in range(5):
            await store.put("/a", b"%d" % number)
            took.append((loop.time() - began) * 1000)
            began = loop.time()
        after = of_stores(store)
        name = f"{ZOOKEEPER}latency_ms"
        total = by(after, f"{name}_sum", "operation")["change"]
        assert total == pytest.approx(sum(took), rel=0.05)
        earlier = by(before, f"{name}_bucket", "operation", "le")
        for key, found in by(after, f"{name}_bucket", "operation", "le").items():
            operation, _, bound = key.partition("/")
            if operation == "change":
                expected = sum(each <= float(bound) for each in took)
                assert found - earlier[key] == expected, bound
        await store.close()
        server.stop()

    run_simulated(run(), latency_seconds=0.02)


@pytest.mark.metric(
    *(
        f"{ZOOKEEPER}{name}"
        for name in (
            "connections_total",
            "failed_connections_total",
            "lost_connections_total",
            "session_doubts_total",
            "expired_sessions_total",
            "session_good",
            "connected",
            "watch_gaps_total",
        )
    )
)
def test_what_became_of_sessions() -> None:
    async def run() -> None:
        server = ScriptedServer()
        await server.start()
        store = await ZooKeeperMetadataStore.open(
            ZooKeeperAddress.parse("zk:server:2181"), VirtualClock(), chance=Random(7)
        )
        store.watch("/", lambda _notification: None)
        await store.exists("/")
        gaps = only(of_stores(store), f"{ZOOKEEPER}watch_gaps_total")
        server.cut()
        server.is_mute = True
        await asyncio.sleep(server.timeout_millis / 1000)
        metrics = of_stores(store)
        assert only(metrics, f"{ZOOKEEPER}connected") == 0
        assert only(metrics, f"{ZOOKEEPER}session_good") == 0
        assert only(metrics, f"{ZOOKEEPER}session_doubts_total") == 1
        assert only(metrics, f"{ZOOKEEPER}lost_connections_total") == 1
        server.is_mute, server.knows_sessions = False, False
        await asyncio.sleep(30)
        metrics = of_stores(store)
        assert only(metrics, f"{ZOOKEEPER}session_good") == 1
        assert only(metrics, f"{ZOOKEEPER}expired_sessions_total") == 1
        granted = sum(bool(given) for _, given in server.connected)
        assert only(metrics, f"{ZOOKEEPER}connections_total") == granted == 2
        failed = only(metrics, f"{ZOOKEEPER}failed_connections_total")
        assert failed == server.connections_count - granted > 0
        assert only(metrics, f"{ZOOKEEPER}watch_gaps_total") == gaps + 1
        await store.close()
        server.stop()

    run_simulated(run())
