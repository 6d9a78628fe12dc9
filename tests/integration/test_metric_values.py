"""Values of a broker's metrics after loads that are counted here; `metric` marks say which names.

`tests/test_metric_coverage.py` asks for such a test of each name. What is expected is added up of
what clients sent and got and when, of what lies on a disk, or of what the system says.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from bisect import bisect_left
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from pulsar_py.admin.metrics.broker_lines import BROKER_SUMS
from pulsar_py.admin.metrics.topic_names import WRITTEN_NAMES
from pulsar_py.admin.resources.brokers import VERSION
from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.errors import StorageError
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerWriter
from pulsar_py.managed_ledger.log.entry_cache import ENTRY_OVERHEAD_BYTES
from pulsar_py.proto.PulsarApi_pb2 import CommandAck, CommandLookupTopic
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.storage.bookie import Bookie
from pulsar_py.storage.shared.settings import BookieSettings
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from pulsar_py.testing.network import run_simulated
from tests.counted_load import PATH, SHARED, TOPIC, WINDOW, Publisher, Reader, house
from tests.hook_classes import Failing
from tests.unit.admin.metrics.metric_pages import Labels, by, only, page_text, parsed
from tests.unit.server.topics.rig import FakeCnx, Rig, entry, name_of, send, subscribe_request
from tests.unit.server.topics.test_topic_watch import SlowStore
from tests.unit.settings.parts import broker, connect

Metrics = dict[str, dict[Labels, float]]


async def page_of(rig: Rig) -> Metrics:
    return parsed(await page_text(rig.broker))


def of_topic(metrics: Metrics, name: str) -> float:
    """The value of `TOPIC`, where the broker has topics of its own."""
    return by(metrics, name, "topic")[TOPIC]


class SlowBookie(Bookie):
    """In memory; making a ledger and writing to it take as long as a test says."""

    creating_seconds = 0.0
    is_broken = False

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        await asyncio.sleep(self.creating_seconds)
        if self.is_broken:
            raise StorageError("broken")
        return await super().create(listener, options)


class SlowDisk(MemoryDisk):
    """Each new content takes so long to be on the disk."""

    seconds = 0.0

    async def create(self, path: str, **options: Any) -> Any:  # Any: as the disk has them
        file: Any = await super().create(path, **options)
        append_and_sync = file.append_and_sync

        def slow(buffers: Any, on_synced: Any) -> None:
            asyncio.get_running_loop().call_later(self.seconds, append_and_sync, buffers, on_synced)

        if "journal" in path:
            file.append_and_sync = slow
        return file


class TimedCnx(FakeCnx):
    """Notes when each receipt came."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig)
        self.receipts: dict[int, float] = {}

    def write(self, buffers: Any) -> None:
        known = len(self.received)
        super().write(buffers)
        for command in self.received[known:]:
            if command.HasField("send_receipt"):
                now = self._rig_now()
                self.receipts[command.send_receipt.sequence_id] = now

    def _rig_now(self) -> float:
        return asyncio.get_running_loop().time()


SIZE_BOUNDS: Final = (128, 512, 1024, 2048, 4096, 16 * 1024, 100 * 1024, 1024 * 1024)
MILLIS_BOUNDS: Final = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
"""What the names say."""


def counted(values: list[float], bounds: tuple[float, ...]) -> list[int]:
    """How many fall between each bound and the one before it; those beyond the last come last."""
    found = Counter(bisect_left(bounds, each) for each in values)
    return [found[place] for place in range(len(bounds) + 1)]


