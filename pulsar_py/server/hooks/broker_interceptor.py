"""`BrokerInterceptor`: the base class of users' interceptors, which see what clients do.

    class Audit(BrokerInterceptor):
        def consumer_created(self, consumer):
            print(consumer.client.role, "reads", consumer.topic)

Override what is of interest: the broker calls nothing else. A class has no arguments; one instance
serves a broker, is called in its loop, and must not block. What a call returns is ignored, and what
it raises is logged and counted: interceptors see, they do not refuse.

Source: BrokerInterceptor in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck


class ClientInfo(Struct, frozen=True, kw_only=True):
    """A client's connection."""

    address: str
    """As `/host:port`."""
    version: str = ""
    """What the client called itself in CONNECT; empty before."""
    role: str | None = None
    """The role that it proved; None without authentication, and in calls about producers and
    consumers."""


class ProducerInfo(Struct, frozen=True, kw_only=True):
    """A producer on one topic."""

    topic: str
    name: str
    producer_id: int
    client: ClientInfo
    metadata: Mapping[str, str] = field(default_factory=dict)


class ConsumerInfo(Struct, frozen=True, kw_only=True):
    """A consumer of one subscription."""

    topic: str
    subscription: str
    name: str
    consumer_id: int
    subscription_type: str
    client: ClientInfo


class BrokerInterceptor:
    """The base class of users' interceptors; no method does anything."""

    def close(self) -> None:
        """The broker has stopped."""

    def on_connection_created(self, client: ClientInfo) -> None:
        """A socket was accepted."""

    def on_connection_closed(self, client: ClientInfo) -> None:
        """A socket was closed."""

    def on_pulsar_command(self, command: BaseCommand, client: ClientInfo) -> None:
        """A command is about to be served; each but plain SENDs (`on_message_publish`).

        `command` may be used again by the broker: copy what has to last.
        """

    def producer_created(self, producer: ProducerInfo) -> None:
        """A producer was admitted."""

    def producer_closed(self, producer: ProducerInfo) -> None:
        """An admitted producer has left."""

    def consumer_created(self, consumer: ConsumerInfo) -> None:
        """A consumer has joined its subscription."""

    def consumer_closed(self, consumer: ConsumerInfo) -> None:
        """A consumer that had joined has left."""

    def on_message_publish(self, producer: ProducerInfo, headers_and_payload: bytes) -> None:
        """An entry, one message or a batch, is about to be checked and stored."""

    def message_produced(self, producer: ProducerInfo, ledger_id: int, entry_id: int) -> None:
        """An entry of a persistent topic was stored; its receipt is on its way."""

    def before_send_message(
        self, consumer: ConsumerInfo, ledger_id: int, entry_id: int, data: EntryBytes
    ) -> None:
        """A stored entry is about to be sent."""

    def message_dispatched(
        self, consumer: ConsumerInfo, ledger_id: int, entry_id: int, data: EntryBytes
    ) -> None:
        """A stored entry was handed to the consumer's connection."""

    def message_acked(self, consumer: ConsumerInfo, command: CommandAck) -> None:
        """A consumer's ACK was taken."""

    def on_webservice_request(self, method: str, path: str) -> None:
        """A request of the administration is about to be served; `path` has no query."""

    def on_webservice_response(self, method: str, path: str, status: int) -> None:
        """A request of the administration was answered."""
