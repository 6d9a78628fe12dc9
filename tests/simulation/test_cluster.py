"""Brokers of one cluster in virtual time: they spread, hand over, and take over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from pulsar_py.admin.http_messages import HttpError, RedirectError, Request
from pulsar_py.admin.resources.brokers import Brokers
from pulsar_py.admin.resources.dynamic_configuration import DynamicSettings
from pulsar_py.admin.resources.lookup import Lookup
from pulsar_py.admin.resources.namespaces import Namespaces
from pulsar_py.common.errors import ServiceNotReadyError
from pulsar_py.common.names import TopicName
from pulsar_py.metadata import paths
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.namespaces.bundles import topic_hash
from pulsar_py.server.namespaces.lookup import LookupType
from tests.simulation.brokers_world import SESSION_SECONDS
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, in_cluster, service, until

TOPICS = [f"persistent://public/default/topic-{number}" for number in range(24)]
LARGEST_BUNDLE_COUNT = 5  # of these topics in one bundle
LAST = 0xFFFFFFFF
SOON_SECONDS = 1.0


@in_cluster("one", "two")
async def test_administration_knows_all_brokers_and_sends_to_the_owner(
    world: ClusterWorld,
) -> None:
    one, two = service(world, "one"), service(world, "two")
    await until(lambda: len(one.membership.directory.brokers) == 2, seconds=2)
    request = Request(method="GET", raw_path="")
    assert json.loads((await Brokers(one).active(request)).body) == ["one:8080", "two:8080"]
    leaders = [(await Brokers(each).leader(request)).body for each in (one, two)]
    assert leaders[0] == leaders[1]
    name = TopicName.parse(TOPICS[0])
    await two.namespaces.lookup(name, authoritative=True)
    bundle = await two.namespaces.bundle_of(name)
    path = {"tenant": "public", "namespace": "default", "bundle": bundle}
    unload = Request(method="PUT", raw_path="", path=path)
    with pytest.raises(RedirectError) as sent_on:
        await Namespaces(one).unload_bundle(unload)
    assert sent_on.value.url == "http://two:8080"
    assert bundle in world.owned("two")
    await Namespaces(two).unload_bundle(unload)
    assert bundle not in world.owned("two")


@in_cluster(
    "one",
    "two",
    advertisedListeners="inside:pulsar://{name}:6650,outside:pulsar://{name}.example:7",
)
async def test_clients_of_each_listener_are_sent_to_addresses_of_their_own(
    world: ClusterWorld,
) -> None:
    one, two = service(world, "one"), service(world, "two")
    await until(lambda: len(one.membership.directory.brokers) == 2, seconds=2)
    name = TopicName.parse(TOPICS[0])
    await two.namespaces.lookup(name, authoritative=True)
    for broker in (one, two):  # the owner, as it and as the other one says
        for listener, url in ((None, "two:6650"), ("inside", "two:6650"), ("outside", OUTSIDE)):
            found = await broker.namespaces.lookup(name, listener_name=listener)
            assert found.type is LookupType.CONNECT
            assert found.addresses.broker_url == f"pulsar://{url}"
            assert found.addresses.http_url == "http://two:8080"
        with pytest.raises(ServiceNotReadyError, match="elsewhere"):
            await broker.namespaces.lookup(name, listener_name="elsewhere")

    follower = one if two.membership.is_leader else two
    leader = "two" if follower is one else "one"
    (unowned, *_) = [TopicName.parse(each) for each in TOPICS if await is_free(follower, each)]
    sent_on = await follower.namespaces.lookup(unowned, listener_name="outside")
    assert sent_on.type is LookupType.REDIRECT
    assert sent_on.addresses.broker_url == f"pulsar://{leader}.example:7"
    local = unowned.local_name
    path = {"domain": "persistent", "tenant": "public", "namespace": "default", "topic": local}
    headers = {"x-pulsar-listenername": "outside"}
    with pytest.raises(RedirectError) as by_http:
        await Lookup(follower).topic(
            Request(method="GET", raw_path="", path=path, headers=headers, query={})
        )
    assert by_http.value.url == f"http://{leader}:8080"


OUTSIDE = "two.example:7"


async def is_free(broker: BrokerService, topic: str) -> bool:
    """Whether nobody owns the topic's bundle."""
    name = TopicName.parse(topic)
    bundle = await broker.namespaces.bundle_of(name)
    return await broker.resources.local.get(paths.bundle_owner(name.namespace_name, bundle)) is None


@in_cluster("one", "two", "three")
async def test_a_dynamic_setting_reaches_all_brokers(world: ClusterWorld) -> None:
    path = {"name": "maxTopicsPerNamespace", "value": "7"}
    request = Request(method="POST", raw_path="", path=path)
    await DynamicSettings(service(world, "two")).set(request)
    await until(
        lambda: all(service(world, name).config.maxTopicsPerNamespace == 7 for name in world.nodes),
        seconds=2,
    )
    await world.start(world.node("four"))
    assert service(world, "four").config.maxTopicsPerNamespace == 7


@in_cluster("one", "two", "three")
async def test_what_must_run_once_runs_on_the_leader(world: ClusterWorld) -> None:
    def collecting() -> list[str]:
        return [
            name
            for name, node in world.nodes.items()
            if node not in world._killed and service(world, name).ledger_collector._may_run()
        ]

    (leader,) = collecting()
    world.kill(leader)
    await asyncio.sleep(SESSION_SECONDS + 1)
    (following,) = collecting()
    assert following != leader
    assert not service(world, leader).ledger_collector._may_run()  # it knows by its own clock


