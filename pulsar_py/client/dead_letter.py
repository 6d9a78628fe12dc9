"""Dead letters and retry letters: which message goes where, and with what properties (pure).

A message that was redelivered `max_redeliver_count` times is delivered once more; asked for again
it goes to the dead-letter topic instead. With retry letters a consumer hands messages back by
`reconsume_later`: they are published to the retry topic, which the consumer reads as well, and
counted in a property; beyond the limit they too become dead letters. Nothing is acknowledged
before its copy is stored. What publishes stands in `letters`.

Always holds: a candidate is kept from its delivery until it is acknowledged or safely moved.

Source: DeadLetterPolicy, RetryMessageUtil and ConsumerImpl in Pulsar's Java client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Generic, TypeVar

from pulsar_py.client.message import EntryKey
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName

__all__ = [
    "ConsumerDeadLetterPolicy",
    "DeadLetterCandidates",
    "DeadLetterPolicy",
    "Disposition",
    "LetterPlan",
    "dead_letter_properties",
    "dead_letter_topic_of",
    "plan_reconsume",
    "retry_letter_topic_of",
]

PROPERTY_REAL_TOPIC: Final = "REAL_TOPIC"
PROPERTY_REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
PROPERTY_ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
PROPERTY_OLD_ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_IDY_TIME"
"""What old Java clients call the origin; still written for them."""
PROPERTY_RECONSUME_TIMES: Final = "RECONSUMETIMES"
PROPERTY_DELAY_TIME: Final = "DELAY_TIME"

RETRY_SUFFIX: Final = "-RETRY"
DEAD_LETTER_SUFFIX: Final = "-DLQ"
DEFAULT_MAX_RECONSUME_TIMES: Final = 16
"""`max_redeliver_count` where retry is enabled without a policy."""

T = TypeVar("T")


def retry_letter_topic_of(topic: str, subscription_name: str) -> str:
    """`<topic>-<subscription>-RETRY`, full name, of a partition's whole topic."""
    return f"{TopicName.parse(topic).base}-{subscription_name}{RETRY_SUFFIX}"


def dead_letter_topic_of(topic: str, subscription_name: str) -> str:
    """`<topic>-<subscription>-DLQ`, full name, of a partition's whole topic."""
    return f"{TopicName.parse(topic).base}-{subscription_name}{DEAD_LETTER_SUFFIX}"


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """When a subscription gives a message up, and where it goes then.

    The official Python client calls it `ConsumerDeadLetterPolicy`; so may you.
    """

    max_redeliver_count: int
    """Redeliveries after which a message is given up; at least 1."""
    dead_letter_topic: str | None = None
    """None: `<topic>-<subscription>-DLQ`."""
    initial_subscription_name: str | None = None
    """A subscription to create with the dead-letter topic, so that nothing there is lost."""
    retry_letter_topic: str | None = None
    """None: `<topic>-<subscription>-RETRY`. Used with `retry_enable` only."""

    def __post_init__(self) -> None:
        """Check the bound.

        Raises:
            InvalidConfigurationError: `max_redeliver_count` is less than 1.
        """
        if self.max_redeliver_count < 1:
            raise InvalidConfigurationError(
                f"max_redeliver_count is {self.max_redeliver_count}, expected at least 1"
            )

    def with_names(self, topic: str, subscription_name: str) -> DeadLetterPolicy:
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


ConsumerDeadLetterPolicy = DeadLetterPolicy


def dead_letter_properties(
    properties: Mapping[str, str], *, topic: str, subscription_name: str, message_id: MessageId
) -> dict[str, str]:
    """The properties of a message's copy: its own, and where it came from at first.

    Args:
        properties: The message's own; what a former move wrote there stays.
        topic: Where it was received; a partition counts as its whole topic.
        subscription_name: The subscription that gave it up.
        message_id: Its id there.
    """
    copied = dict(properties)
    copied.setdefault(PROPERTY_REAL_TOPIC, str(TopicName.parse(topic).base))
    copied.setdefault(PROPERTY_REAL_SUBSCRIPTION, subscription_name)
    copied.setdefault(PROPERTY_ORIGIN_MESSAGE_ID, str(message_id))
    copied.setdefault(PROPERTY_OLD_ORIGIN_MESSAGE_ID, str(message_id))
    return copied


@dataclass(frozen=True, slots=True)
class LetterPlan:
    """Where the copy of a message goes that is to be consumed later."""

    topic: str
    properties: Mapping[str, str]
    is_dead: bool
    """Whether it was given up: `topic` is the dead-letter topic then."""
    delay_millis: int
    """How long the broker holds it back; 0 for dead letters."""


