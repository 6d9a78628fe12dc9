"""A topic that goes from our broker to Apache Pulsar's and back, on real ZooKeeper and bookies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pulsar
import pytest

from tests.cluster.apache_broker import ApacheBroker
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.test_broker_on_cluster import broker

pytestmark = [pytest.mark.slow, pytest.mark.interop]

TOPIC = "persistent://public/default/handed-over"


def publish(url: str, data: bytes) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    client.subscribe(TOPIC, "sub").close()
    client.create_producer(TOPIC).send(data)
    client.close()


def receive(url: str) -> bytes:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(TOPIC, "sub")
    message = consumer.receive(20_000)
    consumer.acknowledge(message)
    client.close()
    found: bytes = message.data()
    return found


async def test_a_topic_goes_to_apache_pulsar_and_comes_back(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    async with broker(bookkeeper) as first:
        await asyncio.to_thread(publish, first.service_url, b"ours")
    apache = ApacheBroker(tmp_path, bookkeeper.zookeeper.url)
    try:
        await asyncio.to_thread(apache.start)
        assert await asyncio.to_thread(receive, apache.service_url) == b"ours"
        await asyncio.to_thread(publish, apache.service_url, b"theirs")
        await asyncio.to_thread(apache.stop)
    finally:
        apache.kill()
    async with broker(bookkeeper) as second:
        assert await asyncio.to_thread(receive, second.service_url) == b"theirs"
