"""Lags of a real broker, and of checkpoints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_py.admin_client import AdminSettings
from pulsar_py.client import Client
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.pipeline.lag import LagSettings, measure_lag
from pulsar_py.pipeline.settings.topics import Cluster
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.pipeline.resuming.test_offsets import checkpoint

TOPIC = "persistent://public/default/lagging"


async def publish(service_url: str) -> None:
    async with Client(service_url) as client:
        for name in ("one", "two"):
            await (await client.subscribe(TOPIC, name)).close()
        async with await client.create_producer(TOPIC) as producer:
            for _ in range(5):
                await producer.send(b"x")
        consumer = await client.subscribe(TOPIC, "two")
        for _ in range(3):
            await consumer.acknowledge(await consumer.receive())
        await consumer.close()


async def test_subscriptions_with_the_largest_backlog_first(pulsar_broker: BrokerThread) -> None:
    await publish(pulsar_broker.service_url)
    admin = AdminSettings(url=pulsar_broker.web_service_url)
    for settings in (
        LagSettings(admin=admin),
        LagSettings(admin=admin, namespaces=["public/default"]),
        LagSettings(admin=admin, topics=["lagging"]),
    ):
        lags = [each for each in measure_lag(settings) if each.topic == TOPIC]
        assert [(each.name, each.backlog_entries) for each in lags] == [("one", 5), ("two", 2)]


async def test_every_subscription_has_its_age(pulsar_broker: BrokerThread) -> None:
    await publish(pulsar_broker.service_url)
    url = pulsar_broker.web_service_url
    told = LagSettings(admin=AdminSettings(url=url), topics=["lagging"])
    cluster = Cluster(service_url=pulsar_broker.service_url, admin_url=url)
    lags = {each.name: each for each in measure_lag(replace(told, cluster=cluster))}
    assert all(each.age_seconds is not None for each in lags.values())
    assert all(each.seconds_to_drain is None for each in lags.values())  # nobody reads


async def test_a_checkpoint_against_the_end(pulsar_broker: BrokerThread, tmp_path: Path) -> None:
    await publish(pulsar_broker.service_url)
    offsets = 'v1\n{"batchWatermarkMs":0}\n' + json.dumps({TOPIC: "0:0", "~v": "1"})
    settings = LagSettings(
        admin=AdminSettings(url=pulsar_broker.web_service_url),
        checkpoint=checkpoint(tmp_path, offsets),
    )
    assert [each.backlog_entries for each in measure_lag(settings)] == [5]


def test_a_topic_that_is_not_there(pulsar_broker: BrokerThread) -> None:
    admin = AdminSettings(url=pulsar_broker.web_service_url)
    with pytest.raises(TopicNotFoundError):
        measure_lag(LagSettings(admin=admin, topics=["no-such"]))
