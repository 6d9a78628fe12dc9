from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.metadata import paths
from pulsar_py.server.load.broker_identity import ANSWER_SECONDS
from tests.simulation.brokers_world import SESSION_SECONDS
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until


@in_cluster("one", "two")
async def test_a_second_process_with_the_same_id_is_refused(world: ClusterWorld) -> None:
    membership = service(world, "one").membership
    first = world.nodes["one"]
    world.close_ports("one")  # as if the second one were on another machine
    second = world.node("one")
    with pytest.raises(ConfigurationError, match=r"works by the id one:8080, at pulsar://one:6650"):
        await second.broker.start()
    await second.broker.stop()
    path = paths.broker("one:8080")
    await first.metadata.sync(path)
    stored = await first.metadata.get(path)
    assert stored is not None
    assert stored.value == membership.own.encode()
    assert stored.owner == first.metadata._session.session_id
    assert not membership.is_leaving


@in_cluster("one", "two")
async def test_one_that_was_killed_is_followed_before_its_session_ends(
    world: ClusterWorld,
) -> None:
    world.kill("one")
    async with asyncio.timeout(ANSWER_SECONDS + 1):
        await world.start(world.node("one"))
    assert "one:8080" in service(world, "two").membership.directory.brokers


@in_cluster("one", "two")
async def test_one_that_stood_still_takes_no_bundle_when_it_goes_on(world: ClusterWorld) -> None:
    first = world.nodes["one"]
    old = service(world, "one").membership
    world.close_ports("one")
    first.pause(stalls=False)
    await world.start(world.node("one"))
    new = service(world, "one").membership
    first.wake()
    await until(lambda: old.is_leaving, seconds=2 * SESSION_SECONDS)
    members = (new, service(world, "two").membership)
    await until(
        lambda: not old.is_leader and sum(each.is_leader for each in members) == 1,
        seconds=SESSION_SECONDS,
    )
    await first.broker.stop()
    assert not new.is_leaving
