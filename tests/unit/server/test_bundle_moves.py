"""Bundles move and are split between whole brokers, in virtual time."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest

from pulsar_py.common.errors import BundleSplitError
from pulsar_py.common.names import NamespaceName, TopicName
from pulsar_py.common.network.http_client import HttpClient, HttpRequest, HttpResponse
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection.server_cnx import ServerCnx
from tests.simulation.brokers_world import NAMESPACE
from tests.simulation.cluster_world import BUNDLES_COUNT, ClusterWorld, in_cluster, service, until

TOPIC = TopicName.parse("persistent://public/default/moving")


async def ask(method: str, path: str, host: str = "one") -> HttpResponse:
    """Ask by REST, redirects followed."""
    async with HttpClient(timeout_seconds=60, max_redirects=5) as client:
        return await client.send(HttpRequest(method=method, url=f"http://{host}:8080{path}"))


async def joined(world: ClusterWorld) -> None:
    names = {f"{name}:8080" for name in world.nodes}
    await until(
        lambda: all(
            set(service(world, name).membership.directory.brokers) == names for name in world.nodes
        ),
        seconds=3,
    )


class Told:
    """The CLOSE commands that brokers send, and who owned the bundle then."""

    def __init__(self, world: ClusterWorld, bundle: str) -> None:
        self._world = world
        self._bundle = bundle
        self.urls: list[str] = []
        self.owners: list[list[str]] = []

    def send(self, cnx: ServerCnx, frame: bytes, send: Any) -> None:
        if frame[9] in {BaseCommand.CLOSE_PRODUCER, BaseCommand.CLOSE_CONSUMER}:
            command = BaseCommand.FromString(frame[8:])
            closed = (
                command.close_producer
                if command.HasField("close_producer")
                else command.close_consumer
            )
            self.urls.append(closed.assignedBrokerServiceUrl)
            self.owners.append(
                [name for name in self._world.nodes if self._bundle in self._world.owned(name)]
            )
        send(cnx, frame)


@in_cluster("one", "two", "three")
async def test_clients_are_sent_to_the_broker_that_has_the_bundle_by_then(
    world: ClusterWorld,
) -> None:
    await joined(world)
    client = world.client("one")
    producer = await client.create_producer(str(TOPIC))
    consumer = await client.subscribe(str(TOPIC), "s")
    await producer.send(b"before")
    bundle = await service(world, "one").namespaces.bundle_of(TOPIC)
    (owner,) = [name for name in world.nodes if bundle in world.owned(name)]
    destination = next(name for name in world.nodes if name != owner)
    told = Told(world, bundle)
    send = ServerCnx.send
    with patch.object(ServerCnx, "send", lambda cnx, frame: told.send(cnx, frame, send)):
        path = f"/admin/v2/namespaces/public/default/{bundle}/unload"
        answer = await ask("PUT", f"{path}?destinationBroker={destination}:8080")
        assert answer.status == 204, answer.body
        await producer.send(b"after")
    assert told.urls == [f"pulsar://{destination}:6650"] * 2
    assert told.owners == [[destination]] * 2
    assert [(await consumer.receive()).data() for _ in range(2)] == [b"before", b"after"]
    assert service(world, owner).bundle_moves.redirected_count == 2
    await client.close()


@in_cluster("one", "two", "three")
async def test_a_broker_that_leaves_sends_its_clients_where_their_bundles_are(
    world: ClusterWorld,
) -> None:
    await joined(world)
    client = world.client("one")
    names = [f"persistent://public/default/leaving-{number}" for number in range(20)]
    producers = [await client.create_producer(name) for name in names]
    assert world.owned("one")
    served = {str(name) for name in service(world, "one").topics.topics}
    send = ServerCnx.send
    urls: list[str] = []

    def told(cnx: ServerCnx, frame: bytes) -> None:
        if frame[9] == BaseCommand.CLOSE_PRODUCER:
            urls.append(BaseCommand.FromString(frame[8:]).close_producer.assignedBrokerServiceUrl)
        send(cnx, frame)

    with patch.object(ServerCnx, "send", told):
        await service(world, "one").hand_over()
    assert not world.owned("one")
    assert len(urls) == len(served)
    assert set(urls) == {"pulsar://two:6650", "pulsar://three:6650"}, "spread over the others"
    for producer in producers:
        await producer.send(b"after")
    await client.close()


@in_cluster("one", "two")
async def test_clients_of_a_bundle_that_is_not_taken_look_it_up(world: ClusterWorld) -> None:
    await joined(world)
    client = world.client("one", "two")
    producer = await client.create_producer(str(TOPIC))
    bundle = await service(world, "one").namespaces.bundle_of(TOPIC)
    (owner,) = [name for name in world.nodes if bundle in world.owned(name)]
    (other,) = [name for name in world.nodes if name != owner]
    told = Told(world, bundle)
    send = ServerCnx.send
    report = service(world, owner).membership.directory.brokers[f"{other}:8080"]
    world.kill(other)
    with patch.object(ServerCnx, "send", lambda cnx, frame: told.send(cnx, frame, send)):
        await service(world, owner).bundle_moves.transfer(NAMESPACE, bundle, report)
        await producer.send(b"after")
    assert told.urls == [""]
    assert world.owned(owner) == [bundle]
    await client.close()


@in_cluster("one", "two")
async def test_an_unknown_destination_is_refused(world: ClusterWorld) -> None:
    await joined(world)
    bundle = await service(world, "one").namespaces.bundle_of(TOPIC)
    path = f"/admin/v2/namespaces/public/default/{bundle}/unload?destinationBroker=x:1"
    answer = await ask("PUT", path)
    assert answer.status == 409
    assert json.loads(answer.body)["reason"] == "x:1 is no broker of this cluster"


@in_cluster("one", "two")
async def test_a_bundle_of_another_broker_is_split_there(world: ClusterWorld) -> None:
    await joined(world)
    one, two = service(world, "one"), service(world, "two")
    bundle = await one.namespaces.bundle_of(TOPIC)
    await two.namespaces.lookup(TOPIC, authoritative=True)
    owner = one.membership.directory.brokers["two:8080"]
    await one.bundle_moves.split(f"public/default/{bundle}", owner, unloads_parts=False)
    assert len(world.owned("two")) == 2
    await until(
        lambda: (
            len(one.namespaces._bundles.get(NAMESPACE, two.namespaces._bundles[NAMESPACE]).names)
            == BUNDLES_COUNT + 1
        ),
        seconds=1,
    )
    with pytest.raises(BundleSplitError, match="no place to split"):
        await two.bundle_moves.split_here(
            NAMESPACE,
            world.owned("two")[0],
            unloads_parts=False,
            algorithm="topic_count_equally_divide",
        )


@in_cluster("one")
async def test_a_bundle_without_topics_moves_nobody(world: ClusterWorld) -> None:
    one = service(world, "one")
    name = NamespaceName("public", "default")
    await one.namespaces.lookup(TOPIC, authoritative=True)
    (bundle,) = world.owned("one")
    await one.bundle_moves.transfer(name, bundle, one.membership.own)
    assert world.owned("one") == []
    assert one.other_brokers.calls_count == 0
