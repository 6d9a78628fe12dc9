"""Delayed messages in buckets on disk with the official client, over a broker that is killed."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import pulsar
from pulsar import ConsumerType, InitialPosition

from tests.interop.broker_process import BrokerProcess

TOPIC = "persistent://public/default/delayed"
SETTINGS = {
    "delayedDeliveryTrackerFactoryClassName": (
        "org.apache.pulsar.broker.delayed.BucketDelayedDeliveryTrackerFactory"
    ),
    "delayedDeliveryMinIndexCountPerBucket": "5",
    "managedLedgerMaxEntriesPerLedger": "10",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
}
COUNT = 48


def subscription_stats(broker: BrokerProcess) -> dict[str, int]:
    url = f"{broker.web_service_url}/admin/v2/persistent/public/default/delayed/stats"
    with urllib.request.urlopen(url, timeout=10) as response:
        found: dict[str, int] = json.load(response)["subscriptions"]["sub"]
    return found


def subscribe(client: pulsar.Client) -> pulsar.Consumer:
    return client.subscribe(
        TOPIC,
        "sub",
        consumer_type=ConsumerType.Shared,
        initial_position=InitialPosition.Earliest,
    )


def test_a_killed_broker_delivers_each_once_and_none_early(tmp_path: Path) -> None:
    options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    with BrokerProcess(tmp_path / "data", *options) as broker:
        client = pulsar.Client(broker.service_url)
        subscribe(client)
        producer = client.create_producer(TOPIC)
        now = int(time.time() * 1000)
        for number in range(COUNT):
            due = now + 4000 + number * 37 % COUNT * 50
            producer.send(str(due).encode(), deliver_at=due)
        assert subscription_stats(broker)["msgDelayed"] == COUNT
        broker.kill()
        client.shutdown()
        broker.start()
        client = pulsar.Client(broker.service_url)
        consumer = subscribe(client)
        seen = set()
        for _ in range(COUNT):
            message = consumer.receive(10_000)
            assert int(message.data()) <= time.time() * 1000, "early"
            assert message.message_id().serialize() not in seen
            seen.add(message.message_id().serialize())
            consumer.acknowledge(message)
        client.close()  # it sends the acknowledgements that it has gathered
        stats = subscription_stats(broker)
        assert (stats["msgBacklog"], stats["msgDelayed"]) == (0, 0)
