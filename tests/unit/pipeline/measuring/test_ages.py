"""Publish times of first messages, by a real broker."""

from __future__ import annotations

from pulsar_py.client import Client, InitialPosition
from pulsar_py.common.position import Position
from pulsar_py.pipeline.measuring.ages import oldest_publish_millis
from pulsar_py.pipeline.settings.topics import Cluster
from pulsar_py.testing.broker_thread import BrokerThread

TOPIC = "persistent://public/default/ages"


async def test_the_message_behind_a_position_tells(pulsar_broker: BrokerThread) -> None:
    async with Client(pulsar_broker.service_url) as client:
        async with await client.create_producer(TOPIC) as producer:
            ids = [await producer.send(b"%d" % number) for number in range(3)]
        async with await client.subscribe(
            TOPIC, "s", initial_position=InitialPosition.Earliest
        ) as consumer:
            times = [(await consumer.receive()).publish_timestamp() for _ in ids]
    cluster = Cluster(service_url=pulsar_broker.service_url)
    positions = [Position(each.ledger_id, each.entry_id) for each in ids]
    before = Position(ids[0].ledger_id, -1)
    found = oldest_publish_millis(cluster, [(TOPIC, each) for each in (before, *positions[:2])])
    assert list(found.values()) == times


def test_what_cannot_be_read_has_no_age(pulsar_broker: BrokerThread) -> None:
    assert oldest_publish_millis(Cluster(service_url=pulsar_broker.service_url), []) == {}
    options = {"pulsar.client.operationTimeoutMs": "200"}
    nowhere = Cluster(service_url="pulsar://127.0.0.1:1", options=options)
    assert oldest_publish_millis(nowhere, [(TOPIC, Position(0, 0))]) == {}
