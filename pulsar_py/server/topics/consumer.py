"""Consumer: one client's seat at a subscription."""

from __future__ import annotations

from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandRedeliverUnacknowledgedMessages,
)
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.topics.subscription import Subscription
from pulsar_py.server.topics.subscription_stats import ConsumerStats


class Consumer:
    """A consumer, from SUBSCRIBE until its connection or the broker closes it.

    Made by the topic for a `SubscribeRequest`, added with `Subscription.add_consumer`, and only
    then given to the connection.
    """

    def __init__(self, request: SubscribeRequest, subscription: Subscription) -> None:
        self.request = request
        self.consumer_id: int = request.consumer_id
        self.name: str = request.consumer_name
        self.connection: ClientConnection = request.connection
        self.subscription = subscription

    def flow(self, permits_count: int) -> None:
        """Serve FLOW.

        Raises:
            RemoteProtocolError: 0, or 2^31 and above (negative in Java): close the connection.
        """
        raise NotImplementedError

    def acknowledge(self, command: CommandAck) -> None:
        """Serve ACK; the caller then sends ACK_RESPONSE if the command has a request id.

        Raises:
            ServiceError: To be put into the ACK_RESPONSE; never for plain acks.
        """
        raise NotImplementedError

    def redeliver(self, command: CommandRedeliverUnacknowledgedMessages) -> None:
        """Serve REDELIVER_UNACKNOWLEDGED_MESSAGES; there is no answer."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave the subscription: CLOSE_CONSUMER by the client, or the end of its connection.

        What was not acknowledged is redelivered to others. May be called again.
        """
        raise NotImplementedError

    def stats(self) -> ConsumerStats:
        """A snapshot for CONSUMER_STATS and REST."""
        raise NotImplementedError
