"""Which of the messages in hand a listener may be called with now (pure).

Messages of one lane run one after the other, in the order in which they came; lanes run beside each
other, and messages without a lane beside everything. The number in hand, running or waiting, is
bounded, because each has left the consumer's queue and may have an acknowledgement timer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from pulsar_py.client.enums import ConsumerType
from pulsar_py.client.message import Message

__all__ = ["ListenerLanes", "lane_of"]

T = TypeVar("T")
Lane = Hashable | None


def lane_of(message: Message, consumer_type: ConsumerType) -> Lane:
    """What a message shares with those it must not overtake; None if it may run beside all.

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


class ListenerLanes(Generic[T]):
    """Messages in hand. Invariant: a lane is in `_waiting` exactly while one of its runs."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._running_count = 0
        self._waiting_count = 0
        # Messages that may run, with their lanes.
        self._runnable: deque[tuple[Lane, T]] = deque()
        # Of each lane that runs, or is runnable: what has to wait for it.
        self._waiting: dict[Lane, deque[T]] = {}

    @property
    def has_room(self) -> bool:
        """Whether another message may be taken in hand."""
        return self._running_count + self._waiting_count < 2 * self._concurrency

    @property
    def in_hand_count(self) -> int:
        """Messages that run or wait."""
        return self._running_count + self._waiting_count

    def offer(self, lane: Lane, message: T) -> None:
        """Take a message in hand."""
        self._waiting_count += 1
        if lane is None:
            self._runnable.append((None, message))
        elif lane in self._waiting:
            self._waiting[lane].append(message)
        else:
            self._waiting[lane] = deque()
            self._runnable.append((lane, message))

    def take(self) -> tuple[Lane, T] | None:
        """What to run now, with its lane; None if nothing may. Call `done` with the lane after."""
        if self._running_count >= self._concurrency or not self._runnable:
            return None
        self._running_count += 1
        self._waiting_count -= 1
        return self._runnable.popleft()

    def done(self, lane: Lane) -> None:
        """A message of that lane has run."""
        assert self._running_count > 0, "nothing runs"
        self._running_count -= 1
        if lane is None:
            return
        waiting = self._waiting[lane]
        if waiting:
            self._runnable.append((lane, waiting.popleft()))
        else:
            del self._waiting[lane]
