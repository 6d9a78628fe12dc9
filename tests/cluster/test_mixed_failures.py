"""Brokers of both kinds in one cluster are killed, stand still and come back, under load.

Nothing that was confirmed is lost, each message is stored once and in order. Outages are given by
kind, and by whom the clients ask: a broker of ours holds a lookup until a dead broker's session is
over, one of Apache Pulsar's answers at once, and its clients come back by their backoff.
`ROUNDS_SECONDS` makes it longer or shorter.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.broker_load import SESSION_SECONDS, Load
from tests.cluster.broker_load import SETTINGS as LOAD_SETTINGS
from tests.cluster.mixed_cluster import SETTINGS, Broker
from tests.cluster.our_broker import OurBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

TOPICS_COUNT: Final = 30
ROUNDS_SECONDS: Final = float(os.environ.get("ROUNDS_SECONDS", "180"))


@pytest.fixture
async def brokers(bookkeeper: BookKeeperCluster, tmp_path: Path) -> AsyncIterator[list[Broker]]:
    """Two of ours and one of Apache Pulsar's, the last."""
    url = f"{bookkeeper.zookeeper.url}/{tmp_path.name}"
    settings = {
        **LOAD_SETTINGS,
        "loadManagerClassName": SETTINGS["loadManagerClassName"],
        "loadBalancerSheddingEnabled": "false",
        "loadBalancerAutoBundleSplitEnabled": "false",
    }
    ours = [OurBroker(tmp_path / name, url, settings=settings) for name in ("one", "two")]
    apache = ApacheBroker(
        tmp_path / "apache",
        url,
        settings={**settings, "bookkeeperMetadataServiceUri": ours[0]._bookkeeper_uri},
    )
    some: list[Broker] = [*ours, apache]
    try:
        for broker in some:
            await asyncio.to_thread(broker.start)
        yield some
    finally:
        for broker in ours:
            if broker.process is not None:
                broker.thaw()
        for broker in some:
            broker.kill()


async def test_random_disruptions_of_both_kinds(brokers: list[Broker]) -> None:
    load = Load(brokers, topics_count=TOPICS_COUNT)
    await load.start()
    chance, deadline = random.Random(2), time.monotonic() + ROUNDS_SECONDS
    while time.monotonic() < deadline:
        target = chance.choice(brokers)
        how = chance.choice(("kill", "freeze", "stop"))
        pause = chance.uniform(2, SESSION_SECONDS + 5)
        await load.outages_of(
            f"{how} of {type(target).__name__} for {pause:.1f} s",
            partial(_disrupt, target, how, pause),
        )
    await load.finish(keeps_acknowledgements=False)


async def _disrupt(target: Broker, how: str, pause: float) -> None:
    if how == "freeze":
        target.freeze()
        await asyncio.sleep(pause)
        target.thaw()
        return
    await asyncio.to_thread(target.kill if how == "kill" else target.stop)
    await asyncio.sleep(pause)
    await asyncio.to_thread(target.start)


async def test_who_is_asked_while_a_broker_is_dead(brokers: list[Broker]) -> None:
    """Where one of ours is asked, the outage is the session and some seconds."""
    *ours, apache = brokers
    victim, other = ours
    by_ours = Load([other, victim], topics_count=TOPICS_COUNT, prefix="by-ours-")
    by_apache = Load([apache], topics_count=TOPICS_COUNT, prefix="by-apache-")
    for load in (by_ours, by_apache):
        await load.start()
    kill = asyncio.Event()

    async def killed() -> None:
        if not kill.is_set():
            kill.set()
            await asyncio.to_thread(victim.kill)

    held, not_held = await asyncio.gather(
        by_ours.outages_of("kill -9 of one of ours, asked: ours", killed),
        by_apache.outages_of("kill -9 of one of ours, asked: Apache's", killed),
    )
    assert held, "it had no topics"
    assert max(held) < SESSION_SECONDS + 8
    assert not_held
    for load in (by_ours, by_apache):
        await load.finish(keeps_acknowledgements=False)
