"""Policies of topics, while the log that tells of them is at a broker of another kind.

The brokers are whole ones, in virtual time.
"""

from __future__ import annotations

import asyncio
import json

from pulsar_py.common.network.http_client import HttpClient, HttpRequest
from pulsar_py.server.change_events.foreign_logs import LOOK_SECONDS
from tests.simulation.brokers_world import NAMESPACE
from tests.simulation.cluster_world import ClusterWorld, in_cluster, service, until
from tests.unit.server.change_events.other_kind import (
    EVENTS,
    beside_another_kind,
    change,
    copy,
    topic_at_one,
)


@beside_another_kind
async def test_what_is_set_there_takes_effect_here(world: ClusterWorld) -> None:
    name = await topic_at_one(world, events_at="two")
    client = world.client("one")
    producer = await client.create_producer(str(name))
    topic = service(world, "one").topics.loaded(name)
    assert topic is not None
    await change(world, "two", name, maxProducerPerTopic=1)
    await until(lambda: topic.settings.max_producers == 1, seconds=LOOK_SECONDS + 1)
    await change(world, "two", name, maxProducerPerTopic=2)
    await until(lambda: topic.settings.max_producers == 2, seconds=0.5)
    await producer.close()
    await client.close()


@beside_another_kind
async def test_what_is_changed_here_is_in_the_log_there_and_in_effect(world: ClusterWorld) -> None:
    name = await topic_at_one(world, events_at="two")
    await change(world, "one", name, maxProducerPerTopic=1)  # which makes the log
    assert await copy(world, name) == {"maxProducerPerTopic": 1}
    await change(world, "one", name, maxConsumerPerTopic=3)
    assert await copy(world, name) == {"maxProducerPerTopic": 1, "maxConsumerPerTopic": 3}
    log = service(world, "two").topics.loaded(EVENTS)
    assert log.ledger.entries_count == 2
    await service(world, "one").topic_policies.remove(name)
    assert await copy(world, name) is None
    assert log.ledger.entries_count == 3


@beside_another_kind
async def test_copies_that_the_log_lacks_go_once_they_follow_it(world: ClusterWorld) -> None:
    name, other = await topic_at_one(world, events_at="two"), NAMESPACE.topic("other")
    await change(world, "one", name, maxProducerPerTopic=1)
    one = service(world, "one")
    stale = await one.resources.topic_policies.get(name)
    await one.resources.topic_policies.create(other, stale)
    one.topic_policies._others._end(NAMESPACE)  # and it is read anew
    await service(world, "one").topic_policies.catch_up(NAMESPACE)
    assert await copy(world, other) is None
    assert await copy(world, name) == {"maxProducerPerTopic": 1}


@beside_another_kind
async def test_a_log_that_comes_here_is_followed_here(world: ClusterWorld) -> None:
    name = await topic_at_one(world, events_at="two")
    await change(world, "one", name, maxProducerPerTopic=1)
    await move_events(world, "two", to="one")
    await change(world, "one", name, maxProducerPerTopic=2)
    assert await copy(world, name) == {"maxProducerPerTopic": 2}
    logs = service(world, "one").topic_policies._others
    await until(lambda: not logs._followed, seconds=LOOK_SECONDS + 1)
    await move_events(world, "one", to="two")
    await change(world, "two", name, maxProducerPerTopic=3)
    await until(lambda: bool(logs._followed), seconds=LOOK_SECONDS + 1)
    await logs.catch_up(NAMESPACE)
    assert await copy(world, name) == {"maxProducerPerTopic": 3}


@beside_another_kind
async def test_administration_answers_where_the_topic_is(world: ClusterWorld) -> None:
    """The other kind sends callers to who serves the topic: it must not send them back."""
    name = await topic_at_one(world, events_at="two")
    client = world.client("one")
    await client.create_producer(str(name))
    path = f"/admin/v2/persistent/{NAMESPACE}/{name.local_name}/maxProducers"
    assert await ask("POST", path, 1) == (204, None)
    assert await ask("GET", path) == (200, 1)
    assert await ask("DELETE", path) == (204, None)
    assert await ask("GET", path) == (200, None)
    await client.close()


@in_cluster("one", "two")
async def test_a_deleted_topic_takes_policies_along_whose_log_is_elsewhere(
    world: ClusterWorld,
) -> None:
    await deleted_with_its_policies(world)


@beside_another_kind
async def test_a_deleted_topic_takes_policies_along_at_another_kind(world: ClusterWorld) -> None:
    await deleted_with_its_policies(world)


async def deleted_with_its_policies(world: ClusterWorld) -> None:
    name = await topic_at_one(world, events_at="two")
    client = world.client("one")
    producer = await client.create_producer(str(name))
    await producer.close()
    await change(world, "two", name, maxProducerPerTopic=1)
    await asyncio.sleep(LOOK_SECONDS + 1)
    assert await copy(world, name) == {"maxProducerPerTopic": 1}
    await service(world, "one").topics.delete(name)
    await asyncio.sleep(1)
    assert await copy(world, name) is None
    await client.close()


async def move_events(world: ClusterWorld, owner: str, *, to: str) -> None:
    """Have the bundle of the events served by another broker."""
    bundle = await service(world, owner).namespaces.bundle_of(EVENTS)
    path = f"/admin/v2/namespaces/{NAMESPACE}/{bundle}/unload?destinationBroker={to}:8080"
    url = f"http://{owner}:8080{path}"
    async with HttpClient(timeout_seconds=60) as client:
        answer = await client.send(HttpRequest(method="PUT", url=url, headers={}, body=b""))
        while answer.status == 307:  # the leader is asked first
            url = answer.headers["location"]
            answer = await client.send(HttpRequest(method="PUT", url=url, headers={}, body=b""))
    assert answer.status == 204
    assert service(world, to).namespaces.is_owned(EVENTS)


async def ask(method: str, path: str, body: object = None) -> tuple[int, object]:
    """Status and JSON of `one`; a redirect is an answer, too."""
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    async with HttpClient(timeout_seconds=60) as client:
        answer = await client.send(
            HttpRequest(method=method, url=f"http://one:8080{path}", body=data, headers=headers)
        )
    return answer.status, answer.json() if answer.body else None
