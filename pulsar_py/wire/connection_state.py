"""`ConnectionState` and `KeepAlive`: the legal commands of each state, and dead peers (pure).

    broker   START --CONNECT--> CONNECTING (credentials are checked, perhaps with challenges)
             --CONNECTED sent--> CONNECTED --> CLOSED
    client   START --CONNECT sent--> CONNECTING (answers challenges)
             --CONNECTED received--> CONNECTED --> CLOSED

`LEGAL_COMMANDS` is the whole table. PING and PONG are legal at any time, before the handshake too;
any other command in the wrong state closes the connection without an answer. Keep-alive ticks once
an interval: a peer that has not answered the last PING, or not finished the handshake by then, is
dead. Time comes in as `now`.

Source: ServerCnx, ClientCnx and PulsarHandler in Pulsar; the behaviour of Apache Pulsar 4.2.4
before CONNECT.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

from pulsar_py.common.errors import LocalProtocolError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConnect, FeatureFlags
from pulsar_py.wire.versions import CURRENT_VERSION, Feature, allows, negotiate

_C = BaseCommand

KEEP_ALIVE_INTERVAL_SECONDS: Final = 30.0


class Side(Enum):
    """The two ends of a connection."""

    BROKER = "broker"
    CLIENT = "client"


class State(Enum):
    """The states of a connection."""

    START = "start"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    CLOSED = "closed"


_ALWAYS: Final = frozenset({_C.PING, _C.PONG})

FROM_CLIENT: Final = frozenset(
    {
        _C.SUBSCRIBE,
        _C.PRODUCER,
        _C.SEND,
        _C.ACK,
        _C.FLOW,
        _C.UNSUBSCRIBE,
        _C.CLOSE_PRODUCER,
        _C.CLOSE_CONSUMER,
        _C.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        _C.PARTITIONED_METADATA,
        _C.LOOKUP,
        _C.CONSUMER_STATS,
        _C.SEEK,
        _C.GET_LAST_MESSAGE_ID,
        _C.GET_TOPICS_OF_NAMESPACE,
        _C.GET_SCHEMA,
        _C.GET_OR_CREATE_SCHEMA,
        _C.NEW_TXN,
        _C.ADD_PARTITION_TO_TXN,
        _C.ADD_SUBSCRIPTION_TO_TXN,
        _C.END_TXN,
        _C.END_TXN_ON_PARTITION,
        _C.END_TXN_ON_SUBSCRIPTION,
        _C.TC_CLIENT_CONNECT_REQUEST,
        _C.WATCH_TOPIC_LIST,
        _C.WATCH_TOPIC_LIST_CLOSE,
        _C.SCALABLE_TOPIC_LOOKUP,
        _C.SCALABLE_TOPIC_CLOSE,
        _C.SCALABLE_TOPIC_SUBSCRIBE,
        _C.WATCH_SCALABLE_TOPICS,
        _C.WATCH_SCALABLE_TOPICS_CLOSE,
        _C.WATCH_TC_ASSIGNMENTS,
        _C.WATCH_TC_ASSIGNMENTS_CLOSE,
    }
)
"""Commands that a connected client may send, besides PING, PONG and AUTH_RESPONSE."""

FROM_BROKER: Final = frozenset(
    {
        _C.SEND_RECEIPT,
        _C.SEND_ERROR,
        _C.MESSAGE,
        _C.SUCCESS,
        _C.ERROR,
        _C.CLOSE_PRODUCER,
        _C.CLOSE_CONSUMER,
        _C.PRODUCER_SUCCESS,
        _C.PARTITIONED_METADATA_RESPONSE,
        _C.LOOKUP_RESPONSE,
        _C.CONSUMER_STATS_RESPONSE,
        _C.REACHED_END_OF_TOPIC,
        _C.GET_LAST_MESSAGE_ID_RESPONSE,
        _C.ACTIVE_CONSUMER_CHANGE,
        _C.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        _C.GET_SCHEMA_RESPONSE,
        _C.AUTH_CHALLENGE,
        _C.ACK_RESPONSE,
        _C.GET_OR_CREATE_SCHEMA_RESPONSE,
        _C.NEW_TXN_RESPONSE,
        _C.ADD_PARTITION_TO_TXN_RESPONSE,
        _C.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        _C.END_TXN_RESPONSE,
        _C.END_TXN_ON_PARTITION_RESPONSE,
        _C.END_TXN_ON_SUBSCRIPTION_RESPONSE,
        _C.TC_CLIENT_CONNECT_RESPONSE,
        _C.WATCH_TOPIC_LIST_SUCCESS,
        _C.WATCH_TOPIC_UPDATE,
        _C.TOPIC_MIGRATED,
        _C.SCALABLE_TOPIC_UPDATE,
        _C.SCALABLE_TOPIC_SUBSCRIBE_RESPONSE,
        _C.SCALABLE_TOPIC_ASSIGNMENT_UPDATE,
        _C.WATCH_SCALABLE_TOPICS_UPDATE,
        _C.WATCH_TC_ASSIGNMENTS_UPDATE,
    }
)
"""Commands that a broker may send to a connected client, besides PING and PONG."""

_NOTHING: frozenset[BaseCommand.Type.ValueType] = frozenset()

LEGAL_COMMANDS: Final[dict[Side, dict[State, frozenset[BaseCommand.Type.ValueType]]]] = {
    Side.BROKER: {
        State.START: _ALWAYS | {_C.CONNECT},
        State.CONNECTING: _ALWAYS,
        State.CONNECTED: _ALWAYS | FROM_CLIENT,
        State.CLOSED: _NOTHING,
    },
    Side.CLIENT: {
        State.START: _ALWAYS,
        State.CONNECTING: _ALWAYS | {_C.CONNECTED, _C.AUTH_CHALLENGE, _C.ERROR},
        State.CONNECTED: _ALWAYS | FROM_BROKER,
        State.CLOSED: _NOTHING,
    },
}
"""Commands that a side may receive in a state. A broker takes AUTH_RESPONSE, too, while a challenge
is pending, and from a connected client that has authenticated."""


class ConnectionState:
    """The state of one connection: a part of its ServerCnx or ClientCnx.

    Invariant: `legal` is the row of `LEGAL_COMMANDS` for the state, and AUTH_RESPONSE with it while
    `is_challenge_pending`, or always if the client authenticated. It is an attribute so that a busy
    connection tests a command by one look-up in a set.
    """

    __slots__ = ("_takes_auth_response", "is_challenge_pending", "legal", "side", "state")

    def __init__(self, side: Side) -> None:
        self.side = side
        self.state = State.START
        self.legal = LEGAL_COMMANDS[side][State.START]
        # Broker: an AUTH_CHALLENGE was sent and its AUTH_RESPONSE has not come.
        self.is_challenge_pending = False
        # Broker: the client has credentials, which it may refresh without being asked.
        self._takes_auth_response = False

    @property
    def is_connected(self) -> bool:
        """Whether the handshake is done and the connection is not closed."""
        return self.state is State.CONNECTED

    @property
    def is_handshake_done(self) -> bool:
        """Whether the handshake is over: the connection is connected or closed."""
        return self.state in (State.CONNECTED, State.CLOSED)

    def check(self, command_type: BaseCommand.Type.ValueType) -> None:
        """Refuse a received command that is not legal in this state.

        Raises:
            RemoteProtocolError: It is not legal; the connection has to be closed.
        """
        if command_type not in self.legal:
            name = BaseCommand.Type.Name(command_type)
            raise RemoteProtocolError(f"{name} is not expected while {self.state.value}")

    def on_connect(self) -> None:
        """CONNECT was received (broker) or sent (client)."""
        self._expect(State.START)
        self._move(State.CONNECTING)

    def on_connected(self, *, takes_auth_response: bool = False) -> None:
        """CONNECTED was sent (broker) or received (client).

        Broker: if `takes_auth_response`, AUTH_RESPONSE is legal from now on, asked for or not.
        """
        self._expect(State.CONNECTING)
        self.is_challenge_pending = False
        self._takes_auth_response = takes_auth_response
        self._move(State.CONNECTED)

    def on_challenge_sent(self) -> None:
        """Broker: AUTH_CHALLENGE was sent, in the handshake or to refresh credentials."""
        if self.side is not Side.BROKER or self.state not in (State.CONNECTING, State.CONNECTED):
            raise LocalProtocolError(
                f"{self.side.value}: AUTH_CHALLENGE can't be sent while {self.state.value}"
            )
        self.is_challenge_pending = True
        self.legal = LEGAL_COMMANDS[self.side][self.state] | {_C.AUTH_RESPONSE}

    def on_challenge_answered(self) -> None:
        """Broker: the AUTH_RESPONSE to our challenge was received."""
        self.is_challenge_pending = False
        self._move(self.state)

    def on_closed(self) -> None:
        """The connection is closed, or about to be; nothing more is accepted."""
        self.is_challenge_pending = False
        self._move(State.CLOSED)

    def _expect(self, state: State) -> None:
        if self.state is not state:
            raise LocalProtocolError(
                f"{self.side.value}: the connection is {self.state.value}, expected {state.value}"
            )

    def _move(self, state: State) -> None:
        self.state = state
        self.legal = LEGAL_COMMANDS[self.side][state]
        if self._takes_auth_response and state is State.CONNECTED:
            self.legal |= {_C.AUTH_RESPONSE}


class Handshake(Struct, frozen=True, kw_only=True):
    """The contents of CONNECT that a broker uses; without any, those of a client not known yet."""

    client_version: str = ""
    """Free text."""
    client_protocol_version: int = 0
    protocol_version: int = 0
    """The protocol version that both sides use."""
    supports_auth_refresh: bool = False
    """Whether the client answers AUTH_CHALLENGE once it is connected."""
    supports_broker_entry_metadata: bool = False
    """Whether the client's version and feature flag say that it parses broker entry metadata."""
    supports_partial_producer: bool = False

    @classmethod
    def from_connect(cls, connect: CommandConnect, own_version: int = CURRENT_VERSION) -> Handshake:
        """Read the command; missing feature flags count as false."""
        flags = connect.feature_flags
        version = connect.protocol_version
        return cls(
            client_version=connect.client_version,
            client_protocol_version=version,
            protocol_version=negotiate(version, own_version),
            supports_auth_refresh=flags.supports_auth_refresh,
            supports_broker_entry_metadata=(
                flags.supports_broker_entry_metadata
                and allows(version, Feature.BROKER_ENTRY_METADATA)
            ),
            supports_partial_producer=flags.supports_partial_producer,
        )