@pytest.mark.metric(*WRITTEN_NAMES)
def test_what_was_written_by_size_and_by_time() -> None:
    """The disk gets slower with each message, and at the end there is no ledger for a while."""
    sizes = [
        bound + delta
        for times, bound in enumerate(SIZE_BOUNDS, 1)
        for delta in [0, 1] + [-1] * times
    ]
    delays = [
        millis * part
        for times, millis in enumerate(MILLIS_BOUNDS, 1)
        for part in [0.9, 1.1] * times
    ]

    async def run() -> None:
        clock, disk = VirtualClock(), SlowDisk()
        store = await SlowBookie.start(
            disk, clock=clock, ledger_ids=CountedLedgerIds(), settings=BookieSettings()
        )
        settings = {
            "managedLedgerMaxEntriesPerLedger": len(delays) + len(sizes),
            "managedLedgerMinLedgerRolloverTimeMinutes": 0,
            "statsUpdateFrequencyInSecs": 600,
        }
        async with broker(clock, ledgers=store, **settings) as rig:
            topic, cnx = await rig.topic("t"), TimedCnx(rig)
            producer = await rig.producer(topic, cnx)
            sent: dict[int, float] = {}
            entries: list[bytes] = []

            def publish(size: int) -> None:
                bare = len(entry(len(entries), b""))
                entries.append(entry(len(entries), b"x" * max(size - bare, 0)))
                sent[len(entries) - 1] = asyncio.get_running_loop().time()
                send(producer, len(entries) - 1, entries[-1])

            for size in sizes:
                publish(size)
                await clock.sleep(0.001)
            for millis in delays:
                disk.seconds = millis / 1000
                publish(100)
                await clock.sleep(2)
            disk.seconds = 0.0
            store.creating_seconds = 0.3
            begins = asyncio.get_running_loop().time()
            for _ in range(4):
                publish(100)
                await clock.sleep(0.06)
            await clock.sleep(2)
            assert len(cnx.receipts) == len(entries)
            await clock.sleep(600 - clock.monotonic_seconds() % 600 + 1)
            metrics = await page_of(rig)
            took = {number: (cnx.receipts[number] - at) * 1000 for number, at in sent.items()}
            without = {
                number: 0.0 if at >= begins and took[number] > 0 else took[number]
                for number, at in sent.items()
            }
            assert sum(each > 0 for each in took.values()) > sum(map(bool, without.values()))
            expected = [
                *counted([float(len(each)) for each in entries], SIZE_BOUNDS),
                len(entries),
                sum(map(len, entries)),
            ]
            for found in (took, without):
                millis = [round(each, 6) for each in found.values()]
                expected += [*counted(millis, MILLIS_BOUNDS), len(entries), sum(millis) * 1000]
            names = {name: only(metrics, name) for name in WRITTEN_NAMES}
            assert list(names.values()) == pytest.approx(expected, abs=0.6)
            assert all(names.values()), "each bucket has something"

    run_virtual(run())


def sums(publishers: list[Publisher], readers: list[Reader]) -> dict[str, float]:
    """The sums of all topics in the first window."""
    size = sum(sum(each.sizes) for each in publishers)
    out = sum(each.messages for each in readers)
    entries = sum(len(each.sizes) for each in publishers)
    return {
        "pulsar_subscriptions_count": len(readers),
        "pulsar_producers_count": len(publishers),
        "pulsar_consumers_count": len(readers),
        "pulsar_rate_in": entries / WINDOW,
        "pulsar_rate_out": out / WINDOW,
        "pulsar_throughput_in": size / WINDOW,
        "pulsar_throughput_out": sum(each.size for each in readers) / WINDOW,
        "pulsar_storage_size": size,
        "pulsar_storage_logical_size": size,
        "pulsar_storage_write_rate": entries / WINDOW,
        "pulsar_storage_read_rate": out / WINDOW,
        "pulsar_storage_read_cache_misses_rate": 0,  # an embedded store in memory has all of it
        "pulsar_msg_backlog": out - sum(each.acked for each in readers),
    }


