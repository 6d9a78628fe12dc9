"""Builds the SUBSCRIBE command from a consumer's options (pure).

Source: Commands.newSubscribe in Pulsar's common module; CommandSubscribe in PulsarApi.proto.
"""

from __future__ import annotations

from collections.abc import Mapping

from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.position_data import start_data
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import CommandSubscribe, KeyValue, Schema
from pulsar_py.wire import client_commands

__all__ = ["subscribe"]


def subscribe(
    config: ConsumerConfig,
    *,
    topic: str,
    subscription_name: str,
    consumer_name: str,
    consumer_id: int,
    request_id: int,
    consumer_epoch: int,
    start_message_id: MessageId | None,
    schema: Schema | None,
    is_reconnecting: bool = False,
) -> bytes:
    """The SUBSCRIBE command; fields for non-durable or new subscriptions are left out of others."""
    command = CommandSubscribe(
        topic=topic,
        subscription=subscription_name,
        subType=int(config.consumer_type),  # type: ignore[arg-type] # the numbers are the same
        consumer_id=consumer_id,
        request_id=request_id,
        consumer_name=consumer_name,
        priority_level=config.priority_level,
        durable=config.is_durable,
        read_compacted=config.is_read_compacted,
        initialPosition=int(config.initial_position),  # type: ignore[arg-type] # the same
        replicate_subscription_state=config.replicate_subscription_state_enabled or None,
        force_topic_creation=config.force_topic_creation,
        consumer_epoch=consumer_epoch,
        metadata=_pairs(config.properties),
        subscription_properties=_pairs(config.subscription_properties),
        schema=schema,
    )
    if start_message_id is not None and not config.is_durable:
        command.start_message_id.CopyFrom(start_data(start_message_id))
    if config.start_message_rollback_duration_seconds and not is_reconnecting:
        command.start_message_rollback_duration_sec = config.start_message_rollback_duration_seconds
    if config.key_shared_policy is not None:
        command.keySharedMeta.CopyFrom(config.key_shared_policy.to_meta())
    elif config.consumer_type is ConsumerType.KeyShared:
        command.keySharedMeta.SetInParent()
        command.keySharedMeta.keySharedMode = 0  # type: ignore[assignment] # AUTO_SPLIT
    return client_commands.subscribe(command)


def _pairs(values: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in values.items()]
