"""Questions about all partitions or a whole namespace reach all brokers that serve parts of it."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from pulsar_py.common.names import TopicName
from pulsar_py.common.network.http_client import HttpClient, HttpRequest
from pulsar_py.server.elsewhere import topic_path
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, in_cluster, service, until

TOPIC = "/admin/v2/persistent/public/default/parts"
NAMESPACE = "/admin/v2/namespaces/public/default"
PARTITIONS = [f"persistent://public/default/parts-partition-{number}" for number in range(6)]


async def ask(method: str, path: str, body: object = None, *, host: str = "one") -> tuple[int, Any]:
    """Status and JSON of one broker's answer; a redirect is an answer, too."""
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    async with HttpClient(timeout_seconds=60) as client:
        answer = await client.send(
            HttpRequest(method=method, url=f"http://{host}:8080{path}", body=data, headers=headers)
        )
    return answer.status, answer.json() if answer.body else None


async def spread(world: ClusterWorld) -> Any:
    """A client that has a producer and a subscription on each partition, and two brokers serve."""
    await until(lambda: len(service(world, "one").membership.directory.brokers) == 2, seconds=3)
    assert (await ask("PUT", f"{TOPIC}/partitions", len(PARTITIONS)))[0] == 204
    client = world.client("one", "two")
    for name in PARTITIONS:
        consumer = await client.subscribe(name, "s")
        await consumer.close()
        producer = await client.create_producer(name)
        await producer.send(b"x")
        await producer.close()
    for name in world.nodes:
        assert any(service(world, name).namespaces.is_owned(TopicName.parse(p)) for p in PARTITIONS)
    return client


@in_cluster("one", "two")
async def test_partitions_of_other_brokers_answer_too(world: ClusterWorld) -> None:
    client = await spread(world)
    assert await ask("GET", f"{TOPIC}/subscriptions") == (200, ["s"])
    status, stats = await ask("GET", f"{TOPIC}/partitioned-stats")
    assert (status, stats["msgInCounter"]) == (200, 6)
    assert sorted(stats["partitions"]) == PARTITIONS
    assert stats["subscriptions"]["s"]["msgBacklog"] == 6
    status, internal = await ask("GET", f"{TOPIC}/partitioned-internalStats")
    assert (status, sorted(internal["partitions"])) == (200, PARTITIONS)
    status, still = await ask("GET", f"{TOPIC}/subscription/s/standstill")
    assert status in {200, 404}
    if status == 200:
        assert len(still) == len(PARTITIONS)
    await client.close()


@in_cluster("one", "two")
async def test_what_is_done_to_all_partitions_is_done_everywhere(world: ClusterWorld) -> None:
    client = await spread(world)
    assert (await ask("POST", f"{TOPIC}/subscription/s/skip_all"))[0] == 204
    _, stats = await ask("GET", f"{TOPIC}/partitioned-stats", host="two")
    assert stats["subscriptions"]["s"]["msgBacklog"] == 0
    assert (await ask("PUT", f"{TOPIC}/unload"))[0] == 204
    assert not any(
        str(name) in PARTITIONS
        for each in world.nodes
        for name in service(world, each).topics.topics
    )
    status, ended = await ask("POST", f"{TOPIC}/terminate/partitions")
    assert (status, sorted(ended)) == (200, ["0", "1", "2", "3", "4", "5"])
    assert all(each["partitionIndex"] == -1 for each in ended.values())
    assert (await ask("DELETE", f"{TOPIC}/subscription/s"))[0] == 204
    assert await ask("GET", f"{TOPIC}/subscriptions") == (200, [])
    assert (await ask("DELETE", f"{TOPIC}/partitions"))[0] == 204
    _, left = await ask("GET", "/admin/v2/persistent/public/default", host="two")
    assert left == []
    await client.close()


@in_cluster("one", "two")
async def test_a_topic_grows_whose_partitions_others_serve(world: ClusterWorld) -> None:
    client = await spread(world)
    grown = [f"persistent://public/default/parts-partition-{number}" for number in range(20)]
    for name in grown[len(PARTITIONS) :]:  # their bundles have owners
        await ask("GET", f"/lookup/v2/topic/{name.replace('://', '/')}")
    for host, count in (("two", 19), ("one", 20), ("one", 20)):
        status, answer = await ask("POST", f"{TOPIC}/partitions", count, host=host)
        assert status == 204, answer
        for name in grown[:count]:
            path = f"/admin/v2/{name.replace('://', '/')}/subscriptions"
            of_one = [await ask("GET", path, host=each) for each in world.nodes]
            assert (200, ["s"]) in of_one, name
    assert {
        each
        for each in world.nodes
        if any(
            service(world, each).namespaces.is_owned(TopicName.parse(name)) for name in grown[6:]
        )
    } == set(world.nodes)
    await client.close()


@in_cluster("one", "two")
async def test_a_whole_namespace_is_unloaded_and_cleared_everywhere(world: ClusterWorld) -> None:
    client = await spread(world)
    assert (await ask("POST", f"{NAMESPACE}/clearBacklog/s"))[0] == 204
    _, stats = await ask("GET", f"{TOPIC}/partitioned-stats")
    assert stats["subscriptions"]["s"]["msgBacklog"] == 0
    assert (await ask("POST", f"{NAMESPACE}/unsubscribe/s"))[0] == 204
    assert await ask("GET", f"{TOPIC}/subscriptions") == (200, [])
    assert len(world.owned("one")) + len(world.owned("two")) <= BUNDLES_COUNT
    assert (await ask("PUT", f"{NAMESPACE}/unload"))[0] == 204
    assert world.owned("one") == world.owned("two") == []
    await client.close()


