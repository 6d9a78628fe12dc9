"""A broker on real bookies and a real ZooKeeper; another one goes on where it ended."""

from __future__ import annotations

from pathlib import Path

import pulsar
import pytest

from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker

COUNT = 500
TOPIC = "persistent://public/default/kept"


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
def test_a_broker_without_state_of_its_own_goes_on_where_the_last_one_was(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    url = f"{bookkeeper.zookeeper.url}/smoke"
    with OurBroker(tmp_path / "first", url) as first:
        publish(first.service_url)
    with OurBroker(tmp_path / "second", url) as second:
        found = consume(second.service_url)
    assert found == [b"%d" % number for number in range(COUNT // 2, COUNT)]
    assert not list(second.cwd.iterdir())