@pytest.mark.metric(
    *(name.replace("pulsar_", "pulsar_broker_", 1) for name in BROKER_SUMS),
    *BROKER_SUMS,
    "pulsar_broker_topics_count",
    "pulsar_topics_count",
    "pulsar_ml_count",
    "pulsar_active_connections",
    "pulsar_ml_cache_entries",
    "pulsar_ml_cache_used_size",
    "pulsar_ml_cache_inserted_entries_total",
    "pulsar_ml_cache_evicted_entries_total",
    "pulsar_ml_cache_hits_rate",
    "pulsar_ml_cache_misses_rate",
)
def test_the_broker_is_the_sum_of_its_topics() -> None:
    """Two topics are read as they are written, one of them once more when nothing is cached."""

    async def run() -> None:
        async with house(managedLedgerCacheEvictionTimeThresholdMillis=5000) as found:
            clock = found.broker.service.clock
            topics = [TOPIC, TOPIC + "-2"]
            publishers = [await found.publisher("p", topic) for topic in topics]
            readers = [await found.reader("s", SHARED, topic) for topic in topics]
            late = await found.reader("late", SHARED)
            await found.metrics()  # rates of the cache count from the first look on
            for reader in readers:
                reader.flow(100)
            for number in range(30):
                for publisher in publishers:
                    publisher.send(b"x" * number)
                await clock.sleep(0.1)
            readers[0].ack(readers[0].taken[:7])
            await clock.sleep(20)
            late.flow(12)  # one read
            await clock.sleep(WINDOW - clock.monotonic_seconds() % WINDOW - 1)
            last = len(publishers[1].sizes)
            publishers[1].send(b"cached")
            await clock.sleep(1.5)
            metrics = await found.metrics()
            expected = sums(publishers, [*readers, late])
            expected["pulsar_msg_backlog"] = (
                sum(len(each.sizes) for each in (publishers[0], *publishers)) - 7
            )
            for name, value in expected.items():
                own = name.replace("pulsar_", "pulsar_broker_", 1)
                assert only(metrics, own) == pytest.approx(value), own
                assert sum(metrics[name].values()) == pytest.approx(value), name
            assert by(metrics, "pulsar_producers_count", "topic") == dict.fromkeys(topics, 1)
            assert by(metrics, "pulsar_consumers_count", "topic") == dict(
                zip(topics, (2, 1), strict=True)
            )
            assert only(metrics, "pulsar_topics_count") == 2
            assert only(metrics, "pulsar_broker_topics_count") == 2
            assert only(metrics, "pulsar_ml_count") == 2
            assert only(metrics, "pulsar_active_connections") == len(found.clients)
            entries = sum(len(each.sizes) for each in publishers)
            cached = publishers[1].sizes[last]
            assert only(metrics, "pulsar_ml_cache_entries") == 1
            assert only(metrics, "pulsar_ml_cache_used_size") == cached + ENTRY_OVERHEAD_BYTES
            assert only(metrics, "pulsar_ml_cache_inserted_entries_total") == entries
            assert only(metrics, "pulsar_ml_cache_evicted_entries_total") == entries - 1
            seconds = clock.monotonic_seconds()
            hits = sum(each.messages for each in readers)
            assert only(metrics, "pulsar_ml_cache_hits_rate") == pytest.approx(hits / seconds, 0.01)
            misses = only(metrics, "pulsar_ml_cache_misses_rate") * seconds
            assert misses == pytest.approx(1, 0.01)

    run_simulated(run())


@pytest.mark.metric("pulsar_ml_cache_evictions")
def test_a_cache_that_is_full_says_how_often() -> None:
    """Each message is two thirds of the cache, so each but the first drives another one out."""

    async def run() -> None:
        async with house(managedLedgerCacheSizeMB=1) as found:
            clock = found.broker.service.clock
            publisher, reader = await found.publisher("p"), await found.reader("s", SHARED)
            await found.metrics()
            for _ in range(8):
                publisher.send(bytes(700_000))
                await clock.sleep(0.5)
            assert reader.messages == 0
            await clock.sleep(WINDOW)
            assert only(await found.metrics(), "pulsar_ml_cache_evictions") == pytest.approx(
                7 * WINDOW / clock.monotonic_seconds(), 0.02
            )

    run_simulated(run())


@pytest.mark.metric(
    "pulsar_broker_lookup_pending_requests", "pulsar_broker_topic_load_pending_requests"
)
def test_requests_under_way() -> None:
    async def run() -> None:
        clock = VirtualClock()
        store = SlowStore(clock)
        gate = asyncio.Event()

        async with Rig(clock, metadata=store) as rig:
            for number in range(3):
                await rig.broker.namespaces.lookup(name_of(f"t{number}"))
            client = await connect(rig)
            get = store.get

            async def slow(path: str) -> Any:
                await gate.wait()
                return await get(path)

            store.get = slow  # type: ignore[method-assign]
            loads = [
                asyncio.ensure_future(
                    rig.broker.topics.get_or_load(name_of(f"t{number}"), create_if_missing=True)
                )
                for number in range(3)
            ]
            for number in range(5):
                client.sends(
                    CommandLookupTopic(topic=f"public/other/{number}", request_id=100 + number)
                )
            await clock.sleep(0.1)
            metrics = await page_of(rig)
            assert only(metrics, "pulsar_broker_topic_load_pending_requests") == 3
            assert only(metrics, "pulsar_broker_lookup_pending_requests") == 5
            gate.set()
            await asyncio.gather(*loads, return_exceptions=True)
            await clock.sleep(1)
            metrics = await page_of(rig)
            assert only(metrics, "pulsar_broker_topic_load_pending_requests") == 0
            assert only(metrics, "pulsar_broker_lookup_pending_requests") == 0
            client.cnx.connection_lost(None)

    run_virtual(run())


