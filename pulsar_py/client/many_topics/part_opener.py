"""Opens the parts of a consumer of several topics: one `Consumer` a topic or partition (edge).

A part has the configuration of the whole consumer, its name, a share of its queue, and dead letters
and retry letters where they are configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.consuming.dead_letter import (
    DEFAULT_MAX_RECONSUME_TIMES,
    ConsumerDeadLetterPolicy,
)
from pulsar_py.client.consuming.dead_letter_sender import (
    DeadLetterNames,
    DeadLetterProducers,
    DeadLetterSender,
)
from pulsar_py.client.many_topics.topic_lists import receiver_queue_size_per_topic
from pulsar_py.client.many_topics.topic_parts import PartRequest
from pulsar_py.client.producing.create_producer import create_producer
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId

if TYPE_CHECKING:
    from pulsar_py.schema.encoded_schema import EncodedSchema

__all__ = ["PartOpener", "attach_dead_letter_sender", "policy_of"]


def policy_of(
    config: ConsumerConfig, topic: str, subscription: str
) -> ConsumerDeadLetterPolicy | None:
    """The dead-letter policy of a consumer, its topics named after `topic`; None without one.

    With `retry_enable` all topics of a consumer share the retry and dead-letter topics, which are
    named after the first one.
    """
    policy: ConsumerDeadLetterPolicy | None = config.dead_letter_policy
    if not config.retry_enable:
        return policy
    return (policy or ConsumerDeadLetterPolicy(DEFAULT_MAX_RECONSUME_TIMES)).with_names(
        topic, subscription
    )


def attach_dead_letter_sender(
    consumer: Consumer,
    context: ClientContext,
    config: ConsumerConfig,
    policy: ConsumerDeadLetterPolicy,
) -> None:
    """Make the sender of dead letters for a consumer that was just opened."""
    names = DeadLetterNames(
        consumer.topic(), consumer.subscription_name(), consumer.consumer_name()
    )
    producers = DeadLetterProducers(
        partial(create_producer, context),
        names,
        context,
        initial_subscription_name=policy.initial_subscription_name,
        options={"schema": _dead_letter_schema(config)},
    )
    dead_letters = DeadLetterSender(
        consumer,
        policy,
        names=names,
        context=context,
        producers=producers,
        is_retry_enabled=config.retry_enable,
    )
    if config.is_shared:
        consumer.redelivery_filter = dead_letters.take_over
    consumer.own(dead_letters)


def _dead_letter_schema(config: ConsumerConfig) -> EncodedSchema | None:
    if config.schema is None:
        return None
    from pulsar_py.client.consuming.dead_letter_schema import (  # noqa: PLC0415 - at first use
        dead_letter_schema_of,
    )

    return dead_letter_schema_of(config.schema)


class PartOpener:
    """Opens the parts of one consumer of many topics."""

    def __init__(
        self,
        context: ClientContext,
        subscription_name: str,
        config: ConsumerConfig,
        *,
        policy: ConsumerDeadLetterPolicy | None,
        start_message_id: MessageId | Mapping[str, MessageId] | None = None,
    ) -> None:
        """Keep what all parts share; `config` has a consumer name."""
        self._context = context
        self._subscription_name = subscription_name
        self._config = replace(config, message_listener=None)
        self._policy = policy
        self._start_message_id = start_message_id

    async def open(self, request: PartRequest) -> Consumer:
        """Subscribe to one topic or partition."""
        config = self._config_of(request)
        consumer = await Consumer.open(
            self._context,
            request.topic,
            self._subscription_name,
            config,
            start_message_id=None if config.is_durable else self._start_of(request),
        )
        if self._policy is not None:
            attach_dead_letter_sender(consumer, self._context, config, self._policy)
        return consumer

    def _start_of(self, request: PartRequest) -> MessageId | None:
        start = self._start_message_id
        if request.is_late:
            return EARLIEST_MESSAGE_ID
        if isinstance(start, Mapping):
            return start.get(request.topic, EARLIEST_MESSAGE_ID)
        return start

    def _config_of(self, request: PartRequest) -> ConsumerConfig:
        """The options of a part. A topic found later starts at its beginning: all of it is new."""
        config = replace(
            self._config,
            receiver_queue_size=receiver_queue_size_per_topic(
                self._config.receiver_queue_size,
                self._config.max_total_receiver_queue_size_across_partitions,
                request.parts_count,
            ),
        )
        if not request.is_late:
            return config
        return replace(config, initial_position=InitialPosition.Earliest)
