"""What the pages of a topic and of a subscription show."""

from __future__ import annotations

import json
from typing import Any

from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.network.http_client import HttpClient, HttpRequest
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service
from tests.unit.console.conftest import TOPIC, ConsoleCalls


async def test_a_topic_with_its_subscriptions_and_producers(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t", producer_name="shop")
    await console.client.subscribe("t", "s", consumer_type=ConsumerType.Shared)
    for _ in range(3):
        await producer.send(b"x")
    found = await console.get(f"{TOPIC}/t")
    assert found["name"] == "persistent://public/default/t"
    assert found["partitions"] == 0
    assert found["totals"]["messagesIn"] == 3
    assert [each["producerName"] for each in found["producers"]] == ["shop"]
    (line,) = found["subscriptions"]["items"]
    assert (line["name"], line["backlog"], line["consumers"]) == ("s", 3, 1)
    assert line["type"] == "Shared"
    assert found["ledger"]["entries"] == 3


async def test_a_partitioned_topic_is_summed_up(console: ConsoleCalls) -> None:
    await console.call("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    await console.client.subscribe("p", "s")
    producer = await console.client.create_producer("p")
    for key in "abcdefgh":
        await producer.send(b"x", partition_key=key)
    found = await console.get(f"{TOPIC}/p")
    assert found["partitions"] == 2
    assert found["totals"]["messagesIn"] == 8
    assert len(found["partitionLines"]) == 2
    assert found["subscriptions"]["items"][0]["backlog"] == 8
    assert "ledger" not in found


async def test_a_subscription_says_why_it_stands_still(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t")
    await console.call("PUT", "/admin/v2/persistent/public/default/t/subscription/s")
    await producer.send(b"x")
    found = await console.get(f"{TOPIC}/t/subscription/s")
    (part,) = found["parts"]
    assert [each["code"] for each in part["reasons"]] == ["NO_CONSUMERS"]
    assert part["cursor"]["lastPosition"].endswith(":0")
    assert found["consumerLines"] == {"items": [], "more": False, "total": 0}


async def test_consumers_come_in_pages(console: ConsoleCalls) -> None:
    for number in range(5):
        await console.client.subscribe(
            "t", "s", consumer_type=ConsumerType.Shared, consumer_name=f"c{number}"
        )
    path = f"{TOPIC}/t/subscription/s?limit=2"
    found = (await console.get(path))["consumerLines"]
    assert [each["consumerName"] for each in found["items"]] == ["c0", "c1"]
    assert (found["more"], found["total"]) == (True, 5)
    last = found["items"][-1]["key"].replace(" ", "%20")
    found = (await console.get(f"{path}&after={last}"))["consumerLines"]
    assert [each["consumerName"] for each in found["items"]] == ["c2", "c3"]


async def test_however_many_subscriptions_an_answer_has_a_page_of_them(
    console: ConsoleCalls,
) -> None:
    await console.client.create_producer("t")
    topic = console.topic("t")
    for number in range(300):
        await topic.create_subscription(f"s{number:03}", starts_at_earliest=False, properties={})
    response = await console.call("GET", f"{TOPIC}/t?limit=50")
    found = json.loads(response.body)["subscriptions"]
    assert (len(found["items"]), found["total"]) == (50, 300)
    assert len(response.body) < 50_000
    found = (await console.get(f"{TOPIC}/t?search=s29"))["subscriptions"]
    assert found["total"] == 10


async def test_what_is_not_there_is_404(console: ConsoleCalls) -> None:
    assert await console.status("GET", f"{TOPIC}/nothing") == 404
    await console.client.create_producer("t")
    assert await console.status("GET", f"{TOPIC}/t/subscription/nothing") == 404


async def ask(host: str, path: str, method: str = "GET", body: object = None) -> Any:  # Any: JSON
    """What a broker of the cluster answers."""
    async with HttpClient(timeout_seconds=60, max_redirects=5) as client:
        request = HttpRequest(
            method=method,
            url=f"http://{host}:8080{path}",
            body=b"" if body is None else json.dumps(body).encode(),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        answer = await client.send(request)
    assert answer.status < 300, (answer.status, answer.body)
    return answer.json() if answer.body else None


@in_cluster("one", "two")
async def test_partitions_of_several_brokers_are_summed_up_by_each(world: ClusterWorld) -> None:
    await ask("one", "/admin/v2/persistent/public/default/p/partitions", "PUT", 8)
    async with world.client("one") as client:
        consumer = await client.subscribe(
            "public/default/p", "s", consumer_name="c", ack_receipt_enabled=True
        )
        producer = await client.create_producer("public/default/p", producer_name="shop")
        for number in range(40):
            await producer.send(b"x", partition_key=str(number))
        for _ in range(10):
            await consumer.acknowledge(await consumer.receive())
        served = [len(service(world, name).topics.topics) for name in world.nodes]
        assert all(served), "each has some partitions"
        for host in world.nodes:
            found = await ask(host, f"{TOPIC}/p")
            assert found["partitions"] == len(found["partitionLines"]) == 8
            assert found["totals"]["messagesIn"] == 40
            assert len(found["producers"]) == 8
            (line,) = found["subscriptions"]["items"]
            assert (line["backlog"], line["consumers"], line["type"]) == (30, 8, "Exclusive")
            found = await ask(host, f"{TOPIC}/p/subscription/s")
            assert sum(each["backlog"] for each in found["parts"]) == 30
            assert all("reasons" in each and "cursor" in each for each in found["parts"])
            assert found["consumerLines"]["total"] == 8
            effects = await ask(host, f"{TOPIC}/p/subscription/s/preview?action=clear")
            assert sum(each["acknowledges"] for each in effects) == 30
            assert len(effects) == 8
