"""A broker of ours under load while it is killed, or its bookies fail.

They die, freeze, take no more entries, are all away, or behind a bad network.

What is promised: what was confirmed is there afterwards, in order; and nothing is confirmed that
bookies do not have. How long the slowest send took is printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pulsar
import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.proto.DataFormats_pb2 import BookieServiceInfoFormat
from pulsar_py.testing.faulty_proxy import Faults, FaultyProxy
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import (
    HOST,
    ROOT,
    AutoRecovery,
    BookieProcess,
    BookKeeperCluster,
    own_disks,
)
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.integration.test_kill9 import History, run_rounds

pytestmark = [pytest.mark.slow, pytest.mark.interop]

KILLS = 20
"""How many have to interrupt SENDs."""

SETTINGS: Final = {
    "defaultRetentionTimeInMinutes": -1,
    "defaultRetentionSizeInMB": -1,
    "maxUnackedMessagesPerConsumer": 0,
    "maxUnackedMessagesPerSubscription": 0,
}


SMALL_DISK_MEGABYTES: Final = 64


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Four bookies that may die: one more than a ledger needs."""
    made = BookKeeperCluster(tmp_path_factory.mktemp("bookkeeper"), bookies_count=4)
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
async def whole_cluster(cluster: BookKeeperCluster) -> BookKeeperCluster:
    """All bookies take entries, whatever was done to them before."""
    for bookie in cluster.bookies:
        if not bookie.is_running:
            await asyncio.to_thread(bookie.start)
        await until(bookie.is_registered)
    return cluster


@pytest.fixture
async def broker(whole_cluster: BookKeeperCluster, tmp_path: Path) -> AsyncIterator[OurBroker]:
    made = OurBroker(tmp_path / "broker", whole_cluster.zookeeper.url, settings=SETTINGS)
    await asyncio.to_thread(made.start)
    yield made
    made.kill()


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # other processes tell nobody here
            await asyncio.sleep(0.05)


class Sender:
    """A thread with an official client that sends one message after the other."""

    def __init__(self, url: str, topic: str, size_bytes: int = 0) -> None:
        """Messages are blanks before a number, `size_bytes` of them at least."""
        self.topic = topic
        self._size_bytes = size_bytes
        self.times: list[float] = []  # seconds from a send to its receipt, in order
        self._url = url
        self._is_stopped = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            client = quiet_client(self._url)
            producer = client.create_producer(self.topic, send_timeout_millis=0)
            while not self._is_stopped.is_set():
                began = time.monotonic()
                producer.send((b"%d" % len(self.times)).rjust(self._size_bytes))
                self.times.append(time.monotonic() - began)
            client.close()
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._failure = error

    async def more(self, count: int, seconds: float = 60.0) -> None:
        """Return when so many more are confirmed."""
        wanted = len(self.times) + count
        await until(lambda: len(self.times) >= wanted or self._failure is not None, seconds)
        assert self._failure is None, self._failure

    async def stop(self) -> None:
        self._is_stopped.set()
        await asyncio.to_thread(self._thread.join, 60)
        assert not self._thread.is_alive()
        assert self._failure is None, self._failure


def quiet_client(url: str) -> pulsar.Client:
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def stored(url: str, topic: str, last: int) -> list[int]:
    """All messages of a topic up to one, as a reader from the beginning gets them."""
    client = quiet_client(url)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found: list[int] = []
    while not found or found[-1] < last:
        found.append(int(reader.read_next(20_000).data()))
    client.close()
    return found


async def check(broker: OurBroker, sender: Sender, capsys: pytest.CaptureFixture[str]) -> float:
    """Everything confirmed is there, once and in order; returns the slowest send, in seconds."""
    await sender.stop()
    count = len(sender.times)
    found = await asyncio.to_thread(stored, broker.service_url, sender.topic, count - 1)
    first_seen = list(dict.fromkeys(found))  # what was sent again may be there twice
    assert first_seen[:count] == list(range(count))
    worst = max(sender.times)
    with capsys.disabled():
        print(f"\n{sender.topic}: {count} sends, the slowest {worst:.2f} s; {len(found)} stored")
    return worst


