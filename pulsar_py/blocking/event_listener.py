"""`EventListenerInPool`: a consumer's event listener that is called in a thread (edge)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulsar_py.blocking.listener_pool import ListenerPool
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_events import ConsumerEventListener

__all__ = ["EventListenerInPool"]


class EventListenerInPool(ConsumerEventListener):
    """Hands the asyncio consumer's events to the application's listener, in order."""

    def __init__(self, listener: ConsumerEventListener, name: str) -> None:
        self._pool = ListenerPool(name, 1)
        self._became_active = self._pool.in_order(listener.became_active, name)
        self._became_inactive = self._pool.in_order(listener.became_inactive, name)
        # The blocking consumer; None until it is there. Any: its own class, for the application's
        # listener, is the blocking one's.
        self._consumer: Any = None
        # Events that came before it was.
        self._early: list[tuple[Callable[..., None], int]] = []

    def belongs_to(self, consumer: Any) -> None:  # Any: as above
        """The consumer is there."""
        self._consumer = consumer
        for post, partition_index in self._early:
            post(consumer, partition_index)

    def became_active(self, consumer: Consumer, partition_index: int) -> None:
        """As `ConsumerEventListener.became_active`."""
        del consumer
        self._tell(self._became_active, partition_index)

    def became_inactive(self, consumer: Consumer, partition_index: int) -> None:
        """As `ConsumerEventListener.became_inactive`."""
        del consumer
        self._tell(self._became_inactive, partition_index)

    def _tell(self, post: Callable[..., None], partition_index: int) -> None:
        if self._consumer is None:
            self._early.append((post, partition_index))
        else:
            post(self._consumer, partition_index)

    def close(self) -> None:
        """Call it no more."""
        self._pool.close()
