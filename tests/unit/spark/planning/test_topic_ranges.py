"""The first entry and the end of topics, and that they change when the topics do."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client import Client
from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.common.position import Position
from pulsar_py.spark.planning.topic_ranges import topic_extents, topic_partitions
from pulsar_py.testing.broker_thread import BrokerThread
from tests.unit.spark.broker_parts import publish

TOPIC = "persistent://public/default/extents"


def test_extents_change_with_what_is_there() -> None:
    with BrokerThread() as broker:
        options = {
            "service.url": broker.service_url,
            "admin.url": broker.web_service_url,
            "topicsPattern": f"{TOPIC}.*",
        }

        async def send(topic: str) -> Position:
            async with Client(broker.service_url) as client:
                return (await publish(client, topic, range(2)))[-1]

        with pytest.raises(TopicNotFoundError, match="extents"):
            topic_extents(options)
        last = asyncio.run(send(TOPIC))
        expected = f"{TOPIC} {last.ledger_id}:0 {last.ledger_id}:2"
        assert topic_extents(options) == topic_extents(options) == expected
        other = asyncio.run(send(f"{TOPIC}-b"))
        second = f"{TOPIC}-b {other.ledger_id}:0 {other.ledger_id}:2"
        assert topic_partitions(options) == [TOPIC, f"{TOPIC}-b"]
        del options["topicsPattern"]
        options["topics"] = f"{TOPIC},no-such-topic"
        missing = "persistent://public/default/no-such-topic"
        assert topic_partitions(options) == [TOPIC, missing]
        assert topic_partitions(options | {"failOnDataLoss": "false"}) == [TOPIC]
        options["topics"] = f"{TOPIC},{TOPIC}-b"
        assert topic_extents(options) == f"{expected}\n{second}"