async def ensemble_of(broker: OurBroker, cluster: BookKeeperCluster, topic: str) -> set[str]:
    """The bookies that the topic's entries go to now."""
    name = topic.rpartition("/")[2]
    path = f"persistent/public/default/{name}/internalStats"
    internal = await asyncio.to_thread(broker.get, path)
    ledger_id = str(internal["ledgers"][-1]["ledgerId"])
    running = next(each for each in cluster.bookies if each.is_running)
    shell = running.logged_by_shell
    logged = await asyncio.to_thread(shell, "ledgermetadata", "-ledgerid", ledger_id)
    newest = logged[logged.rindex("ensembles={") :].partition("}")[0].rpartition("=[")[2]
    return {each.bookie_id for each in cluster.bookies if each.bookie_id in newest}


async def used(broker: OurBroker, cluster: BookKeeperCluster, topic: str) -> BookieProcess:
    bookie_ids = await ensemble_of(broker, cluster, topic)
    return next(each for each in cluster.bookies if each.bookie_id in bookie_ids)


def test_nothing_confirmed_is_lost_when_the_broker_is_killed(
    cluster: BookKeeperCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("KILL_SEED", random.randrange(2**32)))
    history = History()
    broker = OurBroker(tmp_path, cluster.zookeeper.url, settings=SETTINGS)

    broker.start()
    try:
        asyncio.run(run_rounds(broker, history, random.Random(seed), kills_count=KILLS))
    finally:
        broker.kill()
        with capsys.disabled():
            print(
                f"\nseed {seed}: {len(history.unreceipted_per_kill)} kills, SENDs interrupted "
                f"{history.unreceipted_per_kill}, acknowledgements without an answer "
                f"{history.unwritten_acks_per_kill}; {len(history.receipts)} receipts"
            )


