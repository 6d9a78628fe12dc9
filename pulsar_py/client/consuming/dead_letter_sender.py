"""Sends dead letters and retry letters (edge).

Each consumer of one topic that has a dead-letter policy has one `DeadLetterSender`. It decides by
`dead_letter`, makes its producers when they are first needed, and acknowledges a message only when
its copy is stored. A message whose copy can't be published stays unacknowledged: it is requested
again from the broker after a growing delay, and published then. Copies carry the payload as it is,
the key, ordering key, event time and properties.

Source: ConsumerImpl.processPossibleToDLQ and doReconsumeLater in Pulsar's Java client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from pulsar_py.client.brokers.client_context import ClientContext
from pulsar_py.client.consuming.dead_letter import (
    ConsumerDeadLetterPolicy,
    CopyPlan,
    MoveOutcome,
    MoveQueue,
    dead_letter_properties,
    plan_reconsume,
)
from pulsar_py.client.messages.message import EntryKey, Message
from pulsar_py.common.backoff import Backoff
from pulsar_py.common.errors import AlreadyClosedError, OperationNotSupportedError, PulsarError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId

__all__ = [
    "DeadLetterNames",
    "DeadLetterProducer",
    "DeadLetterProducers",
    "DeadLetterSender",
    "DeadLetterSource",
    "MakeProducer",
]

logger = logging.getLogger(__name__)

MAX_MOVING: Final = 1000
"""Messages that may be in the course of moving; others are asked for again later."""
MOVES_AT_ONCE: Final = 100
_SUFFIX_LENGTH: Final = 5
_SUFFIX_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class DeadLetterProducer(Protocol):
    """The calls that a DeadLetterSender makes to its producers."""

    async def send(
        self,
        content: Any,  # Any: as Producer.send
        *,
        properties: Mapping[str, str] | None = None,
        partition_key: str | bytes | None = None,
        ordering_key: str | bytes | None = None,
        event_timestamp: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> MessageId:
        """Publish; returns when it is stored."""

    async def close(self) -> None:
        """Close it."""

    def abandon(self) -> None:
        """End it, without waiting."""


MakeProducer = Callable[..., Awaitable[DeadLetterProducer]]
"""`Client.create_producer`, or a function like it: takes a topic and options."""


class DeadLetterSource(Protocol):
    """The calls that a DeadLetterSender makes to its consumer."""

    async def acknowledge(self, message: Message | MessageId) -> None:
        """Acknowledge what was moved."""

    def redeliver(self, entries: Sequence[EntryKey]) -> None:
        """Ask the broker for them again."""


@dataclass(frozen=True, slots=True)
class DeadLetterNames:
    """Topic, subscription and name of a consumer, for its producers' names and for properties."""

    topic: str
    """Full name of the topic or partition."""
    subscription_name: str
    consumer_name: str


