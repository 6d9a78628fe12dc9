"""`CommandConnection`: the members of a connection that command handlers use.

`ServerCnx` implements it, and `Connections` the services that it gives. Handlers import only these
protocols, so that each can be read and tested without the socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Protocol

from pulsar_py.common.errors import ServiceError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.handlers.closed_producers import ClosedProducers
from pulsar_py.server.handlers.held_closes import HeldCloses
from pulsar_py.server.handlers.pending import PendingConsumer, PendingProducer
from pulsar_py.server.handlers.revoking import Revoking
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.server.handlers.topic_list_watcher import TopicListWatcher
from pulsar_py.server.limits.in_flight import InFlightPublishes
from pulsar_py.server.limits.topic_list_budget import TopicListBudget
from pulsar_py.server.namespaces.service import NamespaceService
from pulsar_py.server.publishing.producer import Producer
from pulsar_py.server.schema_registry import SchemaRegistry
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationState,
    Authenticators,
)
from pulsar_py.server.security.authorization import Authorization, Caller
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.topics.registry import TopicRegistry
from pulsar_py.server.topics.topic import Topic
from pulsar_py.wire.connection_state import ConnectionState, Handshake


class BrokerServices(Protocol):
    """What the connections of one broker share."""

    clock: Clock
    topics: TopicRegistry
    namespaces: NamespaceService
    schemas: SchemaRegistry
    authenticators: Authenticators
    authorization: Authorization
    audit: Audit
    revoking: Revoking | None  # None while rights are not checked
    settings: ConnectionSettings
    held_closes: HeldCloses  # what clients are told once a moving bundle has arrived
    topic_lists: TopicListBudget
    pending_lookups_count: int  # of all connections, against `max_pending_lookups`
    handshakes_count: int  # CONNECTs that were answered with CONNECTED, since the start
    refused_handshakes_count: int  # and with ERROR


class CommandConnection(ClientConnection, Protocol):
    """One client's connection, as its commands change it."""

    # Who the client is; set by CONNECT and AUTH_RESPONSE.
    peer: Peer
    state: ConnectionState
    handshake: Handshake
    role: str | None
    original_principal: str | None  # the client of a proxy
    auth_method_name: str
    refreshes_original: bool  # whether its credentials are the ones that are refreshed
    auth_state: AuthenticationState | None
    newest_auth_data: bytes | None  # of AUTH_RESPONSE; None while none is checked
    vouched_for: Caller | None  # within the process: who the client is, without credentials
    credentials: Authenticated | None  # those that expire and are refreshed
    proxy_credentials: Authenticated | None  # where `credentials` are its client's

    # What the client opened, by the ids that it chose.
    producers: dict[int, Producer]
    consumers: dict[int, Consumer]
    consumer_topics: dict[int, Topic]  # of `consumers`
    closed_producers: ClosedProducers
    pending_producers: dict[int, PendingProducer]  # being created, or waiting
    pending_consumers: dict[int, PendingConsumer]  # being created
    watchers: dict[int, TopicListWatcher]

    @property
    def connections(self) -> BrokerServices:
        """Topics, namespaces, schemas and settings of the broker."""

    @property
    def in_flight(self) -> InFlightPublishes:
        """The count of publishes without an answer."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that the client has not taken from its socket yet."""

    @property
    def is_handshake_done(self) -> bool:
        """Whether CONNECTED was sent."""

    def on_connected(self) -> None:
        """Take frames of any size: the handshake has ended well."""

    def on_credentials_refreshed(self) -> None:
        """Go on: the client has sent good credentials in place of others."""

    def serve(self, command: BaseCommand, rest: bytes | None) -> None:
        """Call the handler of a command whose type the connection's state allows.

        Raises:
            RemoteProtocolError: It breaks the protocol.
        """

    def spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        """Run the rest of a command as a task; the connection reads on meanwhile."""

    def spawn_until_lost(
        self, work: Coroutine[object, object, None], name: str
    ) -> asyncio.Task[object]:
        """Run what may take long as a task, which is cancelled when the connection is lost."""

    def send_error(self, request_id: int, error: BaseException) -> None:
        """Answer a request with ERROR; an unexpected error is logged with its traceback."""

    def explain(self, error: BaseException) -> ServiceError:
        """The error with a wire code to answer with; writes one log line."""

    def refuse(self, reason: str) -> None:
        """Close the connection because of what the client sent; writes one log line."""

    def forget_consumer(self, consumer_id: int) -> Consumer | None:
        """Remove a consumer's id; returns the consumer that had it."""
