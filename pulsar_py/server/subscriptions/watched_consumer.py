"""`WatchedConsumer`: a consumer that tells interceptors what it is sent and acknowledges.

A topic makes its consumers of this class only while an interceptor listens to one of `CALLS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import CommandAck
from pulsar_py.server.dispatch.pending_acks import PositionKey
from pulsar_py.server.dispatch.redelivery import RedeliveryController
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.hooks.broker_interceptor import ClientInfo, ConsumerInfo
from pulsar_py.server.hooks.interceptors import Interceptors
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.subscription import Subscription

CALLS: Final = (
    "consumer_created",
    "consumer_closed",
    "before_send_message",
    "message_dispatched",
    "message_acked",
)


class WatchedConsumer(Consumer):
    """Made by a topic in place of a `Consumer`."""

    needs_commands = True

    def __init__(
        self, request: SubscribeRequest, subscription: Subscription, interceptors: Interceptors
    ) -> None:
        super().__init__(request, subscription)
        self._interceptors = interceptors
        self._has_joined = False
        connection = request.connection
        self._info = ConsumerInfo(
            topic=subscription.topic_name,
            subscription=subscription.name,
            name=self.name,
            consumer_id=self.consumer_id,
            subscription_type=request.subscription_type.wire_name,
            client=ClientInfo(address=connection.remote_address, version=connection.client_version),
        )

    def on_joined(self) -> None:
        """Tell that it was admitted."""
        self._has_joined = True
        self._interceptors.tell("consumer_created", self._info)

    def leave(self) -> None:
        """Tell that it has left, once."""
        super().leave()
        if self._has_joined:
            self._has_joined = False
            self._interceptors.tell("consumer_closed", self._info)

    def send_messages(
        self,
        entries: Sequence[Entry],
        ack_sets: Mapping[PositionKey, Sequence[int]] | None,
        *,
        redelivery: RedeliveryController | None = None,
        sticky_hashes: Sequence[int] | None = None,
    ) -> int:
        """Send entries, and tell of each before and after; those refused count as not sent."""
        self._tell_of("before_send_message", entries)
        sent_count = super().send_messages(
            entries, ack_sets, redelivery=redelivery, sticky_hashes=sticky_hashes
        )
        if sent_count:
            self._tell_of("message_dispatched", entries)
        return sent_count

    def _tell_of(self, call: str, entries: Sequence[Entry]) -> None:
        if self._interceptors.hears(call):
            for entry in entries:
                self._interceptors.tell(
                    call, self._info, entry.ledger_id, entry.entry_id, entry.data
                )

    def acknowledge(self, command: CommandAck) -> bool:
        """Serve an ACK, and tell of it once it was taken."""
        is_whole = super().acknowledge(command)
        self._interceptors.tell("message_acked", self._info, command)
        return is_whole