def broker_feature_flags(*, is_topic_list_watcher_enabled: bool) -> FeatureFlags:
    """The feature flags that a broker announces in CONNECTED; others are left out."""
    flags = FeatureFlags(
        supports_get_partitioned_metadata_without_auto_creation=True,
        supports_repl_dedup_by_lid_and_eid=True,
    )
    if is_topic_list_watcher_enabled:
        flags.supports_topic_watchers = True
        flags.supports_topic_watcher_reconcile = True
    return flags


class KeepAliveDecision(Enum):
    """The actions that a keep-alive tick asks for."""

    NOTHING = "nothing"
    SEND_PING = "send ping"
    CLOSE_HANDSHAKE_TIMEOUT = "close: handshake not done"
    CLOSE_NO_ANSWER = "close: ping not answered"

    @property
    def is_close(self) -> bool:
        """Whether the connection has to be closed."""
        return self in (
            KeepAliveDecision.CLOSE_HANDSHAKE_TIMEOUT,
            KeepAliveDecision.CLOSE_NO_ANSWER,
        )


class KeepAlive:
    """Decides when to send PING and when a peer counts as dead. One for each connection.

    Times are seconds of the clock that `now` is taken from.
    """

    __slots__ = ("_due_at", "_interval_seconds", "is_waiting")

    def __init__(
        self, *, now: float, interval_seconds: float = KEEP_ALIVE_INTERVAL_SECONDS
    ) -> None:
        self._interval_seconds = interval_seconds
        # The time of the next tick.
        self._due_at = now + interval_seconds
        # A PING was sent and nothing has been received since. Any received bytes clear it.
        self.is_waiting = False

    @property
    def due_at(self) -> float:
        """The time of the next tick, in the seconds of `now`."""
        return self._due_at

    def tick(
        self,
        now: float,
        *,
        is_handshake_done: bool,
        peer_version: int,
        is_reading_paused: bool = False,
    ) -> KeepAliveDecision:
        """Decide; before `due_at` there is nothing to do.

        A peer whose data we do not read now (back-pressure) does not count as dead: its PONG may be
        among the unread bytes.
        """
        if now < self._due_at:
            return KeepAliveDecision.NOTHING
        self._due_at = now + self._interval_seconds
        if not is_handshake_done:
            return KeepAliveDecision.CLOSE_HANDSHAKE_TIMEOUT
        if self.is_waiting and not is_reading_paused:
            return KeepAliveDecision.CLOSE_NO_ANSWER
        if not allows(peer_version, Feature.PING):
            return KeepAliveDecision.NOTHING
        self.is_waiting = True
        return KeepAliveDecision.SEND_PING