@pytest.mark.metric("pulsar_broker_throttled_connections", "pulsar_publish_rate_limit_times")
def test_connections_that_a_limit_holds() -> None:
    async def run() -> None:
        async with house(maxPendingPublishRequestsPerConnection=10) as found:
            clock = found.broker.service.clock
            await found.call("PUT", PATH)
            limit = b'{"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}'
            await found.call("POST", PATH + "/publishRate", limit)
            publishers = [await found.publisher(f"p{number}") for number in range(3)]
            for bursts in (1, 2):
                for publisher in publishers[:2]:
                    for _ in range(40):
                        publisher.send(b"m")
                await clock.sleep(0.1)
                metrics = await found.metrics()
                assert only(metrics, "pulsar_broker_throttled_connections") == 2
                assert of_topic(metrics, "pulsar_publish_rate_limit_times") == bursts
                await clock.sleep(30)
                metrics = await found.metrics()
                assert only(metrics, "pulsar_broker_throttled_connections") == 0

    run_simulated(run())


@pytest.mark.metric(
    "pulsar_compaction_removed_event_count",
    "pulsar_compaction_succeed_count",
    "pulsar_compaction_failed_count",
    "pulsar_compaction_duration_time_in_mills",
)
def test_compactions_that_succeed_and_that_fail() -> None:
    async def run() -> None:
        clock = VirtualClock()
        store = await SlowBookie.start(
            MemoryDisk(),
            clock=clock,
            ledger_ids=CountedLedgerIds(),
            settings=BookieSettings(is_volatile=True),
        )
        async with broker(clock, ledgers=store) as rig:
            topic = await rig.topic("t")
            assert isinstance(topic, PersistentTopic)
            assert topic.compaction is not None
            producer = await rig.producer(topic, rig.cnx())
            numbers = iter(range(100))
            removed = 0

            async def publish(keys: str) -> None:
                for key in keys:
                    number = next(numbers)
                    send(producer, number, entry(number, partition_key=key))
                await clock.sleep(0.01)

            async def compact() -> float:
                before = clock.wall_time_millis()
                topic.compaction.begin()
                await topic.compaction.finished()
                return clock.wall_time_millis() - before

            store.creating_seconds = 0.25
            await publish("aabab")
            await compact()
            removed += 3
            await publish("abc")
            took = await compact()
            removed += 2  # the former values of a and b
            metrics = await page_of(rig)
            assert took >= 250
            assert only(metrics, "pulsar_compaction_succeed_count") == 2
            assert only(metrics, "pulsar_compaction_failed_count") == 0
            assert only(metrics, "pulsar_compaction_removed_event_count") == removed
            assert only(metrics, "pulsar_compaction_duration_time_in_mills") == took
            store.is_broken, store.creating_seconds = True, 0.75
            await publish("a")
            took = await compact()
            metrics = await page_of(rig)
            assert took >= 750
            assert only(metrics, "pulsar_compaction_succeed_count") == 2
            assert only(metrics, "pulsar_compaction_failed_count") == 1
            assert only(metrics, "pulsar_compaction_removed_event_count") == removed
            assert only(metrics, "pulsar_compaction_duration_time_in_mills") == took

    run_virtual(run())


