"""`ConsumerEventListener`: called when a Failover consumer becomes active or inactive (interface).

The calls come from the event loop and must neither block nor raise.

Source: ConsumerEventListener in Pulsar's Java client; ACTIVE_CONSUMER_CHANGE in PulsarApi.proto.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulsar_py.client.consuming.consumer import Consumer

__all__ = ["ConsumerEventListener"]


class ConsumerEventListener(Protocol):
    """What the option `consumer_event_listener` of a Failover consumer has to implement."""

    def became_active(self, consumer: Consumer, partition_index: int) -> None:
        """From here on this consumer gets the messages; the index is -1 without partitions."""
        del consumer, partition_index  # a body, so that subclasses need not define it

    def became_inactive(self, consumer: Consumer, partition_index: int) -> None:
        """Another consumer gets the messages."""
        del consumer, partition_index