def plan_reconsume(
    policy: DeadLetterPolicy,
    properties: Mapping[str, str],
    *,
    delay_millis: int = 0,
    custom_properties: Mapping[str, str] | None = None,
) -> LetterPlan:
    """Where a message goes that its consumer wants to see again.

    Args:
        policy: One `with_names`.
        properties: What `dead_letter_properties` gave.
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
        return LetterPlan(policy.dead_letter_topic, planned, is_dead=True, delay_millis=0)
    return LetterPlan(policy.retry_letter_topic, planned, is_dead=False, delay_millis=delay_millis)


def _reconsume_times(properties: Mapping[str, str]) -> int:
    try:
        return int(properties.get(PROPERTY_RECONSUME_TIMES, "0"))
    except ValueError:
        return 0  # an application's own property of that name


class Disposition(Enum):
    """What becomes of a message that has come in."""

    DELIVER = 1
    MOVE = 2
    """It was given up: publish it to the dead-letter topic, then acknowledge it."""
    DROP = 3
    """It is on its way to the dead-letter topic already."""


class DeadLetterCandidates(Generic[T]):
    """The messages of one consumer that are given up when they are asked for again.

    `T` is whatever stands for a message. Kept by entry and batch index, because the broker
    redelivers whole entries. Bounded by what the application holds without acknowledging.
    """

    def __init__(self, max_redeliver_count: int) -> None:
        self._max_redeliver_count = max_redeliver_count
        # Delivered for the last time and not acknowledged yet.
        self._candidates: dict[EntryKey, dict[int, T]] = {}
        # Being published to the dead-letter topic. Invariant: never in `_candidates` too.
        self._moving: dict[EntryKey, set[int]] = {}

    def on_received(self, message_id: MessageId, redelivery_count: int, message: T) -> Disposition:
        """What becomes of a message with that count; remembers what is to be delivered last."""
        if redelivery_count < self._max_redeliver_count:
            return Disposition.DELIVER
        key, index = _key(message_id), message_id.batch_index
        if index in self._moving.get(key, ()):
            return Disposition.DROP
        if redelivery_count > self._max_redeliver_count:
            self._forget(key, index)
            self._moving.setdefault(key, set()).add(index)
            return Disposition.MOVE
        self._candidates.setdefault(key, {})[index] = message
        return Disposition.DELIVER

    def take(self, message_ids: Iterable[MessageId]) -> list[T]:
        """The candidates among these and the others of their entries: all have to be moved now.

        They count as moving until `on_moved` or `on_not_moved`.
        """
        taken: list[T] = []
        for message_id in message_ids:
            key = _key(message_id)
            messages = self._candidates.pop(key, None)
            if messages:
                self._moving.setdefault(key, set()).update(messages)
                taken.extend(messages.values())
        return taken

    def is_moving(self, message_id: MessageId) -> bool:
        """Whether any message of this one's entry is on its way to the dead-letter topic."""
        return _key(message_id) in self._moving

    def on_moved(self, message_id: MessageId) -> None:
        """Its copy is stored, or could not be: what the broker redelivers is tried again."""
        key = _key(message_id)
        indexes = self._moving[key]
        indexes.remove(message_id.batch_index)
        if not indexes:
            del self._moving[key]

    def on_acknowledged(self, message_id: MessageId) -> None:
        """It was consumed at last; an id without batch index stands for the whole entry."""
        if not self._candidates:
            return
        if message_id.batch_index < 0:
            self._candidates.pop(_key(message_id), None)
        else:
            self._forget(_key(message_id), message_id.batch_index)

    def on_acknowledged_cumulative(self, message_id: MessageId) -> None:
        """All up to this one were consumed."""
        upper = _key(message_id)
        for key in [each for each in self._candidates if each <= upper]:
            if key < upper or message_id.batch_index < 0:
                del self._candidates[key]
                continue
            for index in [i for i in self._candidates[key] if i <= message_id.batch_index]:
                self._forget(key, index)

    def clear(self) -> None:
        """Forget the candidates: all will come again (reconnected, sought). Moves go on."""
        self._candidates.clear()

    def __len__(self) -> int:
        return sum(len(each) for each in self._candidates.values())

    def _forget(self, key: EntryKey, index: int) -> None:
        messages = self._candidates.get(key)
        if messages is None:
            return
        messages.pop(index, None)
        if not messages:
            del self._candidates[key]


def _key(message_id: MessageId) -> EntryKey:
    return (message_id.ledger_id, message_id.entry_id)
