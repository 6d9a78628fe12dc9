"""A whole broker whose ledgers are on real bookies and whose metadata is in a real ZooKeeper."""

from __future__ import annotations

import asyncio

import pulsar
import pytest

from pulsar_py.standalone import Broker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.store_factories import OnBookKeeper, OnZooKeeper

COUNT = 500
TOPIC = "persistent://public/default/kept"


def broker(cluster: BookKeeperCluster) -> Broker:
    return Broker(
        metadata_store_factory=OnZooKeeper(cluster.zookeeper.url),
        ledger_store_factory=OnBookKeeper(),
    )


def publish(url: str) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(TOPIC, "sub")
    producer = client.create_producer(TOPIC, batching_enabled=False)
    for number in range(COUNT):
        producer.send(b"%d" % number)
    for _ in range(COUNT // 2):
        consumer.acknowledge(consumer.receive(20_000))
    client.close()


def consume(url: str) -> list[bytes]:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(TOPIC, "sub")
    found = []
    for _ in range(COUNT // 2):
        message = consumer.receive(20_000)
        found.append(message.data())
        consumer.acknowledge(message)
    client.close()
    return found


@pytest.mark.interop
async def test_a_broker_without_state_of_its_own_goes_on_where_the_last_one_was(
    bookkeeper: BookKeeperCluster,
) -> None:
    async with broker(bookkeeper) as first:
        await asyncio.to_thread(publish, first.service_url)
    async with broker(bookkeeper) as second:
        found = await asyncio.to_thread(consume, second.service_url)
    assert found == [b"%d" % number for number in range(COUNT // 2, COUNT)]
