"""Implements `Client.create_producer`: opens the producer that a topic needs (edge).

Source: PulsarClientImpl.createProducerAsync in Pulsar's client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_py.client.producing.partitioned_producer import open_partitioned
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.producer_schema import ProducerSchema, topic_schema
from pulsar_py.client.producing.topic_producer import open_single
from pulsar_py.common.names import TopicName

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_context import ClientContext
    from pulsar_py.client.producing.producer import Producer

__all__ = ["create_producer"]


async def create_producer(context: ClientContext, topic: str, **options: Any) -> Producer:
    """Create a producer; `options` are the fields of `ProducerConfig`.

    Raises:
        InvalidConfigurationError, InvalidTopicNameError: An argument is not valid; brokers were not
            asked for anything.
        ServiceError: The broker refused.
        ClientError: No connection within the operation timeout.
    """
    context.check_usable()
    config = ProducerConfig.of(options)
    name = TopicName.parse(topic)
    values = ProducerSchema(context, name, await topic_schema(context, name, config.schema))
    count = 0 if name.is_partition else await context.partitions_count(str(name))
    if count:
        return await open_partitioned(context, name, config, values, count)
    return await open_single(context, name, config, values)
