"""Decides which messages a listener may be called with now, by their order keys (pure).

Calls for messages of one order key run one after the other, in the order of the messages; calls for
different keys, and for messages without a key, run at the same time. The number of messages that
run or wait here is bounded, because each has left the receiver queue and may have an
acknowledgement timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType

__all__ = ["ListenerOrder", "order_key_of"]

T = TypeVar("T")
OrderKey = Hashable | None


def order_key_of(message: Message, consumer_type: ConsumerType) -> OrderKey:
    """The order key: messages that share it run one after the other; None for no order.

    Shared promises no order, Key_Shared the order of each key. On Exclusive and Failover messages
    without a key keep the order of their topic, those with one that of the key.
    """
    if consumer_type is ConsumerType.Shared:
        return None
    if message.has_ordering_key():
        return (message.topic_name(), message.ordering_key_bytes())
    key = message.key_bytes()
    if key is not None:
        return (message.topic_name(), key)
    return None if consumer_type is ConsumerType.KeyShared else message.topic_name()


class ListenerOrder(Generic[T]):
    """The messages that a listener was, or will be, called with.

    Invariant: a key is in `_waiting` exactly while one of its messages is runnable or runs.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._running_count = 0
        self._waiting_count = 0
        # Messages that may run, with their order keys.
        self._runnable: deque[tuple[OrderKey, T]] = deque()
        # Order key that runs or is runnable -> the messages that wait for it.
        self._waiting: dict[OrderKey, deque[T]] = {}

    @property
    def has_room(self) -> bool:
        """Whether another message may be taken in hand."""
        return self._running_count + self._waiting_count < 2 * self._concurrency

    @property
    def in_hand_count(self) -> int:
        """Messages that run or wait."""
        return self._running_count + self._waiting_count

    def offer(self, order_key: OrderKey, message: T) -> None:
        """Take a message in hand."""
        self._waiting_count += 1
        if order_key is None:
            self._runnable.append((None, message))
        elif order_key in self._waiting:
            self._waiting[order_key].append(message)
        else:
            self._waiting[order_key] = deque()
            self._runnable.append((order_key, message))

    def take(self) -> tuple[OrderKey, T] | None:
        """The next message to run, with its order key for `done`; None if none may run."""
        if self._running_count >= self._concurrency or not self._runnable:
            return None
        self._running_count += 1
        self._waiting_count -= 1
        return self._runnable.popleft()

    def done(self, order_key: OrderKey) -> None:
        """A message of that order key has run."""
        assert self._running_count > 0, "nothing runs"
        self._running_count -= 1
        if order_key is None:
            return
        waiting = self._waiting[order_key]
        if waiting:
            self._runnable.append((order_key, waiting.popleft()))
        else:
            del self._waiting[order_key]
