"""Three brokers under load while brokers, bookies and ZooKeeper's leader are killed or stand still.

What is promised: what was confirmed is read back where its receipt says, each message of a
producer in its order, nothing at two positions. With sessions of 10 s a topic's outage after
`kill -9` of its broker is the session and 3 s in the median, 8 s at most; after SIGTERM 1 s.
`TOPICS_COUNT`, `PERIOD_SECONDS` and `ROUNDS_SECONDS` make it longer: a thousand topics, ten minutes.

The load is that of one client: a message a second on each topic, acknowledged by a subscription
with receipts.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.bookie_process import AutoRecovery, BookKeeperCluster
from tests.cluster.broker_load import SESSION_SECONDS, SETTINGS, Load
from tests.cluster.java_programs import NotInstalledError
from tests.cluster.our_broker import OurBroker
from tests.cluster.zookeeper_process import ZooKeeperEnsemble

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TOPICS_COUNT: Final = int(os.environ.get("TOPICS_COUNT", "60"))
ROUNDS_SECONDS: Final = float(os.environ.get("ROUNDS_SECONDS", "60"))
STOPPED_SECONDS: Final = float(os.environ.get("STOPPED_SECONDS", "1"))
"""At most without receipts after SIGTERM. It is processor time for the most part: on a machine that
others use, allow more."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookKeeperCluster]:
    """Three ZooKeepers, and one bookie more than a ledger needs."""
    directory = tmp_path_factory.mktemp("failing")
    made = BookKeeperCluster(
        directory, bookies_count=4, zookeeper=ZooKeeperEnsemble(directory / "ensemble")
    )
    try:
        made.start()
    except NotInstalledError as error:
        pytest.skip(str(error))
    yield made
    made.kill()


@pytest.fixture
async def brokers(cluster: BookKeeperCluster, tmp_path: Path) -> AsyncIterator[list[OurBroker]]:
    url = f"{cluster.zookeeper.url}/{tmp_path.name}"
    some = [OurBroker(tmp_path / name, url, settings=SETTINGS) for name in ("a", "b", "c")]
    try:
        for broker in some:
            await asyncio.to_thread(broker.start)
        yield some
    finally:
        for broker in some:
            if broker.process is not None:
                broker.thaw()
            broker.kill()


async def test_failures_one_after_the_other(
    cluster: BookKeeperCluster, brokers: list[OurBroker]
) -> None:
    load = Load(brokers, topics_count=TOPICS_COUNT)
    await load.start()
    one, two, three = brokers

    for victim in (one, two):
        hit = await load.outages_of("kill -9 of a broker", partial(asyncio.to_thread, victim.kill))
        assert hit, "it had no topics"
        assert statistics.median(hit) < SESSION_SECONDS + 3
        assert max(hit) < SESSION_SECONDS + 8
        await asyncio.to_thread(victim.start)
        await load.until_all_after(time.monotonic())

    await load.outages_of("kill -9 of a bookie", lambda: asyncio.to_thread(cluster.bookies[0].kill))
    await asyncio.to_thread(cluster.bookies[0].start)

    assert isinstance(cluster.zookeeper, ZooKeeperEnsemble)
    leader = cluster.zookeeper.leader
    await load.outages_of("kill -9 of ZooKeeper's leader", lambda: asyncio.to_thread(leader.kill))
    await asyncio.to_thread(cluster.zookeeper.start)

    async def freeze() -> None:
        three.freeze()
        await asyncio.sleep(SESSION_SECONDS + 5)
        three.thaw()

    await load.outages_of("a broker stands still beyond its session", freeze)

    hit = await load.outages_of("SIGTERM of a broker", lambda: asyncio.to_thread(two.stop))
    assert max(hit, default=0.0) < STOPPED_SECONDS
    await load.finish()


async def test_random_disruptions(
    cluster: BookKeeperCluster, brokers: list[OurBroker], tmp_path: Path
) -> None:
    """One thing is down at a time, so never more than acknowledgements allow.

    What a bookie lacks meanwhile is copied by BookKeeper's auto-recovery, which fences ledgers for
    it.
    """
    recovery = AutoRecovery(tmp_path / "recovery", cluster.bookies[1])
    recovery.start()
    try:
        await disrupt(cluster, brokers)
    finally:
        recovery.kill()


async def disrupt(cluster: BookKeeperCluster, brokers: list[OurBroker]) -> None:
    load = Load(brokers, topics_count=TOPICS_COUNT)
    await load.start()
    chance, deadline = random.Random(1), time.monotonic() + ROUNDS_SECONDS
    while time.monotonic() < deadline:
        target: Any = chance.choice([*brokers, cluster.bookies[chance.randrange(4)]])
        hows = ("kill", "freeze", "stop") if isinstance(target, OurBroker) else ("kill", "freeze")
        how = chance.choice(hows)
        pause = chance.uniform(2, SESSION_SECONDS + 5)
        if how != "freeze":
            await asyncio.to_thread(getattr(target, how))
            await asyncio.sleep(pause)
            await asyncio.to_thread(target.start)
        else:
            target.freeze()
            await asyncio.sleep(pause)
            target.thaw()
        print(f"{how} of {type(target).__name__} for {pause:.1f} s")
        await load.until_all_after(time.monotonic())
    await load.finish()