@in_cluster("one", "two")
async def test_who_hands_over_is_not_ready(world: ClusterWorld) -> None:
    one = service(world, "one")
    await one.check_ready()
    await one.hand_over()
    with pytest.raises(ServiceNotReadyError, match="leaving"):
        await one.check_ready()


@in_cluster("one", "two")
async def test_a_drained_broker_serves_nothing_and_the_last_one_is_not_drained(
    world: ClusterWorld,
) -> None:
    one, two = service(world, "one"), service(world, "two")
    await until(lambda: len(one.membership.directory.brokers) == 2, seconds=2)
    await lookup_all(world, "one")
    assert world.owned("one")
    request = Request(method="POST", raw_path="")
    assert (await Brokers(one).drain(request)).status == 204
    assert not world.owned("one")
    await lookup_all(world, "two")
    assert len(world.owned("two")) == BUNDLES_COUNT
    await until(lambda: len(two.membership.directory.brokers) == 1, seconds=2)
    with pytest.raises(HttpError, match="two:8080 is the only broker") as refused:
        await Brokers(two).drain(request)
    assert refused.value.status == 409


async def lookup_all(world: ClusterWorld, name: str) -> None:
    client = world.client(name)
    for topic in TOPICS:
        producer = await client.create_producer(topic)
        await producer.close()
    await client.close()


@in_cluster("one", "two", "three")
async def test_bundles_are_spread_and_lookups_follow_redirects(world: ClusterWorld) -> None:
    await lookup_all(world, "two")
    counts = sorted(len(world.owned(name)) for name in world.nodes)
    assert counts == [2, 3, 3]
    assert sum(counts) == BUNDLES_COUNT


async def publish(producer: Any, sent: list[float], stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    while not stop.is_set():
        await producer.send(b"x")
        sent.append(loop.time())
        await asyncio.sleep(0.01)


class Publishing:
    """A client of some brokers that publishes to all topics, and how long each had to wait."""

    def __init__(self, world: ClusterWorld, *hosts: str) -> None:
        self._client = world.client(*hosts)
        self._sent: list[list[float]] = []
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for topic in TOPICS:
            producer = await self._client.create_producer(topic, send_timeout_millis=60_000)
            sent: list[float] = []
            self._sent.append(sent)
            work = publish(producer, sent, self._stop)
            self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def longest_after(self, moment: float, *, seconds: float) -> float:
        """The longest wait for a receipt, once every topic had one after `moment`."""
        await until(lambda: all(each and each[-1] > moment for each in self._sent), seconds=seconds)
        self._stop.set()
        await asyncio.gather(*self._tasks)
        await self._client.close()
        return max(max(b - a for a, b in pairwise(each)) for each in self._sent)


@pytest.mark.parametrize("victim", ["one", "two"])
def test_a_killed_broker_costs_its_session_and_little_more(victim: str) -> None:
    @in_cluster("one", "two", "three")
    async def run(world: ClusterWorld) -> None:
        publishing = Publishing(world, "three")
        await publishing.start()
        assert world.owned(victim)
        await asyncio.sleep(1)
        killed_at = asyncio.get_running_loop().time()
        world.kill(victim)
        longest = await publishing.longest_after(
            killed_at + SESSION_SECONDS + 3, seconds=4 * SESSION_SECONDS
        )
        assert longest < SESSION_SECONDS + SOON_SECONDS, longest
        survivors = [name for name in world.nodes if name != victim]
        assert sum(len(world.owned(name)) for name in survivors) == BUNDLES_COUNT

    run()


def topics_within(bundles: Iterable[str]) -> int:
    """How many of the topics lie in these bundles."""
    ranges = [tuple(int(end, 16) for end in bundle.split("_")) for bundle in bundles]
    hashes = [topic_hash(topic) for topic in TOPICS]
    return sum(
        low <= place < high or place == high == LAST for low, high in ranges for place in hashes
    )


@in_cluster("one", "two", "three")
async def test_a_broker_that_stops_hands_over_first(world: ClusterWorld) -> None:
    publishing = Publishing(world, "one", "two")
    await publishing.start()
    await asyncio.sleep(1)
    await world.nodes["one"].broker.stop()
    assert not world.owned("one")
    stopped_at = asyncio.get_running_loop().time()
    longest = await publishing.longest_after(stopped_at + 3, seconds=20)
    assert longest < SOON_SECONDS, longest
    counts = [topics_within(world.owned(name)) for name in ("two", "three")]
    assert sum(counts) == len(TOPICS)
    assert max(counts) - min(counts) <= LARGEST_BUNDLE_COUNT, counts


@in_cluster("one", "two")
async def test_a_restarted_broker_takes_its_own_bundles_up_at_once(world: ClusterWorld) -> None:
    publishing = Publishing(world, "two")
    await publishing.start()
    before = world.owned("one")
    assert before
    killed_at = asyncio.get_running_loop().time()
    world.kill("one")
    await world.start(world.node("one"))
    longest = await publishing.longest_after(killed_at + 3, seconds=SESSION_SECONDS)
    assert longest < SESSION_SECONDS / 2, longest
    assert sorted(world.owned("one")) == sorted(before)
