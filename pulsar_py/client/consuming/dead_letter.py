"""Decides which messages become dead letters or retry letters, and builds their properties (pure).

A message that comes with a redelivery count above `max_redeliver_count` goes to the dead letter
topic instead of the application. With retry letters an application hands messages back by
`reconsume_later`: they are published to the retry topic, which the consumer reads as well, with a
property that counts; beyond the limit they too become dead letters. A message is acknowledged only
when its copy is stored. `dead_letter_sender` publishes.

Source: DeadLetterPolicy, RetryMessageUtil and ConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Generic, TypeVar

from pulsar_py.client.messages.option_checks import check_options
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

__all__ = [
    "ConsumerDeadLetterPolicy",
    "CopyPlan",
    "MoveOutcome",
    "MoveQueue",
    "dead_letter_properties",
    "dead_letter_topic_of",
    "plan_reconsume",
    "retry_letter_topic_of",
]

PROPERTY_REAL_TOPIC: Final = "REAL_TOPIC"
PROPERTY_REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
PROPERTY_ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
PROPERTY_OLD_ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_IDY_TIME"
"""The property by which old Java clients know the origin; still written for them."""
PROPERTY_RECONSUME_TIMES: Final = "RECONSUMETIMES"
PROPERTY_DELAY_TIME: Final = "DELAY_TIME"

RETRY_SUFFIX: Final = "-RETRY"
DEAD_LETTER_SUFFIX: Final = "-DLQ"
DEFAULT_MAX_RECONSUME_TIMES: Final = 16
"""`max_redeliver_count` where retry is enabled without a policy."""

T = TypeVar("T")

MoveKey = tuple[int, int, int]
"""Ledger, entry and batch index."""


def retry_letter_topic_of(topic: str, subscription_name: str) -> str:
    """The full name `<topic>-<subscription>-RETRY`; partitions of a topic share it."""
    return f"{TopicName.parse(topic).base}-{subscription_name}{RETRY_SUFFIX}"


def dead_letter_topic_of(topic: str, subscription_name: str) -> str:
    """The full name `<topic>-<subscription>-DLQ`; partitions of a topic share it."""
    return f"{TopicName.parse(topic).base}-{subscription_name}{DEAD_LETTER_SUFFIX}"


@dataclass(frozen=True, slots=True)
class ConsumerDeadLetterPolicy:
    """After how many redeliveries a message goes to the dead-letter topic, and which that is.

    Source: DeadLetterPolicy in Pulsar's Java client.
    """

    max_redeliver_count: int
    """Redeliveries after which a message becomes a dead letter, and calls of `reconsume_later`,
    each counted for itself; at least 1."""
    dead_letter_topic: str | None = None
    """None: `<topic>-<subscription>-DLQ`."""
    initial_subscription_name: str | None = None
    """A subscription to create with the dead-letter topic, so that it keeps its messages."""
    retry_letter_topic: str | None = None
    """None: `<topic>-<subscription>-RETRY`. Used with `retry_enable` only."""

    def __post_init__(self) -> None:
        """Check types and the bound.

        Raises:
            InvalidConfigurationError: `max_redeliver_count` is less than 1, or a field is of the
                wrong type.
        """
        check_options(self)
        if self.max_redeliver_count < 1:
            raise InvalidConfigurationError(
                f"max_redeliver_count is {self.max_redeliver_count}, expected at least 1"
            )

    def with_names(self, topic: str, subscription_name: str) -> ConsumerDeadLetterPolicy:
        """The policy with both topics named, by default after `topic`."""
        return replace(
            self,
            dead_letter_topic=(
                str(TopicName.parse(self.dead_letter_topic))
                if self.dead_letter_topic
                else dead_letter_topic_of(topic, subscription_name)
            ),
            retry_letter_topic=(
                str(TopicName.parse(self.retry_letter_topic))
                if self.retry_letter_topic
                else retry_letter_topic_of(topic, subscription_name)
            ),
        )


def dead_letter_properties(
    properties: Mapping[str, str], *, topic: str, subscription_name: str, message_id: MessageId
) -> dict[str, str]:
    """The properties of a message's copy: its own, and its original topic and message id.

    Args:
        properties: The message's own; the origin that an earlier copy wrote there stays.
        topic: The topic that it was received from; of a partition, its topic is named.
        subscription_name: The subscription that it was received by.
        message_id: Its id in `topic`.
    """
    copied = dict(properties)
    copied.setdefault(PROPERTY_REAL_TOPIC, str(TopicName.parse(topic).base))
    copied.setdefault(PROPERTY_REAL_SUBSCRIPTION, subscription_name)
    copied.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, str(message_id))
    copied.setdefault(PROPERTY_OLD_ORIGIN_MESSAGE_ID, str(message_id))
    return copied


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """The topic and properties of the copy of a message."""

    topic: str
    properties: Mapping[str, str]
    is_dead: bool
    """Whether it becomes a dead letter: `topic` is the dead-letter topic then."""
    delay_millis: int
    """Delay of its delivery; 0 for dead letters."""


def plan_reconsume(
    policy: ConsumerDeadLetterPolicy,
    properties: Mapping[str, str],
    *,
    delay_millis: int = 0,
    custom_properties: Mapping[str, str] | None = None,
) -> CopyPlan:
    """The copy of a message that the application hands back by `reconsume_later`.

    Args:
        policy: A policy whose topics are named (`with_names`).
        properties: The result of `dead_letter_properties`.
        delay_millis: How long it is to be held back; less than 0 counts as 0.
        custom_properties: The application's own; they win over the message's.
    """
    assert policy.retry_letter_topic is not None, "the policy names no retry-letter topic"
    assert policy.dead_letter_topic is not None, "the policy names no dead-letter topic"
    delay_millis = max(delay_millis, 0)
    planned = {**properties, **(custom_properties or {})}
    times = _reconsume_times(planned) + 1
    planned[PROPERTY_RECONSUME_TIMES] = str(times)
    planned[PROPERTY_DELAY_TIME] = str(delay_millis)
    if times > policy.max_redeliver_count:
        return CopyPlan(policy.dead_letter_topic, planned, is_dead=True, delay_millis=0)
    return CopyPlan(policy.retry_letter_topic, planned, is_dead=False, delay_millis=delay_millis)


def _reconsume_times(properties: Mapping[str, str]) -> int:
    try:
        return int(properties.get(PROPERTY_RECONSUME_TIMES, "0"))
    except ValueError:
        return 0  # an application's own property of that name


class MoveOutcome(Enum):
    """The result of moving a message."""

    TAKEN = 1
    DUPLICATE = 2
    """It is being moved already; this is another delivery of it."""
    FULL = 3
    """Too many messages are being moved: ask the broker for this one again later."""


class MoveQueue(Generic[T]):
    """The messages of one consumer that are being moved to the dead-letter topic, oldest first.

    `T` is the type of messages. A message's id is remembered from `offer` until `on_done`, so that
    another delivery of it is not moved twice.
    Invariant: at most `limit_count` ids are remembered, among them those of all that wait.
    """

    def __init__(self, limit_count: int) -> None:
        self._limit_count = limit_count
        # Every message on its way: those that wait, and those that are being published.
        self._known: set[MoveKey] = set()
        self._waiting: deque[T] = deque()

    def offer(self, message_id: MessageId, message: T) -> MoveOutcome:
        """Put a message at the end."""
        key = _key(message_id)
        if key in self._known:
            return MoveOutcome.DUPLICATE
        if len(self._known) >= self._limit_count:
            return MoveOutcome.FULL
        self._known.add(key)
        self._waiting.append(message)
        return MoveOutcome.TAKEN

    def take(self, count: int) -> list[T]:
        """Up to `count` messages to publish now."""
        waiting = self._waiting
        return [waiting.popleft() for _ in range(min(count, len(waiting)))]

    def on_done(self, message_id: MessageId) -> None:
        """Forget a message that was moved, or could not be: its next delivery is moved again."""
        self._known.remove(_key(message_id))

    def __contains__(self, message_id: MessageId) -> bool:
        return _key(message_id) in self._known

    def __len__(self) -> int:
        """The number of messages that are being moved."""
        return len(self._known)


def _key(message_id: MessageId) -> MoveKey:
    return (message_id.ledger_id, message_id.entry_id, message_id.batch_index)
