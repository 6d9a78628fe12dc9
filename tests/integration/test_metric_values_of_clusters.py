"""Values of the metrics on load, ownership and other brokers, in clusters in virtual time.

As `test_metric_values`: what is expected is counted by clients, or told by the cluster as a whole.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.admin.metrics.load_lines import load_lines
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.store import SessionEvent
from pulsar_py.server.load.machine import ProcessUsage
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, in_cluster, service, until
from tests.unit.admin.metrics.metric_pages import Labels, by, only, parsed
from tests.unit.server.test_bundle_moves import TOPIC, ask, joined
from tests.unit.server.test_cluster_load import TOPICS, Busy, balancers, publish_to_all

Metrics = dict[str, dict[Labels, float]]


def load_of(world: ClusterWorld, name: str) -> Metrics:
    return parsed("".join(load_lines(service(world, name), "c")))


@pytest.mark.metric(
    "pulsar_lb_cpu_usage",
    "pulsar_lb_memory_usage",
    "pulsar_lb_directMemory_usage",
    "pulsar_lb_bandwidth_in_usage",
    "pulsar_lb_bandwidth_out_usage",
)
@in_cluster("one", "two")
async def test_how_busy_a_broker_is(world: ClusterWorld) -> None:
    """Ten messages of 10,000 bytes a second are 800 kbit/s, of 4000."""
    clock = world.clock

    def machine() -> ProcessUsage:
        return ProcessUsage(clock.monotonic_seconds() * 0.35, 30.0, 120.0, network_kilobits=4000.0)

    await joined(world)
    client = world.client("one", "two")
    producer = await client.create_producer(str(TOPIC))
    consumers = [await client.subscribe(str(TOPIC), name) for name in ("s", "t")]
    (owner,) = [name for name in world.nodes if world.owned(name)]
    service(world, owner).cluster_load._reporter._machine = machine

    async def receive(consumer: Any) -> None:
        while True:
            await consumer.receive()

    receiving = [asyncio.ensure_future(receive(each)) for each in consumers]
    for _ in range(3000):
        await producer.send(bytes(10_000))
        await asyncio.sleep(0.1 - clock.monotonic_seconds() % 0.1)
    expected = {"cpu": 35, "memory": 25, "directMemory": 25, "bandwidth_in": 20}
    metrics = load_of(world, owner)
    found = {name: only(metrics, f"pulsar_lb_{name}_usage") for name in expected}
    assert found == pytest.approx(expected, rel=0.05)
    out = only(metrics, "pulsar_lb_bandwidth_out_usage")
    assert out == pytest.approx(2 * 20, rel=0.05), "two subscriptions"
    for each in receiving:
        each.cancel()
    await client.close()


@pytest.mark.metric(
    "pulsar_lb_unload_bundle_total",
    "pulsar_lb_unload_broker_total",
    "pulsar_py_bundles_owned",
    "pulsar_py_bundles_gained_total",
    "pulsar_py_bundles_lost_total",
    "pulsar_py_cluster_brokers",
    "pulsar_py_cluster_leading",
)
@in_cluster(
    "one",
    "two",
    loadBalancerBundleUnloadMinThroughputThreshold=0.0,
    loadBalancerHistoryResourcePercentage=0.0,
)
async def test_what_was_moved_from_a_busy_broker(world: ClusterWorld) -> None:
    client, producers = await publish_to_all(world)
    before = {name: load_of(world, name) for name in world.nodes}
    assert {name: len(world.owned(name)) for name in world.nodes} == {"one": 4, "two": 4}
    for name, share in (("one", 0.95), ("two", 0.05)):
        service(world, name).cluster_load._reporter._machine = Busy(world, share)

    async def publish() -> None:
        while True:
            for producer in producers:
                await producer.send(b"x" * 1000)
            await asyncio.sleep(1)

    publishing = asyncio.get_running_loop().create_task(publish())
    await until(lambda: len(world.owned("two")) > 4, seconds=400)
    publishing.cancel()
    await asyncio.sleep(10)
    moved = len(world.owned("two")) - 4
    assert moved > 0
    after = {name: load_of(world, name) for name in world.nodes}
    assert [only(after[name], "pulsar_py_cluster_brokers") for name in world.nodes] == [2, 2]
    leading = {name: only(after[name], "pulsar_py_cluster_leading") for name in world.nodes}
    assert sorted(leading.values()) == [0, 1]
    (leader,) = [name for name, leads in leading.items() if leads]
    for name in world.nodes:
        done = moved if name == leader else 0
        assert only(after[name], "pulsar_lb_unload_bundle_total") == done
        by_broker = by(after[name], "pulsar_lb_unload_broker_total", "broker")
        assert by_broker == ({"one:8080": moved} if done else {})

    def growth(name: str, metric: str) -> float:
        counts = [sum(page[name].get(metric, {}).values()) for page in (before, after)]
        return counts[1] - counts[0]

    assert growth("one", "pulsar_py_bundles_owned") == -moved
    assert growth("two", "pulsar_py_bundles_owned") == moved
    assert growth("one", "pulsar_py_bundles_lost_total") == moved
    assert growth("two", "pulsar_py_bundles_gained_total") == moved
    assert growth("two", "pulsar_py_bundles_lost_total") == 0
    assert growth("one", "pulsar_py_bundles_gained_total") == 0
    await client.close()


@pytest.mark.metric("pulsar_lb_bundles_split_total")
@in_cluster("one", "two", loadBalancerNamespaceBundleMaxTopics=3)
async def test_how_often_bundles_were_split(world: ClusterWorld) -> None:
    client, _ = await publish_to_all(world)
    await asyncio.sleep(600)
    name = NamespaceName("public", "default")
    bundles = await service(world, "one").namespaces.bundles_of(name)
    split = sum(only(load_of(world, each), "pulsar_lb_bundles_split_total") for each in world.nodes)
    assert split == len(bundles.names) - BUNDLES_COUNT > 0
    assert len(TOPICS) > BUNDLES_COUNT
    assert len(balancers(world)) == 2
    await client.close()


@pytest.mark.metric("pulsar_py_clients_redirected_total", "pulsar_py_broker_calls_total")
@in_cluster("one", "two", "three")
async def test_clients_and_calls_that_were_sent_on(world: ClusterWorld) -> None:
    await joined(world)
    client = world.client("one")
    producer = await client.create_producer(str(TOPIC))
    consumers = [await client.subscribe(str(TOPIC), name) for name in "ab"]
    bundle = await service(world, "one").namespaces.bundle_of(TOPIC)
    (owner,) = [name for name in world.nodes if bundle in world.owned(name)]
    destination, other = [name for name in world.nodes if name != owner]
    path = f"/admin/v2/namespaces/public/default/{bundle}/unload"
    answer = await ask("PUT", f"{path}?destinationBroker={destination}:8080", owner)
    assert answer.status == 204, answer.body
    await producer.send(b"after")
    name = "pulsar_py_clients_redirected_total"
    assert only(load_of(world, owner), name) == 1 + len(consumers)
    assert only(load_of(world, destination), name) == only(load_of(world, other), name) == 0
    calls = "pulsar_py_broker_calls_total"
    before = {each: only(load_of(world, each), calls) for each in world.nodes}
    report = service(world, other).membership.directory.brokers[f"{destination}:8080"]
    for _ in range(3):
        await service(world, other).other_brokers.call(report, "GET", "/admin/v2/brokers/ready")
    grown = {each: only(load_of(world, each), calls) - before[each] for each in world.nodes}
    assert grown == {owner: 0, destination: 0, other: 3}
    await client.close()


@pytest.mark.metric("pulsar_py_lookups_held")
@in_cluster("one", "two", "three")
async def test_lookups_that_wait_for_a_dead_brokers_session(world: ClusterWorld) -> None:
    await joined(world)
    client = world.client("one", "two", "three")
    await client.create_producer(str(TOPIC))
    bundle = await service(world, "one").namespaces.bundle_of(TOPIC)
    (owner,) = [name for name in world.nodes if bundle in world.owned(name)]
    left = [name for name in world.nodes if name != owner]
    await client.close()
    world.kill(owner)
    lookups = [
        asyncio.ensure_future(service(world, left[0]).namespaces.lookup(TOPIC)) for _ in range(4)
    ]
    await asyncio.sleep(0.3)
    assert only(load_of(world, left[0]), "pulsar_py_lookups_held") == len(lookups)
    await asyncio.gather(*lookups)
    assert only(load_of(world, left[0]), "pulsar_py_lookups_held") == 0


@pytest.mark.metric("pulsar_py_metadata_session_doubts_total")
@in_cluster("one", "two")
async def test_sessions_that_were_in_doubt(world: ClusterWorld) -> None:
    name = "pulsar_py_metadata_session_doubts_total"
    await joined(world)
    assert [only(load_of(world, each), name) for each in world.nodes] == [0, 0]
    events: list[SessionEvent] = []
    session = await world.nodes["one"].metadata.open_session()
    session.listen(events.append)
    for _ in range(3):
        world.nodes["one"].metadata.expire()
        await asyncio.sleep(20)
    told = [each for each in events if each is not SessionEvent.CONNECTION_LOST]
    assert SessionEvent.NEW_SESSION in told
    assert only(load_of(world, "one"), name) == len(told)
    assert only(load_of(world, "two"), name) == 0