async def test_a_killed_bookie_is_replaced(
    broker: OurBroker, cluster: BookKeeperCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = Sender(broker.service_url, "persistent://public/default/killed")
    await sender.more(200)
    (await used(broker, cluster, sender.topic)).kill()
    await sender.more(500)
    assert await check(broker, sender, capsys) < 5.0


async def test_a_frozen_bookie_keeps_nobody_waiting_where_the_others_are_enough(
    broker: OurBroker, cluster: BookKeeperCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = Sender(broker.service_url, "persistent://public/default/frozen")
    await sender.more(200)
    frozen = await used(broker, cluster, sender.topic)
    frozen.freeze()
    try:
        await sender.more(500)
        await asyncio.sleep(12)  # longer than requests to bookies may take
        await sender.more(100)
    finally:
        frozen.thaw()
    assert await check(broker, sender, capsys) < 3.0


async def test_clients_wait_while_all_bookies_are_away(
    broker: OurBroker, cluster: BookKeeperCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = Sender(broker.service_url, "persistent://public/default/away")
    await sender.more(200)
    for bookie in cluster.bookies:
        bookie.kill()
    await asyncio.sleep(1)  # receipts that were under way
    confirmed = len(sender.times)
    await asyncio.sleep(10)
    assert len(sender.times) == confirmed
    for bookie in cluster.bookies:
        await asyncio.to_thread(bookie.start)
    await sender.more(200, seconds=120)
    await check(broker, sender, capsys)


async def test_a_bookie_that_takes_no_more_entries_is_replaced(
    broker: OurBroker, cluster: BookKeeperCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    sender = Sender(broker.service_url, "persistent://public/default/read-only")
    await sender.more(200)
    full = await used(broker, cluster, sender.topic)
    await asyncio.to_thread(full.set_read_only, True)
    try:
        await until(full.is_read_only)
        await sender.more(300)
        assert full.bookie_id not in await ensemble_of(broker, cluster, sender.topic)
        assert await check(broker, sender, capsys) < 5.0
    finally:
        await asyncio.to_thread(full.set_read_only, False)


async def test_a_bookie_whose_disk_is_full_is_replaced(
    broker: OurBroker,
    cluster: BookKeeperCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not own_disks():
        pytest.skip("a small disk needs unshare and mount")
    small = BookieProcess(
        tmp_path / "small",
        cluster.zookeeper,
        settings={
            "diskUsageThreshold": 0.9,
            "diskUsageWarnThreshold": 0.8,
            "diskCheckInterval": 500,
        },
        disk_megabytes=SMALL_DISK_MEGABYTES,
    )
    await asyncio.to_thread(small.start)
    killed = cluster.bookies[:2]
    for bookie in killed:  # those that are left have to take every entry
        bookie.kill()
    try:
        for bookie in killed:
            await until(lambda bookie=bookie: not bookie.is_registered())
        sender = Sender(broker.service_url, "persistent://public/default/full", 200_000)
        await sender.more(20)
        assert small.bookie_id in await broker_bookies(broker)
        await until(lambda: small.is_read_only() or not small.is_registered(), 120)
        count = len(sender.times)
        assert count * 200_000 > SMALL_DISK_MEGABYTES * 500_000
        await sender.more(50)
        assert await check(broker, sender, capsys) < 5.0
    finally:
        small.kill()


async def broker_bookies(broker: OurBroker) -> str:
    """The labels of bookies that entries went to."""
    adds = await asyncio.to_thread(broker.metrics, "pulsar_py_bookkeeper_bookie_adds_total")
    return " ".join(label for label, value in adds.items() if value)


def send_more(url: str, topic: str, numbers: range) -> None:
    client = quiet_client(url)
    producer = client.create_producer(topic)
    for number in numbers:
        producer.send(b"%d" % number)
    client.close()


async def test_auto_recovery_fences_an_idle_ledger_and_the_topic_goes_on(
    broker: OurBroker, cluster: BookKeeperCluster, tmp_path: Path
) -> None:
    sender = Sender(broker.service_url, "persistent://public/default/repaired")
    await sender.more(200)
    await sender.stop()
    count = len(sender.times)
    lost = await used(broker, cluster, sender.topic)
    working = next(each for each in cluster.bookies if each is not lost)
    recovery = AutoRecovery(tmp_path / "recovery", working)
    lost.kill()
    try:
        await asyncio.to_thread(recovery.start)
        async with asyncio.timeout(90):
            while lost.bookie_id in await ensemble_of(broker, cluster, sender.topic):
                await asyncio.sleep(0.5)
    finally:
        recovery.kill()
    more = range(count, count + 10)
    await asyncio.to_thread(send_more, broker.service_url, sender.topic, more)
    found = await asyncio.to_thread(stored, broker.service_url, sender.topic, more[-1])
    assert found == list(range(count + 10))


async def divert(cluster: BookKeeperCluster, bookie: BookieProcess, port: int) -> None:
    """Let clients that ask from now on look for a bookie at another port."""
    address = ZooKeeperAddress.parse(cluster.zookeeper.url)
    store = await ZooKeeperMetadataStore.open(address, SystemClock())
    path = f"{ROOT}/available/{bookie.bookie_id}"
    found = await store.get(path)
    assert found is not None
    registration = BookieServiceInfoFormat.FromString(found.value)
    endpoint = next(each for each in registration.endpoints if each.protocol == "bookie-rpc")
    endpoint.port = port
    await store.put(path, registration.SerializeToString(), expected_version=found.version)
    await store.close()


async def test_a_bookie_behind_a_bad_network_loses_nothing(
    whole_cluster: BookKeeperCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = whole_cluster
    distant, *others = cluster.bookies
    proxy = FaultyProxy(HOST, distant.port, random.Random(7))
    await proxy.start()
    broker = OurBroker(tmp_path, cluster.zookeeper.url, settings=SETTINGS)
    try:
        await divert(cluster, distant, proxy.port)
        others[0].kill()  # those that are left have to take every entry
        await until(lambda: not others[0].is_registered())
        await asyncio.to_thread(broker.start)
        sender = Sender(broker.service_url, "persistent://public/default/network")
        await sender.more(200)
        assert proxy.connections_count
        proxy.faults = Faults(drop_every_seconds=0.5)  # one way or both, and nobody is told
        proxy.cut()
        await until(lambda: proxy.seen["drop"] > 0)  # later on the bookie is avoided
        await sender.more(100)
        proxy.calm()
        for _ in range(5):
            proxy.cut()
            await sender.more(50)
        proxy.stall()
        await sender.more(50)
        await asyncio.sleep(10)  # longer than requests to bookies may take
        proxy.resume()
        proxy.faults = Faults(delay_seconds=(0.01, 0.05), piece_bytes=7)
        proxy.cut()
        await sender.more(100)
        proxy.calm()
        await check(broker, sender, capsys)
    finally:
        await divert(cluster, distant, distant.port)
        await proxy.close()
        broker.kill()