@in_cluster("one", "two")
async def test_a_partition_with_clients_elsewhere_keeps_the_topic(world: ClusterWorld) -> None:
    client = await spread(world)
    elsewhere = next(
        name
        for name in PARTITIONS
        if service(world, "two").namespaces.is_owned(TopicName.parse(name))
    )
    producer = await client.create_producer(elsewhere)
    status, answer = await ask("DELETE", f"{TOPIC}/partitions")
    assert status == 412, answer
    await producer.close()
    assert (await ask("DELETE", f"{TOPIC}/partitions"))[0] == 204
    await client.close()


def test_a_topic_s_path_is_encoded() -> None:
    name = TopicName.parse("persistent://t/n/a b%")
    assert topic_path(name) == "/admin/v2/persistent/t/n/a%20b%25"


async def redirects_of(method: str, path: str, *, host: str) -> list[str]:
    """The brokers that a request is answered by, one after the other, until there is no 307."""
    url, hosts = f"http://{host}:8080{path}", []
    async with HttpClient(timeout_seconds=60) as client:
        for _ in range(5):
            hosts.append(urlsplit(url).hostname or "")
            answer = await client.send(HttpRequest(method=method, url=url))
            if answer.status != 307:
                assert answer.is_success, answer.body
                return hosts
            url = answer.headers["location"]
    raise AssertionError(f"sent in a circle: {hosts}")


@in_cluster("one", "two", "three")
async def test_a_topic_that_nobody_serves_goes_where_a_lookup_leads(world: ClusterWorld) -> None:
    await until(lambda: len(service(world, "two").membership.directory.brokers) == 3, seconds=3)
    leader = str(service(world, "one").membership.leader_id).partition(":")[0]
    asked = next(name for name in world.nodes if name != leader)
    served = set()
    for number in range(12):
        hosts = await redirects_of("PUT", f"{TOPIC}{number}", host=asked)
        name = TopicName.parse(f"persistent://public/default/parts{number}")
        owners = [each for each in world.nodes if service(world, each).namespaces.is_owned(name)]
        assert owners == [hosts[-1]]
        assert hosts[:2] in ([asked], [asked, leader], [asked, owners[0]])
        served.add(owners[0])
    assert served == set(world.nodes), "the leader spreads what nobody serves"


@in_cluster("one", "two", "three")
async def test_partitions_that_nobody_serves_are_spread(world: ClusterWorld) -> None:
    await until(lambda: len(service(world, "two").membership.directory.brokers) == 3, seconds=3)
    assert (await ask("PUT", f"{TOPIC}/partitions", len(PARTITIONS), host="two"))[0] == 204
    assert (await ask("PUT", f"{TOPIC}/subscription/s", host="two"))[0] == 204
    assert (await ask("PUT", f"{TOPIC}/subscription/s", host="three"))[0] == 409
    serving = {
        name: [
            p for p in PARTITIONS if service(world, name).namespaces.is_owned(TopicName.parse(p))
        ]
        for name in world.nodes
    }
    assert sorted(chain.from_iterable(serving.values())) == PARTITIONS
    assert all(serving.values()), serving
    assert await ask("GET", f"{TOPIC}/subscriptions") == (200, ["s"])


@in_cluster("one", "two")
async def test_what_subscriptions_of_all_partitions_have_is_told_and_set(
    world: ClusterWorld,
) -> None:
    client = await spread(world)
    path = f"{TOPIC}/subscription/s"
    assert (await ask("PUT", f"{path}/properties", {"colour": "red"}))[0] == 204
    for host in world.nodes:
        assert await ask("GET", f"{path}/properties", host=host) == (200, {"colour": "red"})
    assert (await ask("POST", f"{path}/replicatedSubscriptionStatus", True))[0] == 204
    for host in world.nodes:
        status, told = await ask("GET", f"{path}/replicatedSubscriptionStatus", host=host)
        assert (status, told) == (200, dict.fromkeys(PARTITIONS, True))
    assert (await ask("GET", f"{TOPIC}/subscription/none/properties"))[0] == 404
    await client.close()


@in_cluster("one", "two")
async def test_a_dead_owner_is_told_as_such(world: ClusterWorld) -> None:
    client = await spread(world)
    await client.close()
    world.kill("two")
    status, answer = await ask("GET", f"{TOPIC}/partitioned-stats")
    assert status == 503, answer
    assert "two:8080" in str(answer)


@in_cluster("one", "two")
async def test_partitions_that_were_never_loaded_are_passed_over(world: ClusterWorld) -> None:
    """Those of a topic in memory exist once somebody connects."""
    await until(lambda: len(service(world, "one").membership.directory.brokers) == 2, seconds=3)
    topic = TOPIC.replace("persistent", "non-persistent")
    assert (await ask("PUT", f"{topic}/partitions", len(PARTITIONS)))[0] == 204
    for host in world.nodes:
        assert (await ask("GET", f"{topic}/partitioned-stats", host=host))[0] == 200
        assert (await ask("PUT", f"{topic}/unload", host=host))[0] == 204
