"""Two brokers' ownership over one hostile metadata service: never two owners, and in the end one.

They take, unload and give up the same bundles at random, while outcomes are unknown, reads and
news lag or are lost, processes stand still and sessions expire.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from pulsar_py.common.errors import MetadataError
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.ownership import BundleOwnership
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.hostile_metadata import HostileClient, HostileMetadata
from pulsar_py.testing.hostile_service import HostileSettings

NAMESPACE = NamespaceName("t", "n")
BUNDLES = [f"0x{number}0000000_0x{number + 1}0000000" for number in range(4)]
RUN_SECONDS = 60.0
SETTINGS = HostileSettings(
    session_timeout_seconds=6,
    are_parents_keys=True,
    delay_seconds=(0.001, 0.05),
    unavailable_share=0.02,
    unknown_share=0.05,
    lost_watch_share=0.05,
    lag_seconds=0.3,
    outage_every_seconds=10,
    expire_every_seconds=60,
    freeze_every_seconds=30,
)


class Broker:
    """One that takes and gives up bundles, without topics."""

    def __init__(self, service: HostileMetadata, name: str) -> None:
        self.client: HostileClient = service.connect(name, VirtualClock())
        self.ownership = BundleOwnership(self.client, lambda _namespace, _bundle: None)
        self.addresses = LocalAddresses(default=BrokerAddresses(broker_url=f"pulsar://{name}:1"))
        self.taken_count = 0

    async def acquire(self, bundle: str) -> bool:
        """Whether somebody owns it then, who is not unloading it."""
        record = await self.ownership.acquire(NAMESPACE, bundle, self.addresses)
        self.taken_count += record.addresses == self.addresses
        return not record.is_disabled

    async def release(self, bundle: str) -> None:
        await self.ownership.disable(NAMESPACE, bundle)
        await asyncio.sleep(0.05)
        await self.ownership.release(NAMESPACE, bundle)

    async def live(self, chance: random.Random) -> None:
        while True:
            bundle = chance.choice(BUNDLES)
            try:
                if chance.random() < 0.7:
                    await self.acquire(bundle)
                else:
                    await self.release(bundle)
            except MetadataError:
                pass  # the next turn tries again
            await asyncio.sleep(chance.uniform(0, 0.2))


class World:
    """A service and two brokers, each with two tasks that get in each other's way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.service = HostileMetadata(self.chance, VirtualClock(), SETTINGS)
        self.brokers = [Broker(self.service, name) for name in ("one", "two")]
        self.observer = self.service.connect("observer", VirtualClock())

    def owners(self, bundle: str) -> list[Broker]:
        return [each for each in self.brokers if each.ownership.owns(NAMESPACE, bundle)]

    async def check(self) -> None:
        while True:
            for bundle in BUNDLES:
                owners = [each.client.name for each in self.owners(bundle)]
                assert len(owners) < 2, f"{bundle} is owned by {owners}"
            await asyncio.sleep(0.01)

    async def run(self) -> None:
        for broker in self.brokers:
            await broker.ownership.start()
        works = [broker.live(self.chance) for broker in self.brokers for _ in range(2)]
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(work) for work in (*works, self.check())]
        await asyncio.wait(tasks, timeout=RUN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        failures = [each for each in results if not isinstance(each, asyncio.CancelledError)]
        assert not failures, failures

    async def settle(self) -> None:
        """In fair weather each bundle has one owner, whose record it is."""
        self.service.calm()
        await asyncio.sleep(3 * SETTINGS.session_timeout_seconds)
        for bundle in BUNDLES:
            for broker in self.brokers:
                while not await broker.acquire(bundle):
                    for each in self.brokers:
                        await each.ownership.release(NAMESPACE, bundle)
                    await asyncio.sleep(SETTINGS.lag_seconds)  # until all see that it is free
            [owner] = self.owners(bundle)
            path = paths.bundle_owner(NAMESPACE, bundle)
            await self.observer.sync(path)
            stored = await self.observer.get(path)
            assert stored is not None
            assert stored.owner == (await owner.client.open_session()).session_id

    async def close(self) -> None:
        for broker in self.brokers:
            await broker.ownership.close()
            await broker.client.close()
        await self.observer.close()


@pytest.mark.parametrize("seed", range(12))
def test_a_bundle_never_has_two_owners_and_in_the_end_one(seed: int) -> None:
    async def run() -> int:
        world = World(seed)
        await world.run()
        await world.settle()
        await world.close()
        return sum(broker.taken_count for broker in world.brokers)

    assert run_virtual(run()) > 200
