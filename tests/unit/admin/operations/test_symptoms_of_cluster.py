"""What an operator of brokers of one cluster is told."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from pulsar_py.admin.operations.symptoms_of_cluster import cluster_symptoms
from pulsar_py.server.load.balancer import LoadEvent
from pulsar_py.server.load.broker_report import ResourceUsage
from tests.simulation.brokers_world import SESSION_SECONDS
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until


async def codes(world: ClusterWorld, name: str) -> list[str]:
    return [each.code for each in await cluster_symptoms(service(world, name))]


async def both(world: ClusterWorld) -> None:
    await until(
        lambda: all(
            len(service(world, name).membership.directory.brokers) == len(world.nodes)
            for name in world.nodes
        ),
        seconds=3,
    )


@in_cluster("one", "two")
async def test_a_dead_broker_is_unreachable_until_its_session_ends(world: ClusterWorld) -> None:
    await both(world)
    assert await codes(world, "one") == []
    leader = next(name for name in world.nodes if service(world, name).membership.is_leader)
    (other,) = [name for name in world.nodes if name != leader]
    world.kill(leader)
    await asyncio.sleep(0.5)
    assert await codes(world, other) == ["BROKER_UNREACHABLE"]
    await asyncio.sleep(SESSION_SECONDS + 1)
    assert await codes(world, other) == ["ALONE_IN_CLUSTER"]


@in_cluster("one", "two")
async def test_who_leaves_is_told(world: ClusterWorld) -> None:
    await both(world)
    await service(world, "one").hand_over()
    await asyncio.sleep(1)
    assert "LEAVING" in await codes(world, "one")
    assert await codes(world, "two") == ["ALONE_IN_CLUSTER"]


@in_cluster("one", "two")
async def test_a_session_in_doubt_is_told(world: ClusterWorld) -> None:
    await both(world)
    world.nodes["one"].metadata.freeze()
    await asyncio.sleep(SESSION_SECONDS)
    assert "SESSION_IN_DOUBT" in await codes(world, "one")


@in_cluster("one", "two")
async def test_busy_brokers_and_failed_moves_are_told(world: ClusterWorld) -> None:
    await both(world)
    one = service(world, "one")
    busy = replace(one.membership.own, cpu=ResourceUsage(91.0, 100.0))
    one.membership.update(busy)
    await asyncio.sleep(1)
    one.cluster_load.balancer.events.append(
        LoadEvent(
            at_millis=1,
            kind="moved",
            bundle="t/n/b",
            broker_id="two:8080",
            destination="one:8080",
            reason="usage",
            error="403 Forbidden",
        )
    )
    found = {each.code: each for each in await cluster_symptoms(one)}
    assert set(found) == {"BROKER_BUSY", "NOT_BALANCED"}
    assert "one:8080 uses 91%" in found["BROKER_BUSY"].message
    assert "t/n/b of two:8080 could not be moved (usage): 403 Forbidden" in (
        found["NOT_BALANCED"].message
    )
