from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.server.namespaces.locating import HELD_SECONDS
from pulsar_py.server.namespaces.lookup import LookupType
from tests.simulation.brokers_world import NAMESPACE, SESSION_SECONDS
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until

TOPIC = "persistent://public/default/topic-0"


@in_cluster("one", "two")
async def test_who_does_not_lead_sends_lookups_to_the_leader(world: ClusterWorld) -> None:
    leader, other = sorted(
        world.nodes, key=lambda name: not service(world, name).membership.is_leader
    )
    name = TopicName.parse(TOPIC)
    first = await service(world, other).namespaces.lookup(name)
    assert (first.type, first.is_authoritative) == (LookupType.REDIRECT, False)
    assert first.addresses.broker_url == f"pulsar://{leader}:6650"
    assert not first.proxy_through_service_url
    taken = await service(world, other).namespaces.lookup(name, authoritative=True)
    assert (taken.type, taken.is_authoritative) == (LookupType.CONNECT, True)
    found = await service(world, leader).namespaces.lookup(name)
    assert found.type is LookupType.CONNECT
    assert found.addresses.broker_url == f"pulsar://{other}:6650"


@in_cluster("one", "two")
async def test_a_lookup_is_held_until_the_owner_s_record_is_gone(world: ClusterWorld) -> None:
    name = TopicName.parse(TOPIC)
    one, two = (service(world, each).namespaces for each in ("one", "two"))
    await two.lookup(name, authoritative=True)
    world.kill("two")
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    found = await one.lookup(name)
    assert found.type is LookupType.CONNECT
    assert found.addresses.broker_url == "pulsar://one:6650"
    assert 0.8 * SESSION_SECONDS < loop.time() - began_at < SESSION_SECONDS + 0.5
    bundle = await one.bundle_of(name)
    assert bundle in world.owned("one")
    assert (NAMESPACE, bundle) in one.owned_bundles()


@in_cluster("one", "two")
async def test_a_held_lookup_ends_with_its_connection(world: ClusterWorld) -> None:
    name = TopicName.parse(TOPIC)
    two = service(world, "two")
    await service(world, "one").namespaces.lookup(name, authoritative=True)
    world.kill("one")
    client = world.client("two")
    task = asyncio.get_running_loop().create_task(client.create_producer(TOPIC))
    await until(lambda: two.namespaces._locator.held_count == 1, seconds=SESSION_SECONDS / 2)
    assert two.connections.pending_lookups_count == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await client.close()
    await until(lambda: two.namespaces._locator.held_count == 0, seconds=0.5)
    assert two.connections.pending_lookups_count == 0


@in_cluster("one", "two")
async def test_a_lookup_is_held_for_a_bounded_time(world: ClusterWorld) -> None:
    """The owner keeps its session, but accepts no connections."""
    name = TopicName.parse(TOPIC)
    one, two = (service(world, each).namespaces for each in ("one", "two"))
    await two.lookup(name, authoritative=True)
    loop = asyncio.get_running_loop()
    loop.network.silence("two", 6650)  # type: ignore[attr-defined]  # of a loop of tests
    began_at = loop.time()
    found = await one.lookup(name)
    assert found.addresses.broker_url == "pulsar://two:6650"
    assert HELD_SECONDS <= loop.time() - began_at < HELD_SECONDS + 4
    assert one._locator.held_count == 0


@in_cluster("one", "two")
async def test_no_other_owner_is_named_once_the_session_is_in_doubt(world: ClusterWorld) -> None:
    """The owner accepts no connection, and meanwhile this broker's session comes into doubt."""
    name = TopicName.parse(TOPIC)
    one, two = (service(world, each).namespaces for each in ("one", "two"))
    await two.lookup(name, authoritative=True)
    loop = asyncio.get_running_loop()
    loop.network.silence("two", 6650)  # type: ignore[attr-defined]  # of a loop of tests
    task = loop.create_task(one.lookup(name))
    await until(lambda: one._locator.held_count == 1, seconds=5)
    one._ownership._on_session_event(SessionEvent.IN_DOUBT)
    with pytest.raises(ServiceNotReadyError, match="in doubt"):
        await task
    one._ownership._on_session_event(SessionEvent.RECONNECTED)
    await until(lambda: one._ownership.may_change, seconds=5)
