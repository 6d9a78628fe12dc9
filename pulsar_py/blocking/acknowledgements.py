"""`Acknowledgements`: takes acknowledgements of a consumer's threads to the loop in groups (edge).

An acknowledgement costs an append to `messages`, and `wake` if nothing `is_due`: the first one
wakes the loop, and the next one after 20 ms, so that acknowledging as fast as can be is no wake-up
each. That one is behind a message that was received, when less is under way than when a timer ends;
if there is none, a timer takes what waits. Whoever hands something else over calls `take` in the
loop before, so that nothing overtakes an acknowledgement.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pulsar_py.blocking.client_thread import ClientThread
from pulsar_py.client.messages.message import Message

if TYPE_CHECKING:
    from pulsar_py.client.consuming.consumer import Consumer
    from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer

__all__ = ["Acknowledgements"]

_INTERVAL_SECONDS: Final = 0.02
_LONGER_SECONDS: Final = 0.003
"""How much longer they wait for the next one to take them along."""
_MANY_COUNT: Final = 64
"""So many are handed over before their time, when the loop is at work for the consumer anyway."""


class Acknowledgements:
    """Acknowledged messages of one consumer that the loop does not know yet."""

    def __init__(self, thread: ClientThread, consumer: Consumer | MultiTopicsConsumer) -> None:
        self._thread = thread
        self._consumer = consumer
        # One list for good, to which threads of the application append.
        self.messages: Final[list[Message]] = []
        # Whether the next one need not wake the loop.
        self.is_due = False
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Have the loop look at `messages`; called by a thread that has appended one."""
        self.is_due = True
        self._thread.post(self._on_due)

    def _on_due(self) -> None:
        self.take()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._thread.loop.call_later(_INTERVAL_SECONDS, self._on_near)

    def _on_near(self) -> None:
        """Have the next one wake the loop; if none comes, take what is there a bit later."""
        self._timer = None
        self.is_due = False  # first: what is added from here on wakes the loop
        if self.messages:
            self._timer = self._thread.loop.call_later(_LONGER_SECONDS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.messages:  # else the next one wakes the loop
            self.is_due = True
            self._on_due()

    def take_many(self) -> None:
        """As `take`, if there are enough; a few wait for their time, which is near."""
        # Hot path: latency in `make bench-client`: a message that comes alone does not wait for it.
        if len(self.messages) >= _MANY_COUNT:
            self.take()

    def take(self) -> None:
        """Tell the consumer; called in the loop."""
        # Hot path: consume in `make bench-client`.
        if self.messages:
            messages = self.messages[:]
            del self.messages[: len(messages)]  # not what threads have appended since
            self._consumer.acknowledge_all(messages)
