"""Implements `Client.subscribe`: opens the consumer that a topic, list or pattern needs (edge).

A topic without partitions, or one partition, gets a `Consumer`. A partitioned topic, a list, and a
topic with a retry letter topic get a `MultiTopicsConsumer`; a pattern gets a `PatternConsumer`. All
have the same public interface.

Source: PulsarClientImpl.subscribeAsync in Pulsar's Java client.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.message_listener import ListenerRunner, listener_concurrency
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.many_topics.part_opener import attach_dead_letter_sender, policy_of
from pulsar_py.client.many_topics.pattern_consumer import PatternConsumer
from pulsar_py.client.many_topics.topic_lists import TopicPattern
from pulsar_py.client.messages.option_checks import own_members
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.client.shared.type_variables import T_co
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.names import TopicName

__all__ = ["AnyConsumer", "subscribe"]

AnyConsumer: TypeAlias = Consumer[T_co] | MultiTopicsConsumer[T_co]
"""The type of consumers that `Client.subscribe` returns; `AnyConsumer[Order]` those of orders."""


async def subscribe(
    context: ClientContext,
    topic: str | Sequence[str] | re.Pattern[str],
    subscription_name: str,
    **options: Any,  # Any: the fields of ConsumerConfig
) -> AnyConsumer:
    """Create a consumer, and open it; see `Client.subscribe`.

    Raises:
        InvalidConfigurationError: An option is out of bounds, or there is no topic.
        InvalidTopicNameError: A topic name is not valid.
        ServiceError, ClientError: It could not be opened within the operation timeout.
    """
    context.check_usable()
    config = ConsumerConfig(**own_members(options, ConsumerConfig))
    _check_key_shared(config)
    if not subscription_name:
        raise InvalidConfigurationError(
            f"subscription_name: expected a name, got {subscription_name!r}"
        )
    if isinstance(topic, re.Pattern):
        return await _subscribe_pattern(context, topic, subscription_name, config)
    names = _names([topic] if isinstance(topic, str) else topic)
    if isinstance(topic, str) and not config.retry_enable:
        is_partition = TopicName.parse(names[0]).is_partition
        if is_partition or await context.partitions_count(names[0]) == 0:
            return await _subscribe_one(context, names[0], subscription_name, config)
    policy = policy_of(config, names[0], subscription_name)
    if config.retry_enable and policy is not None and policy.retry_letter_topic is not None:
        names.append(policy.retry_letter_topic)
    consumer = MultiTopicsConsumer(context, names, subscription_name, config, policy=policy)
    await consumer.start()
    return consumer


def _check_key_shared(config: ConsumerConfig) -> None:
    """Check that a Key_Shared policy comes with the KeyShared type.

    ConsumerConfig can't check it: a reader of key ranges is Exclusive, and has a policy.
    """
    if config.key_shared_policy is not None and config.consumer_type is not ConsumerType.KeyShared:
        raise InvalidConfigurationError(
            f"key_shared_policy needs consumer_type KeyShared, not {config.consumer_type.name}"
        )


def _names(topics: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(str(TopicName.parse(topic)) for topic in topics))
    if not names:
        raise InvalidConfigurationError("topic: the list is empty, expected at least one name")
    return names


async def _subscribe_pattern(
    context: ClientContext, pattern: re.Pattern[str], subscription_name: str, config: ConsumerConfig
) -> PatternConsumer:
    if config.retry_enable:
        raise InvalidConfigurationError(
            f"retry_enable: a pattern ({pattern.pattern}) has no retry letter topic, "
            "list the topics instead"
        )
    consumer = PatternConsumer(
        context,
        TopicPattern(pattern, config.regex_subscription_mode, compiler=context.pattern_compiler),
        subscription_name,
        config,
        policy=config.dead_letter_policy,
    )
    await consumer.start()
    return consumer


async def _subscribe_one(
    context: ClientContext, topic: str, subscription_name: str, config: ConsumerConfig
) -> Consumer:
    consumer = await Consumer.open(context, topic, subscription_name, config)
    policy = policy_of(config, topic, subscription_name)
    if policy is not None:
        attach_dead_letter_sender(consumer, context, config, policy)
    if config.message_listener is not None:
        runner = ListenerRunner(
            consumer,
            config.message_listener,
            name=f"{subscription_name} on {topic}",
            consumer_type=config.consumer_type,
            concurrency=listener_concurrency(context, config.listener_concurrency),
        )
        consumer.own(runner)
        runner.start()
    return consumer
