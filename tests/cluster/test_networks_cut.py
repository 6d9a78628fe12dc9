"""Networks that are cut under load: broker and ZooKeeper, brokers and one bookie, two brokers.

Nothing confirmed is lost or stored twice, each producer's order stays, no acknowledgement with a
receipt comes back (`Load.finish`). No cut keeps a connected client waiting for longer than a broker
that dies would: a cut-off broker goes on with open ledgers until another one takes its bundles.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from pulsar_py.client.client import Client
from pulsar_py.common.message_id import MessageId
from pulsar_py.testing.faulty_proxy import FaultyProxy
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.broker_load import SESSION_SECONDS, SETTINGS, Load
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.cluster.test_broker_failures import divert

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TOPICS_COUNT: Final = 30
HELD_SECONDS: Final = 20.0
"""For which a lookup waits for an owner that its broker can't reach."""
HOST: Final = "127.0.0.1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """One bookie more than a ledger needs."""
    made = BookKeeperCluster(tmp_path_factory.mktemp("cut"), bookies_count=4)
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
async def proxies() -> AsyncIterator[list[FaultyProxy]]:
    """Closed in the end by whoever asks for them."""
    made: list[FaultyProxy] = []
    yield made
    for proxy in made:
        await proxy.close()


async def proxy_to(port: int, proxies: list[FaultyProxy]) -> FaultyProxy:
    proxy = FaultyProxy(HOST, port, random.Random(7))
    await proxy.start()
    proxies.append(proxy)
    return proxy


async def start_all(brokers: list[OurBroker]) -> None:
    for broker in brokers:
        await asyncio.to_thread(broker.start)


def owned_by(broker: OurBroker) -> int:
    """Bundles that a broker has, its heartbeat's included."""
    return len(broker.get("brokers/load")["bundles"])


async def test_a_broker_is_cut_off_from_zookeeper(
    cluster: BookKeeperCluster, proxies: list[FaultyProxy], tmp_path: Path
) -> None:
    address = cluster.zookeeper.url.removeprefix("zk:")
    proxy = await proxy_to(int(address.rpartition(":")[2]), proxies)
    chroot = tmp_path.name
    brokers = [
        OurBroker(tmp_path / name, f"{url}/{chroot}", settings=SETTINGS)
        for name, url in (
            ("near", cluster.zookeeper.url),
            ("far", f"zk:{HOST}:{proxy.port}"),
            ("other", cluster.zookeeper.url),
        )
    ]
    far = brokers[1]
    try:
        await start_all(brokers)
        load = Load(brokers, topics_count=TOPICS_COUNT)
        await load.start()
        assert await asyncio.to_thread(owned_by, far) > 1

        async def cut() -> None:
            proxy.is_refusing = True
            proxy.cut()
            await asyncio.sleep(SESSION_SECONDS + 5)
            proxy.is_refusing = False

        await load.outages_of("a broker without ZooKeeper beyond its session", cut)
        assert max(each.longest_wait for each in load.topics) < SESSION_SECONDS + 8

        async def stall() -> None:  # nothing goes through, and nobody is told
            proxy.stall()
            await asyncio.sleep(SESSION_SECONDS + 5)
            proxy.resume()

        await load.outages_of("a silent network to ZooKeeper", stall)
        await load.finish()
    finally:
        for broker in brokers:
            broker.kill()


async def test_a_bookie_is_cut_off_from_the_brokers(
    cluster: BookKeeperCluster, proxies: list[FaultyProxy], tmp_path: Path
) -> None:
    distant = cluster.bookies[0]
    proxy = await proxy_to(distant.port, proxies)
    url = f"{cluster.zookeeper.url}/{tmp_path.name}"
    brokers = [OurBroker(tmp_path / name, url, settings=SETTINGS) for name in ("a", "b")]
    try:
        await divert(cluster, distant, proxy.port)
        await start_all(brokers)
        load = Load(brokers, topics_count=TOPICS_COUNT)
        await load.start()
        assert proxy.connections_count

        async def cut() -> None:
            proxy.is_refusing = True
            proxy.cut()
            await asyncio.sleep(15)
            proxy.is_refusing = False

        await load.outages_of("a bookie that refuses", cut)

        async def stall() -> None:
            proxy.stall()
            await asyncio.sleep(15)
            proxy.resume()

        await load.outages_of("a bookie behind a silent network", stall)
        assert max(each.longest_wait for each in load.topics) < SESSION_SECONDS
        await load.finish()
    finally:
        with suppress(AssertionError):
            await divert(cluster, distant, distant.port)
        for broker in brokers:
            broker.kill()


async def first_of(client: Client, topic: str) -> None:
    reader = await client.create_reader(topic, MessageId.earliest)
    await reader.read_next()
    await reader.close()


async def test_two_brokers_are_cut_off_from_each_other(
    cluster: BookKeeperCluster, proxies: list[FaultyProxy], tmp_path: Path
) -> None:
    """Brokers go by the listener `among`, whose addresses are proxies; clients by `outside`."""
    url = f"{cluster.zookeeper.url}/{tmp_path.name}"
    brokers = [OurBroker(tmp_path / name, url) for name in ("a", "b")]
    one, two = brokers
    between = []
    for broker in brokers:
        between.append(await proxy_to(broker.port, proxies))
        broker.configure_with(
            {
                **SETTINGS,
                "advertisedListeners": f"among:pulsar://{HOST}:{between[-1].port},"
                f"outside:{broker.service_url}",
                "internalListenerName": "among",
            }
        )
    try:
        await start_all(brokers)
        load = Load(brokers, topics_count=TOPICS_COUNT, listener_name="outside")
        await load.start()

        async def cut() -> None:
            for proxy in between:  # connections are refused, as lookups see it
                await proxy.close()
            await asyncio.sleep(15)

        hit = await load.outages_of("two brokers that do not reach each other", cut)
        assert not hit, "who is connected notices nothing"

        async with (  # each is asked for what the other one has
            Client(one.service_url, listener_name="outside") as of_one,
            Client(two.service_url, listener_name="outside") as of_two,
        ):
            begin = time.monotonic()
            names = [topic.name for topic in load.topics[:8]]
            await asyncio.gather(
                *(first_of(each, name) for each in (of_one, of_two) for name in names)
            )
            seconds = time.monotonic() - begin
        print(f"readers of new clients had their first message after {seconds:.1f} s")
        assert seconds < HELD_SECONDS + 8
        for broker, proxy in zip(brokers, between, strict=True):
            healed = FaultyProxy(HOST, broker.port, random.Random(7))
            await healed.start(port=proxy.port)
            proxies.append(healed)
        await load.finish()
    finally:
        for broker in brokers:
            broker.kill()
