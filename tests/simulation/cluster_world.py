"""The world of several brokers of one cluster: they register, elect a leader, and hand over.

As `brokers_world`, in fair weather: what goes wrong is what a test does. A broker that is *killed*
says nothing to the stores any more, its connections are reset, and its ports refuse.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pulsar_py.client.client import Client
from pulsar_py.metadata.initialization import initialize_cluster
from pulsar_py.metadata.resources import Resources
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from pulsar_py.testing.hostile_metadata import HostileMetadata
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.simulation.brokers_world import (
    BROKER,
    CALM,
    CLIENT,
    LATENCY_SECONDS,
    LIMITS,
    NAMESPACE,
    Node,
)

BUNDLES_COUNT = 8


class ClusterWorld:
    """Brokers by name over one pair of services; any number of clients."""

    def __init__(self, *names: str, seed: int = 1, **settings: object) -> None:
        """`{name}` in the text of a setting is each broker's name."""
        self._seed = seed
        self.clock = VirtualClock()
        self.metadata = HostileMetadata(self.chance("metadata"), self.clock, CALM)
        self.configuration = self.metadata
        self.ledgers = HostileLedgers(
            self.chance("ledgers"), LedgerFaults(delay_seconds=0.01), limits=LIMITS
        )
        self._config = {**BROKER, "clusterName": "standalone", **settings}
        self.nodes = {name: self.node(name) for name in names}
        self._killed: list[Node] = []  # they stand still until the loop ends

    def node(self, name: str) -> Node:
        """A broker that is not started."""
        config = {
            key: value.replace("{name}", name) if isinstance(value, str) else value
            for key, value in self._config.items()
        }
        return Node(self, name, config, is_of_cluster=True)

    def chance(self, name: str) -> random.Random:
        """A generator for one part: what others draw doesn't change it."""
        return random.Random(f"{self._seed} {name}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ClusterWorld]:
        """All brokers, of an initialized cluster."""
        await self.initialize()
        for node in self.nodes.values():
            await self.start(node)
        yield self
        for node in self.nodes.values():
            if node not in self._killed:
                await node.broker.stop()

    async def initialize(self) -> None:
        client = self.metadata.connect("administrator", self.clock)
        resources = Resources(client, client)
        await initialize_cluster(
            resources,
            "standalone",
            service_url="http://one:8080",
            broker_service_url="pulsar://one:6650",
            bundles_count=BUNDLES_COUNT,
        )
        await resources.close()
        await client.close()

    async def start(self, node: Node) -> None:
        self.nodes[node.name] = node
        await node.broker.start()

    def kill(self, name: str) -> None:
        """End a broker, as `kill -9` does: nobody hears of it again."""
        node = self.nodes[name]
        self._killed.append(node)
        node.metadata.freeze()
        node.ledgers.freeze()
        self.close_ports(name)
        for transport in list(_network().connections):
            if transport.get_extra_info("sockname")[0] == name:
                transport.abort()

    def close_ports(self, name: str) -> None:
        """Let another broker of this name listen."""
        network = _network()
        for address in [each for each in network._listeners if each[0] == name]:
            network._listeners[address].close()

    def client(self, *hosts: str, **options: Any) -> Client:
        """A client that begins at these brokers."""
        url = "pulsar://" + ",".join(f"{host}:6650" for host in hosts)
        chance = self.chance(f"client {hosts}")
        return Client(url, clock=self.clock, chance=chance, **{**CLIENT, **options})

    def owned(self, name: str) -> list[str]:
        """The ranges of the test namespace that a broker certainly owns."""
        ownership = self.nodes[name].broker.service.namespaces._ownership
        return [
            bundle
            for namespace, bundle in ownership.owned_bundles(NAMESPACE)
            if ownership.owns(namespace, bundle)
        ]


def _network() -> Any:  # Any: of a loop of tests
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop.network


def in_cluster(
    *names: str, **settings: object
) -> Callable[[Callable[[ClusterWorld], Awaitable[None]]], Callable[[], None]]:
    """Run a test in a world of these brokers, which have some settings in common."""

    def decorate(test: Callable[[ClusterWorld], Awaitable[None]]) -> Callable[[], None]:
        async def run() -> None:
            async with ClusterWorld(*names, **settings).running() as world:
                await test(world)

        def wrapped() -> None:
            run_simulated(run(), latency_seconds=LATENCY_SECONDS)

        wrapped.__name__ = test.__name__
        return wrapped

    return decorate


def service(world: ClusterWorld, name: str) -> Any:
    return world.nodes[name].broker.service


async def until(condition: Callable[[], bool], *, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it waits for tells nobody
            await asyncio.sleep(0.01)