@pytest.mark.metric("pulsar_storage_backlog_quota_limit", "pulsar_storage_backlog_quota_limit_time")
def test_the_quotas_of_a_topic_are_those_that_were_set() -> None:
    async def run() -> None:
        async with house() as found:
            await found.call("PUT", PATH)
            for kind, body in (
                ("destination_storage", b'{"limitSize": 123456, "policy": "producer_exception"}'),
                ("message_age", b'{"limitTime": 7200, "policy": "producer_exception"}'),
            ):
                path = f"{PATH}/backlogQuota?backlogQuotaType={kind}"
                await found.call("POST", path, body)
            await found.publisher("p")
            metrics = await found.metrics()
            assert of_topic(metrics, "pulsar_storage_backlog_quota_limit") == 123456
            assert of_topic(metrics, "pulsar_storage_backlog_quota_limit_time") == 7200

    run_simulated(run())


@pytest.mark.metric("pulsar_version_info")
def test_the_version_stands_in_a_label() -> None:
    async def run() -> Metrics:
        async with broker(VirtualClock()) as rig:
            return await page_of(rig)

    metrics = run_virtual(run())
    assert by(metrics, "pulsar_version_info", "version") == {VERSION: 1}


@pytest.mark.metric("pulsar_py_loop_lag_seconds")
def test_how_late_the_loop_was() -> None:
    class Slow(VirtualClock):
        shift = 0.0

        def monotonic_seconds(self) -> float:
            return super().monotonic_seconds() + self.shift

    async def run() -> None:
        clock = Slow()
        async with broker(clock) as rig:
            await page_of(rig)  # measures from the first look on, each quarter of a second
            shifts = (0.003, 0.03, 0.03, 0.3, 3.0)
            await clock.sleep(0.1)
            for shift in shifts:
                clock.shift += shift
                await asyncio.sleep(0.25)
            metrics = await page_of(rig)
            name = "pulsar_py_loop_lag_seconds"
            assert only(metrics, f"{name}_count") == len(shifts)
            assert only(metrics, f"{name}_sum") == pytest.approx(sum(shifts))
            for bound, count in by(metrics, f"{name}_bucket", "le").items():
                limit = float(bound)
                assert count == sum(each <= limit for each in shifts), bound

    run_virtual(run())


@pytest.mark.metric("pulsar_py_hook_errors_total")
def test_errors_of_users_classes() -> None:
    failing = f"{Failing.__module__}.{Failing.__qualname__}"

    async def run() -> None:
        clock = VirtualClock()
        async with broker(clock, brokerInterceptors=(failing,)) as rig:
            topic = await rig.topic("t")
            producer = await rig.producer(topic, rig.cnx())
            for number in range(5):
                send(producer, number)
            await clock.sleep(0.1)
            found = by(await page_of(rig), "pulsar_py_hook_errors_total", "hook")
            assert found == {f"{failing}.on_message_publish": 5}

    run_virtual(run())


