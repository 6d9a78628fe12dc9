"""A bookie that answers after five seconds while a publisher goes at full rate: memory stays bounded.

Two of three bookies have to confirm an entry, so the slow one holds up nobody until more waits for
it than may. With a fourth bookie it is replaced then; without one, publishing slows down. A minute
each by default; `SLOW_BOOKIE_SECONDS=600` makes it ten. What was seen is printed. Where all of them
stand still for a while, publishers wait.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from benchmarks.loads import Publisher
from benchmarks.raw_client import RawConnection
from pulsar_py.testing.faulty_proxy import Faults, FaultyProxy
from tests.cluster.bookie_process import HOST, BookKeeperCluster
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.cluster.test_broker_failures import divert

SECONDS: Final = float(os.environ.get("SLOW_BOOKIE_SECONDS", "60"))
ANSWERS_AFTER_SECONDS: Final = 5.0
STANDING_SECONDS: Final = 3.0
MOST_MORE_BYTES: Final = 200 * 2**20
PULSAR_PY: Final = Path(sys.executable).with_name("pulsar-py")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 + 2 * SECONDS)]


@pytest.fixture(params=[3, 4], ids=["nobody in reserve", "one in reserve"])
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BookKeeperCluster]:
    made = BookKeeperCluster(tmp_path_factory.mktemp("bookkeeper"), bookies_count=request.param)
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


def resident_bytes(pid: int) -> int:
    """What a process has in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def publish(broker: OurBroker, topic: str, seconds: float) -> dict[str, object]:
    """Publish 1 KB messages as fast as they are taken; what `perf produce` says of the whole."""
    process = await asyncio.create_subprocess_exec(
        str(PULSAR_PY), "perf", "produce", topic, "-u", broker.service_url, "-s", "1024", "-r", "0",
        "-o", "5000", "-time", str(seconds), "-i", "10", "--output", "json",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert not process.returncode, out
    whole: dict[str, object] = json.loads(out.splitlines()[-1])
    assert whole["kind"] == "all"
    return whole


async def test_memory_stays_bounded_and_publishing_goes_on(
    cluster: BookKeeperCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = cluster.bookies[0]
    proxy = FaultyProxy(HOST, slow.port, random.Random(5))
    await proxy.start()
    broker = OurBroker(tmp_path, cluster.zookeeper.url)
    try:
        await divert(cluster, slow, proxy.port)
        await asyncio.to_thread(broker.start)
        await publish(broker, "persistent://public/default/warm", 15)
        before = resident_bytes(broker.pid)
        half = ANSWERS_AFTER_SECONDS / 2
        proxy.faults = Faults(delay_seconds=(half, half))
        most = before
        publishing = asyncio.create_task(
            publish(broker, "persistent://public/default/slow", SECONDS)
        )
        while not publishing.done():
            most = max(most, resident_bytes(broker.pid))
            await asyncio.sleep(0.2)
        seen = await publishing
    finally:
        await proxy.close()
        broker.kill()
    with capsys.disabled():
        print(f"\n{len(cluster.bookies)} bookies: {before >> 20} MiB before, {most >> 20} at most")
        print(seen)
    assert most - before <= MOST_MORE_BYTES


async def test_publishers_wait_while_all_bookies_stand_still(
    cluster: BookKeeperCluster, tmp_path: Path
) -> None:
    broker = OurBroker(tmp_path, cluster.zookeeper.url)
    size_bytes, count = 16 * 1024, 1000
    try:
        await asyncio.to_thread(broker.start)
        publishers = []
        for number in range(12):  # so many have three times as much under way as may wait
            connection = await RawConnection.connect(HOST, broker.port)
            await connection.create_producer(f"persistent://public/default/{number}", 1)
            publishers.append(Publisher(connection, size_bytes, 4 << 20))
        for bookie in cluster.bookies:
            bookie.freeze()
        for publisher in publishers:
            publisher.limit = count
            publisher.start()
        await asyncio.sleep(STANDING_SECONDS)
        for bookie in cluster.bookies:
            bookie.thaw()
        async with asyncio.timeout(60):
            while sum(publisher.receipts_count for publisher in publishers) < 12 * count:
                await asyncio.sleep(0.05)
        assert "topic fenced" not in (tmp_path / "broker.log").read_text()
    finally:
        broker.kill()
