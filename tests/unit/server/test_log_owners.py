"""Which kind of broker serves a log of policy events."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.server.change_events.foreign_logs import LogOwner
from pulsar_py.server.log_owners import ClusterLogOwners
from tests.simulation.brokers_world import NAMESPACE
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until
from tests.unit.server.change_events.other_kind import (
    EVENTS,
    beside_another_kind,
    change,
    copy,
    place,
    topic_at_one,
)


def owners_at(world: ClusterWorld, name: str) -> ClusterLogOwners:
    broker = service(world, name)
    return ClusterLogOwners(broker.namespaces, broker.membership, broker.elsewhere)


@in_cluster("one", "two")
async def test_among_ours_there_is_no_other_kind(world: ClusterWorld) -> None:
    one = service(world, "one")
    await until(lambda: len(one.membership.directory.brokers) == 2, seconds=3)
    owners = owners_at(world, "one")
    assert await owners.owner_of(EVENTS, settles=True) is LogOwner.NOBODY
    await place(world, EVENTS, "two")
    assert await owners.owner_of(EVENTS) is LogOwner.ANOTHER_OF_OURS
    assert await owners_at(world, "two").owner_of(EVENTS) is LogOwner.THIS_BROKER
    assert not owners.namespaces()


@beside_another_kind
async def test_who_does_not_say_that_it_is_ours_is_of_another_kind(world: ClusterWorld) -> None:
    owners = owners_at(world, "one")
    assert await owners.owner_of(EVENTS) is LogOwner.NOBODY
    assert not owners.namespaces(), "it serves nothing of them"
    await topic_at_one(world, events_at="two")
    assert await owners.owner_of(EVENTS) is LogOwner.ANOTHER_KIND
    assert list(owners.namespaces()) == [NAMESPACE]
    assert await owners_at(world, "two").owner_of(EVENTS) is LogOwner.THIS_BROKER


@beside_another_kind
async def test_settling_has_somebody_serve_it(world: ClusterWorld) -> None:
    owners = owners_at(world, "one")
    found = await owners.owner_of(EVENTS, settles=True)
    assert found in {LogOwner.THIS_BROKER, LogOwner.ANOTHER_KIND}
    assert await owners.owner_of(EVENTS) is found


@in_cluster("one", "two")
async def test_the_owner_of_ours_removes_policies(world: ClusterWorld) -> None:
    name = await topic_at_one(world, events_at="two")
    await change(world, "two", name, maxProducerPerTopic=1)
    await owners_at(world, "one").remove_there(EVENTS, name)
    await asyncio.sleep(1)  # a read may be behind what another broker has just changed
    assert await copy(world, name) is None
    with pytest.raises(ServiceNotReadyError, match="served here"):
        await owners_at(world, "two").remove_there(EVENTS, name)
