"""Whole brokers share load in virtual time: shedding, splits, isolation, anti-affinity."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.metadata import paths
from pulsar_py.metadata.documents import LocalPolicies, NamespacePolicies
from pulsar_py.server.broker_settings import call_settings
from pulsar_py.server.config import BrokerConfig
from pulsar_py.server.load.machine import ProcessUsage
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, in_cluster, service, until

TOPICS = [f"persistent://public/default/topic-{number}" for number in range(24)]


class Busy:
    """A process that uses this share of a core from now on."""

    def __init__(self, world: ClusterWorld, share: float) -> None:
        self._clock, self._share = world.clock, share

    def __call__(self) -> ProcessUsage:
        return ProcessUsage(self._clock.monotonic_seconds() * self._share, 1.0, 100.0)


def balancers(world: ClusterWorld) -> list[Any]:
    return [service(world, name).cluster_load.balancer for name in world.nodes]


async def publish_to_all(world: ClusterWorld) -> tuple[Any, list[Any]]:
    client = world.client(*world.nodes)
    return client, [await client.create_producer(each) for each in TOPICS]


@in_cluster(
    "one",
    "two",
    loadBalancerBundleUnloadMinThroughputThreshold=0.0,
    loadBalancerHistoryResourcePercentage=0.0,
)
async def test_a_busy_broker_gives_bundles_up_and_says_why(world: ClusterWorld) -> None:
    client, producers = await publish_to_all(world)
    before = {name: len(world.owned(name)) for name in world.nodes}
    assert before == {"one": 4, "two": 4}
    for name, share in (("one", 0.95), ("two", 0.05)):
        service(world, name).cluster_load._reporter._machine = Busy(world, share)

    async def publish() -> None:
        while True:
            for producer in producers:
                await producer.send(b"x" * 1000)
            await asyncio.sleep(1)

    publishing = asyncio.get_running_loop().create_task(publish())
    await until(lambda: len(world.owned("two")) > 4, seconds=400)
    assert len(world.owned("one")) < 4
    await asyncio.sleep(10)
    events = [event for each in balancers(world) for event in each.events]
    assert {event.kind for event in events} == {"moved"}
    assert all(event.error is None for event in events), events
    assert {(event.broker_id, event.destination) for event in events} == {("one:8080", "two:8080")}
    assert "is above the mean" in events[0].reason
    publishing.cancel()
    await client.close()


@in_cluster("one", "two", loadBalancerNamespaceBundleMaxTopics=3)
async def test_bundles_with_too_many_topics_are_split_until_they_are_small(
    world: ClusterWorld,
) -> None:
    client, producers = await publish_to_all(world)
    namespaces = service(world, "one").namespaces
    name = NamespaceName("public", "default")
    await asyncio.sleep(600)
    bundles = await namespaces.bundles_of(name)
    assert len(bundles.names) > BUNDLES_COUNT
    counts = [sum(bundles.bundle_of(each) == one for each in TOPICS) for one in bundles.names]
    assert max(counts) <= 3
    for producer in producers:
        await producer.send(b"after")
    assert sum(each.split_count for each in balancers(world)) >= len(bundles.names) - BUNDLES_COUNT
    await client.close()


async def add_namespaces(world: ClusterWorld, *names: str, group: str | None = None) -> None:
    resources = service(world, "one").resources
    for each in names:
        namespace = NamespaceName("public", each)
        await resources.namespaces.create(namespace, NamespacePolicies())
        await resources.local_policies.update_or_create(
            namespace,
            lambda known: (known or LocalPolicies()).replace(
                boundaries=(0, 0xFFFFFFFF), anti_affinity_group=group
            ),
        )


async def owners_of(world: ClusterWorld, *names: str) -> list[str]:
    """Who serves a topic of each namespace, asked one after the other."""
    client = world.client(*world.nodes)
    found = []
    for each in names:
        topic = f"persistent://public/{each}/t"
        producer = await client.create_producer(topic)
        found += [
            name
            for name in world.nodes
            if service(world, name).namespaces.is_owned(TopicName.parse(topic))
        ]
        await producer.close()
    await client.close()
    return found


@in_cluster("one", "two", "three")
async def test_primary_brokers_serve_their_namespaces_and_no_others(world: ClusterWorld) -> None:
    names = [f"iso-{number}" for number in range(4)]
    others = [f"plain-{number}" for number in range(4)]
    await add_namespaces(world, *names, *others)
    policy = {
        "p": {
            "namespaces": ["public/iso-.*"],
            "primary": ["two"],
            "secondary": ["three"],
            "auto_failover_policy": {
                "policy_type": "min_available",
                "parameters": {"min_limit": "1", "usage_threshold": "100"},
            },
        }
    }
    store = service(world, "one").resources.configuration
    await store.put(paths.isolation_policies("standalone"), json.dumps(policy).encode())
    await asyncio.sleep(1)
    assert set(await owners_of(world, *names[:3])) == {"two"}
    assert set(await owners_of(world, *others)) == {"one", "three"}
    await world.nodes["two"].broker.stop()
    del world.nodes["two"]
    await asyncio.sleep(1)
    assert set(await owners_of(world, *names)) == {"three"}


@in_cluster("one", "two", "three")
async def test_namespaces_of_a_group_are_served_by_different_brokers(world: ClusterWorld) -> None:
    names = ["a", "b", "c"]
    await add_namespaces(world, *names, group="apart")
    found = []
    for each in names:
        found += await owners_of(world, each)
        await asyncio.sleep(11)  # until reports show it
    assert sorted(found) == ["one", "three", "two"]


def test_the_role_of_the_broker_is_in_its_settings() -> None:
    config = BrokerConfig.from_texts(
        {
            "brokerClientAuthenticationPlugin": "x.AuthenticationToken",
            "brokerClientAuthenticationParameters": "token:abc",
            "brokerClientTlsEnabled": "true",
        }
    )
    settings = call_settings(config)
    assert (settings.plugin, settings.parameters) == ("x.AuthenticationToken", "token:abc")
    assert settings.uses_tls
    assert not settings.verifies_hostname