class DeadLetterProducers:
    """The producers of one consumer's dead and retry letters, each made when first needed."""

    def __init__(
        self,
        make_producer: MakeProducer,
        names: DeadLetterNames,
        context: ClientContext,
        *,
        initial_subscription_name: str | None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`options` go to each producer, such as its schema."""
        self._make_producer = make_producer
        self._names = names
        self._context = context
        self._initial_subscription_name = initial_subscription_name
        self._options = dict(options or {})
        self._producers: dict[str, DeadLetterProducer] = {}
        self._making = asyncio.Lock()

    async def send(self, message: Message, plan: CopyPlan) -> None:
        """Publish a message's copy; returns when it is stored.

        Raises:
            PulsarError: No producer could be made, or it could not publish.
        """
        producer = await self._producer(plan)
        try:
            content = None if message.has_null_value() else message.data()
            await producer.send(content, **copy_options(message, plan))
        except AlreadyClosedError:  # it failed for good: the next message makes another
            if self._producers.get(plan.topic) is producer:
                del self._producers[plan.topic]
            raise

    async def _producer(self, plan: CopyPlan) -> DeadLetterProducer:
        async with self._making:
            producer = self._producers.get(plan.topic)
            if producer is None:
                producer = await self._make_producer(plan.topic, **self._options_of(plan))
                self._producers[plan.topic] = producer
            return producer

    def _options_of(self, plan: CopyPlan) -> dict[str, Any]:
        # Chunks, because the message may have come in chunks: its copy is as large.
        options = {**self._options, "batching_enabled": False, "chunking_enabled": True}
        if plan.is_dead:
            options["producer_name"] = self._producer_name()
            if self._initial_subscription_name is not None:
                options["initial_subscription_name"] = self._initial_subscription_name
        return options

    def _producer_name(self) -> str:
        """A name with a random part: consumers of a subscription may have the same name."""
        suffix = "".join(self._context.random.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
        names = self._names
        return f"{names.topic}-{names.subscription_name}-{names.consumer_name}-{suffix}-DLQ"

    async def close(self) -> None:
        """Close all that were made."""
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            await producer.close()

    def abandon(self) -> None:
        """End all that were made, without waiting."""
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            producer.abandon()


def copy_options(message: Message, plan: CopyPlan) -> dict[str, Any]:
    """The arguments of `send` for the copy of a message: its key, times and properties."""
    options: dict[str, Any] = {"properties": dict(plan.properties)}
    if message.has_key():
        encoded = message.has_base64_encoded_key()
        options["partition_key"] = message.key_bytes() if encoded else message.partition_key()
    if message.has_ordering_key():
        options["ordering_key"] = message.ordering_key_bytes()
    if message.event_timestamp():
        options["event_timestamp"] = message.event_timestamp()
    if plan.delay_millis > 0:
        options["deliver_after"] = timedelta(milliseconds=plan.delay_millis)
    return options


class DeadLetterSender:
    """The dead letters and retry letters of one consumer of one topic."""

    def __init__(
        self,
        source: DeadLetterSource,
        policy: ConsumerDeadLetterPolicy,
        *,
        names: DeadLetterNames,
        context: ClientContext,
        producers: DeadLetterProducers,
        is_retry_enabled: bool,
    ) -> None:
        self._source = source
        self._policy = policy.with_names(names.topic, names.subscription_name)
        self._names = names
        self._clock = context.clock
        self._producers = producers
        self._is_retry_enabled = is_retry_enabled
        self._tasks = TaskOwner(f"dead letters of {names.subscription_name} on {names.topic}")
        self._queue: MoveQueue[Message] = MoveQueue(MAX_MOVING)
        self._is_moving = False
        self._is_closed = False
        # Entries to ask for again when the timer `_returns` ends; bounded by the broker's limit of
        # unacknowledged messages. None: no timer runs.
        self._returned: set[EntryKey] = set()
        self._returns: asyncio.TimerHandle | None = None
        self._backoff = Backoff(context.random, initial_seconds=1.0)

    def take_over(self, message: Message) -> bool:
        """Whether the message is to become a dead letter; if so it is moved from now on.

        It is the consumer's `redelivery_filter`, called with each message before it is handed out.
        """
        if message.redelivery_count() <= self._policy.max_redeliver_count or self._is_closed:
            return False
        if self._queue.offer(message.message_id(), message) is MoveOutcome.FULL:
            self._return(message)
        elif not self._is_moving:
            self._is_moving = True
            self._tasks.spawn(self._move_all(), "move")
        return True

    async def _move_all(self) -> None:
        try:
            while messages := self._queue.take(MOVES_AT_ONCE):
                async with asyncio.TaskGroup() as group:
                    for message in messages:
                        group.create_task(self._move(message))
        finally:
            self._is_moving = False

    async def _move(self, message: Message) -> None:
        """Publish the copy, then acknowledge; on an error the message is asked for again later."""
        try:
            await self._producers.send(message, self._dead_letter_plan(message))
            await self._source.acknowledge(message)
            self._backoff.reset()
        except Exception:  # whatever it is: the message must come back, and others go on
            logger.warning(
                "%s: dead letter %s not moved, it is tried again later",
                self._names.topic,
                message.message_id(),
                extra={"topic": self._names.topic, "message_id": str(message.message_id())},
                exc_info=True,
            )
            self._return(message)
        finally:
            self._queue.on_done(message.message_id())

    def _dead_letter_plan(self, message: Message) -> CopyPlan:
        assert self._policy.dead_letter_topic is not None, "the policy has names"
        properties = self._properties(message)
        return CopyPlan(self._policy.dead_letter_topic, properties, is_dead=True, delay_millis=0)

    def _properties(self, message: Message) -> dict[str, str]:
        return dead_letter_properties(
            message.properties(),
            topic=self._names.topic,
            subscription_name=self._names.subscription_name,
            message_id=message.message_id(),
        )

    def _return(self, message: Message) -> None:
        """Ask the broker for it again after a delay."""
        self._returned.update(message.entry.chunk_ids or (message.entry.key,))
        if self._returns is None and not self._is_closed:
            delay_seconds = self._backoff.next_delay(self._clock.monotonic_seconds())
            self._returns = self._clock.call_later(delay_seconds, self._ask_again)

    def _ask_again(self) -> None:
        self._returns = None
        entries, self._returned = sorted(self._returned), set()
        self._source.redeliver(entries)

    async def reconsume_later(
        self,
        message: Message,
        delay_millis: int,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Publish a copy to the retry topic (or dead-letter topic beyond the limit), then ack it.

        Raises:
            OperationNotSupportedError: The consumer has no `retry_enable`.
            PulsarError: It could not be published; the message stays unacknowledged.
        """
        if not self._is_retry_enabled:
            raise OperationNotSupportedError(
                f"subscription {self._names.subscription_name} on {self._names.topic}: "
                f"reconsume_later needs retry_enable"
            )
        plan = plan_reconsume(
            self._policy,
            self._properties(message),
            delay_millis=delay_millis,
            custom_properties=properties,
        )
        try:
            await self._producers.send(message, plan)
        except PulsarError:
            self._return(message)
            raise
        await self._source.acknowledge(message)

    async def close(self) -> None:
        """Stop moving, and close the producers. May be called again.

        Messages that are not acknowledged go to the subscription's other consumers.
        """
        self._stop_returns()
        await self._tasks.close()
        await self._producers.close()

    def abandon(self) -> None:
        """As `close`, without waiting."""
        self._stop_returns()
        self._tasks.abandon()
        self._producers.abandon()

    def _stop_returns(self) -> None:
        self._is_closed = True
        if self._returns is not None:
            self._returns.cancel()
            self._returns = None
