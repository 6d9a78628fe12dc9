"""A producer is created by the number of its topic's partitions."""

from __future__ import annotations

import pytest

from pulsar_py.client.producing.create_producer import create_producer
from pulsar_py.common.errors import (
    AlreadyClosedError,
    InvalidConfigurationError,
    InvalidTopicNameError,
)
from tests.producer_parts import TOPIC
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client


@simulated
async def test_mistakes_are_found_before_anything_is_asked(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        with pytest.raises(InvalidConfigurationError):
            await create_producer(client.context, TOPIC, batching_max_messages=0)
        with pytest.raises(InvalidTopicNameError):
            await create_producer(client.context, "a/b")
    assert broker.received == []
    with pytest.raises(AlreadyClosedError):
        await create_producer(client.context, TOPIC)


@simulated
async def test_one_partition_is_a_topic_of_its_own(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await client.create_producer(f"{TOPIC}-partition-2")
        assert producer.partitions_count() == 0
        assert "PARTITIONED_METADATA" not in broker.types()