@pytest.mark.metric(
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_start_time_seconds",
)
async def test_the_process_is_as_the_system_says(tmp_path: Path) -> None:
    """What goes on meanwhile is allowed for; descriptors and memory are taken on purpose."""
    async with broker(VirtualClock()) as rig:
        before = await page_of(rig)
        files = [(tmp_path / str(number)).open("w") for number in range(50)]
        memory = bytearray(b"x") * (64 * 1024 * 1024)
        cpu = sum(os.times()[:2])
        after = await page_of(rig)
        cpu_then = sum(os.times()[:2])
        for file in files:
            file.close()
        del memory
    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc: these are left out")
    opened = only(after, "process_open_fds") - only(before, "process_open_fds")
    assert opened == pytest.approx(50, abs=20), "others may close theirs meanwhile"
    for name in ("process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert only(after, name) - only(before, name) == pytest.approx(2**26, rel=0.25), name
    assert cpu - 0.05 <= only(after, "process_cpu_seconds_total") <= cpu_then + 0.05
    assert only(after, "process_max_fds") == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    began = time.time() - (uptime - ticks / os.sysconf("SC_CLK_TCK"))
    assert only(after, "process_start_time_seconds") == pytest.approx(began, abs=3)


@pytest.mark.metric(
    "pulsar_py_storage_journal_groups_total",
    "pulsar_py_storage_journal_write_seconds",
    "pulsar_py_storage_write_cache_bytes",
)
def test_the_journal_and_what_is_not_flushed() -> None:
    """One message at a time is one group; a disk of a known speed gives each its bucket."""
    seconds = [0.0003, 0.002, 0.03, 0.3, 3.0]

    async def run() -> None:
        clock, disk = VirtualClock(), SlowDisk()
        store = await Bookie.start(
            disk, clock=clock, ledger_ids=CountedLedgerIds(), settings=BookieSettings()
        )
        async with broker(clock, ledgers=store) as rig:
            topic = await rig.topic("t")
            producer = await rig.producer(topic, rig.cnx())
            await clock.sleep(1)
            before = await page_of(rig)
            for number, each in enumerate(seconds):
                disk.seconds = each
                send(producer, number, entry(number, bytes(1000)))
                await clock.sleep(5)
            after = await page_of(rig)
            name = "pulsar_py_storage_journal_write_seconds"
            groups = "pulsar_py_storage_journal_groups_total"
            assert only(after, groups) - only(before, groups) == len(seconds)
            count = f"{name}_count"
            assert only(after, count) - only(before, count) == len(seconds)
            total = only(after, f"{name}_sum") - only(before, f"{name}_sum")
            assert total == pytest.approx(sum(seconds))
            earlier = by(before, f"{name}_bucket", "le")
            for bound, found in by(after, f"{name}_bucket", "le").items():
                expected = sum(each <= float(bound) for each in seconds)
                assert found - earlier[bound] == expected, bound
            written = "pulsar_py_storage_write_cache_bytes"
            added = only(after, written) - only(before, written)
            size = sum(len(entry(number, bytes(1000))) for number in range(len(seconds)))
            assert size <= added <= size + 600 * len(seconds), "each has an overhead"

    run_virtual(run())


class CountingDisk(MemoryDisk):
    """Knows what was read of entry logs, and what lies in each folder."""

    read_bytes = reads_count = 0

    async def open_read(self, path: str) -> Any:  # Any: as the disk has it
        file: Any = await super().open_read(path)
        read_at = file.read_at

        async def counted_read(offset: int, length: int) -> bytes:
            data: bytes = await read_at(offset, length)
            if path.startswith("entries/"):
                self.read_bytes += len(data)
                self.reads_count += 1
            return data

        file.read_at = counted_read
        return file

    def sizes(self, folder: str) -> list[int]:
        return [
            len(content.data) for path, content in self._files.items() if path.startswith(folder)
        ]


@pytest.mark.metric(
    "pulsar_storage_read_rate",
    "pulsar_storage_read_cache_misses_rate",
    "pulsar_broker_storage_read_cache_misses_rate",
    "pulsar_py_storage_disk_free_bytes",
    "pulsar_py_storage_entry_log_bytes",
    "pulsar_py_storage_entry_log_live_bytes",
    "pulsar_py_storage_entry_log_read_bytes_total",
    "pulsar_py_storage_index_tables",
    "pulsar_py_storage_read_cache_bytes",
    "pulsar_py_storage_writable",
)
@pytest.mark.parametrize("has_cache", [True, False])
def test_what_lies_on_the_disk_and_is_read_from_there(*, has_cache: bool) -> None:
    """Without a cache of the store each entry is asked of the disk, with one the first is."""
    size, count, capacity = 50_000, 12, 20_000_000

    async def run() -> None:
        clock, disk = VirtualClock(), CountingDisk(capacity)
        settings = BookieSettings(
            read_cache_bytes=2_000_000 if has_cache else 1000,
            minimum_free_bytes=0,
            disk_check_interval_seconds=1.0,
        )
        store = await Bookie.start(
            disk, clock=clock, ledger_ids=CountedLedgerIds(), settings=settings
        )
        async with broker(clock, ledgers=store, managedLedgerCacheSizeMB=0) as rig:
            topics = [await rig.topic(name) for name in ("a", "b")]
            sizes = []
            for topic in topics:
                producer = await rig.producer(topic, rig.cnx())
                for number in range(count):
                    send(producer, number, entry(number, bytes(size)))
                    sizes.append(len(entry(number, bytes(size))))
                await clock.sleep(1)
            cnx = rig.cnx()
            request = subscribe_request(cnx, "s", starts_at_earliest=True)
            consumer = await topics[0].subscribe(request)
            before = await page_of(rig)
            assert only(before, "pulsar_py_storage_entry_log_bytes") == 0, "nothing was flushed"
            await store.flush()
            await clock.sleep(WINDOW - clock.monotonic_seconds() % WINDOW + 2)
            metrics = await page_of(rig)
            logs = disk.sizes("entries/")
            assert sum(logs) > sum(sizes)
            logged = only(metrics, "pulsar_py_storage_entry_log_bytes")
            assert logged == pytest.approx(sum(logs), abs=64), "without the file's own header"
            live = only(metrics, "pulsar_py_storage_entry_log_live_bytes")
            assert sum(sizes) <= live <= sum(logs)
            assert only(metrics, "pulsar_py_storage_index_tables") == len(disk.sizes("index/")) > 0
            free = only(metrics, "pulsar_py_storage_disk_free_bytes")
            assert free == await disk.free_bytes() <= capacity - sum(logs)
            assert only(metrics, "pulsar_py_storage_writable") == 1
            disk.read_bytes = disk.reads_count = 0
            read_before = only(metrics, "pulsar_py_storage_entry_log_read_bytes_total")
            for _ in range(7):
                consumer.flow(1)
                await clock.sleep(1)
            await clock.sleep(WINDOW)
            metrics = await page_of(rig)
            read = only(metrics, "pulsar_py_storage_entry_log_read_bytes_total")
            assert read - read_before == disk.read_bytes >= sum(sizes[:7])
            cached = only(metrics, "pulsar_py_storage_read_cache_bytes")
            assert cached == pytest.approx(disk.read_bytes if has_cache else 0, rel=0.02)
            assert disk.reads_count < 7 if has_cache else disk.reads_count >= 7
            misses = min(disk.reads_count, 7)
            expected = {"read_rate": 7, "read_cache_misses_rate": misses}
            for name, entries_count in expected.items():
                rates = by(metrics, f"pulsar_storage_{name}", "topic")
                assert list(rates.values()) == [pytest.approx(entries_count / WINDOW), 0], name
                whole = only(metrics, f"pulsar_broker_storage_{name}")
                assert whole == pytest.approx(entries_count / WINDOW), name
            await rig.broker.topics.delete(topics[1].name, force=True)
            await store.flush()
            metrics = await page_of(rig)
            gone = live - only(metrics, "pulsar_py_storage_entry_log_live_bytes")
            assert gone == pytest.approx(sum(sizes[count:]), rel=0.01)

    run_virtual(run())


@pytest.mark.metric("pulsar_py_cursor_ranges_over_limit", "pulsar_py_cursor_ranges_not_persisted")
def test_holes_beyond_what_is_stored() -> None:
    """Without a ledger the record has three of the nine holes."""

    async def run() -> None:
        clock = VirtualClock()
        store = await SlowBookie.start(
            MemoryDisk(),
            clock=clock,
            ledger_ids=CountedLedgerIds(),
            settings=BookieSettings(is_volatile=True),
        )
        settings = {
            "managedLedgerMaxUnackedRangesToPersist": 5,
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore": 3,
        }
        async with broker(clock, ledgers=store, **settings) as rig:
            topic, cnx = await rig.topic("t"), rig.cnx()
            producer = await rig.producer(topic, cnx)
            consumer = await topic.subscribe(
                subscribe_request(cnx, "s", SubscriptionType.SHARED, starts_at_earliest=True)
            )
            for number in range(18):
                send(producer, number)
            await clock.sleep(0.1)
            consumer.flow(18)
            await clock.sleep(0.1)
            ids = [each.message.message_id for each in cnx.received if each.HasField("message")]
            store.is_broken = True
            ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual)
            ack.message_id.extend(ids[1::2])
            consumer.acknowledge(ack)
            await clock.sleep(5)
            metrics = await page_of(rig)
            holes = len(ids[1::2])
            assert only(metrics, "pulsar_py_cursor_ranges_not_persisted") == holes - 3
            store.is_broken = False
            await clock.sleep(60)
            metrics = await page_of(rig)
            assert "pulsar_py_cursor_ranges_not_persisted" not in metrics, "a 0 is left out"
            assert only(metrics, "pulsar_py_cursor_ranges_over_limit") == holes - 5

    run_virtual(run())
