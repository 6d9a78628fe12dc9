"""Brokers of one cluster show what one broker alone could leave out; each seed is a small cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from pulsar_py.common.names import TopicName
from pulsar_py.server.load.cluster_membership import Choice, ClusterMembership
from pulsar_py.server.namespaces.lookup import LookupType
from pulsar_py.testing.network import run_simulated
from tests.crash.managed_ledger.harness import InvariantError
from tests.simulation.brokers_world import LATENCY_SECONDS
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, service, until

NAMES = ("one", "two", "three")
TOPICS = [TopicName.parse(f"persistent://public/default/topic-{number}") for number in range(24)]
REDIRECTS_COUNT = 3
"""More than a client needs: to the leader, and to whom that one chose."""
SEEDS_COUNT = 500


async def owner_of(world: ClusterWorld, asked: str, name: TopicName) -> tuple[str, int]:
    """Who owns a topic as a client finds it that asks this broker, and how often it is sent on."""
    authoritative = False
    for redirects_count in range(REDIRECTS_COUNT + 1):
        found = await service(world, asked).namespaces.lookup(name, authoritative=authoritative)
        assert found.addresses.broker_url is not None
        asked = found.addresses.broker_url.removeprefix("pulsar://").partition(":")[0]
        if found.type is LookupType.CONNECT:
            return asked, redirects_count
        authoritative = found.is_authoritative
    raise InvariantError(f"{name} is nowhere after {REDIRECTS_COUNT} redirects")


async def play(seed: int) -> None:
    """Clients ask whom they know; a broker may die before all topics were asked for."""
    chance = random.Random(f"cluster {seed}")
    async with ClusterWorld(*NAMES, seed=seed).running() as world:
        names = list(NAMES)
        await until(
            lambda: all(
                len(service(world, each).membership.directory.brokers) == len(names)
                for each in names
            ),
            seconds=2,
        )
        known = chance.sample(names, chance.choice((1, 1, 2, 3)))  # by the clients
        owners: dict[str, str] = {}
        for name in chance.sample(TOPICS, len(TOPICS)):
            owner, _ = await owner_of(world, chance.choice(known), name)
            owners[str(name)] = owner
        counts = sorted(len(world.owned(each)) for each in names)
        if sum(counts) != BUNDLES_COUNT:
            raise InvariantError(f"{counts} bundles are owned, {BUNDLES_COUNT} are used")
        if counts[-1] - counts[0] > 1:
            raise InvariantError(f"clients asked {known}, and {counts} bundles went to brokers")
        for name in TOPICS:
            for each in names:
                found, _ = await owner_of(world, each, name)
                if found != owners[str(name)]:
                    raise InvariantError(f"{name} is at {owners[str(name)]}, {each} says {found}")


def run_seed(seed: int) -> None:
    run_simulated(play(seed), latency_seconds=LATENCY_SECONDS)


@contextmanager
def who_is_asked_owns() -> Iterator[None]:
    """A broker takes what it is asked for; nobody is sent to another one."""

    async def choose(self: Any, bundle: str, *, authoritative: bool) -> Choice:
        return Choice(self.own, is_self=True, is_authoritative=True)

    with patch.object(ClusterMembership, "choose", choose):
        yield


def is_found(seed: int) -> bool:
    try:
        run_seed(seed)
    except InvariantError:
        return True
    return False


@pytest.mark.parametrize("seed", range(3))
def test_bundles_are_spread_whomever_clients_ask(seed: int) -> None:
    run_seed(seed)


def test_who_is_asked_owns_is_found() -> None:
    with who_is_asked_owns():
        assert any(is_found(seed) for seed in range(SEEDS_COUNT))


@pytest.mark.slow
def test_bundles_are_spread_in_many_clusters() -> None:
    for seed in range(40):
        run_seed(seed)
