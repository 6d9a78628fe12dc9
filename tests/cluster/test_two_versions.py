"""Brokers of two versions in one cluster: a rolling upgrade and the way back, under load."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.broker_load import SETTINGS, Load
from tests.cluster.older_version import NoHistoryError, OlderBroker, install
from tests.cluster.our_broker import OurBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return install(tmp_path_factory.mktemp("older"))
    except NoHistoryError as error:
        pytest.skip(str(error))


class Place:
    """One broker of the cluster, of either version; address and settings stay."""

    def __init__(self, directory: Path, url: str, older: Path) -> None:
        self.new = OurBroker(directory / "new", url, settings=SETTINGS)
        self.old = OlderBroker(directory / "old", url, settings=SETTINGS)
        self.old.executable = older
        self.old.port, self.old.web_port = self.new.port, self.new.web_port
        self.running: OurBroker = self.old

    async def change(self, to: OurBroker) -> None:
        """Stop the one that runs, and start another one in its place."""
        assert await asyncio.to_thread(self.running.stop) == 0
        self.running = to
        await asyncio.to_thread(to.start)


@pytest.fixture
async def places(
    bookkeeper: BookKeeperCluster, tmp_path: Path, older: Path
) -> AsyncIterator[list[Place]]:
    url = f"{bookkeeper.zookeeper.url}/{tmp_path.name}"
    some = [Place(tmp_path / name, url, older) for name in ("a", "b")]
    try:
        for place in some:
            await asyncio.to_thread(place.old.start)
        yield some
    finally:
        for place in some:
            place.running.kill()


async def test_a_rolling_upgrade_and_the_way_back_lose_nothing(places: list[Place]) -> None:
    load = Load([place.new for place in places], topics_count=8)
    await load.start()
    for target in ("new", "old"):
        for place in places:
            await place.change(getattr(place, target))
            await load.until_all_after(time.monotonic())
            versions = [type(each.running).__name__ for each in places]
            print(f"{versions}: {len(load.topics[0].confirmed)} confirmed on the first topic")
    await load.finish()
