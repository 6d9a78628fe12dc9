"""The table of commands: each with its handler and the right that it needs.

A handler is called with the connection and the command's message, in order of arrival. It returns
at once; work that has to wait goes on as a task, and long work is returned as a generator, which
makes one step in each turn of the loop, before any later command. An exception becomes an ERROR,
except `RemoteProtocolError`, which closes the connection. A handler may keep its message.

Each row names the command's action, so that rights can be checked in one place.

SEND is not here: `ServerCnx.data_received` hands it to its producer, or to `handle_send`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.handlers import (
    handle_connect,
    handle_consume,
    handle_lookup,
    handle_produce,
    handle_schema,
    handle_transaction,
)
from pulsar_py.server.handlers.command_connection import CommandConnection
from pulsar_py.server.security.actions import Action, Need, checked_need

_C = BaseCommand

# Any: each command's own message, which the table can't tie to its key.
Handler = Callable[[CommandConnection, Any], Iterator[None] | None]

_PROVES: Final = "the client proves who it is"
_ALIVE: Final = "says that a side is alive, and nothing else"
_ADMITTED: Final = "acts on a consumer that SUBSCRIBE admitted"
_OWN: Final = "a transaction is its owner's, which the coordinator checks, and gives no right"
_REFUSED: Final = "refused to everybody"


class Command(Struct, frozen=True):
    """One command's handler, and its action or, in words, the reason why it needs no right.

    Raises:
        ValueError: The reason is empty.
    """

    handler: Handler
    needs: Need

    def __post_init__(self) -> None:
        checked_need(self.needs, self.handler.__name__)


COMMANDS: Final[Mapping[int, Command]] = {
    _C.CONNECT: Command(handle_connect.handle_connect, _PROVES),
    _C.AUTH_RESPONSE: Command(handle_connect.handle_auth_response, _PROVES),
    _C.PING: Command(handle_connect.handle_ping, _ALIVE),
    _C.PONG: Command(handle_connect.handle_pong, _ALIVE),
    _C.LOOKUP: Command(handle_lookup.handle_lookup, Action.LOOKUP),
    _C.PARTITIONED_METADATA: Command(handle_lookup.handle_partitioned_metadata, Action.LOOKUP),
    _C.GET_TOPICS_OF_NAMESPACE: Command(
        handle_lookup.handle_get_topics_of_namespace, Action.GET_TOPICS
    ),
    _C.WATCH_TOPIC_LIST: Command(handle_lookup.handle_watch_topic_list, Action.GET_TOPICS),
    _C.WATCH_TOPIC_LIST_CLOSE: Command(
        handle_lookup.handle_watch_topic_list_close, "ends what WATCH_TOPIC_LIST was admitted to"
    ),
    _C.PRODUCER: Command(handle_produce.handle_producer, Action.PRODUCE),
    _C.CLOSE_PRODUCER: Command(
        handle_produce.handle_close_producer, "acts on a producer that PRODUCER admitted"
    ),
    _C.SUBSCRIBE: Command(handle_consume.handle_subscribe, Action.CONSUME),
    _C.FLOW: Command(handle_consume.handle_flow, _ADMITTED),
    _C.ACK: Command(handle_consume.handle_ack, _ADMITTED),
    _C.REDELIVER_UNACKNOWLEDGED_MESSAGES: Command(handle_consume.handle_redeliver, _ADMITTED),
    _C.UNSUBSCRIBE: Command(handle_consume.handle_unsubscribe, _ADMITTED),
    _C.SEEK: Command(handle_consume.handle_seek, _ADMITTED),
    _C.GET_LAST_MESSAGE_ID: Command(handle_consume.handle_get_last_message_id, _ADMITTED),
    _C.CONSUMER_STATS: Command(handle_consume.handle_consumer_stats, _ADMITTED),
    _C.CLOSE_CONSUMER: Command(handle_consume.handle_close_consumer, _ADMITTED),
    _C.GET_SCHEMA: Command(handle_schema.handle_get_schema, Action.GET_METADATA),
    _C.GET_OR_CREATE_SCHEMA: Command(handle_schema.handle_get_or_create_schema, Action.PRODUCE),
    _C.TC_CLIENT_CONNECT_REQUEST: Command(handle_transaction.handle_not_enabled, _OWN),
    _C.NEW_TXN: Command(handle_transaction.handle_not_enabled, _OWN),
    _C.ADD_PARTITION_TO_TXN: Command(handle_transaction.handle_not_enabled, Action.PRODUCE),
    _C.ADD_SUBSCRIPTION_TO_TXN: Command(handle_transaction.handle_not_enabled, Action.CONSUME),
    _C.END_TXN: Command(handle_transaction.handle_not_enabled, _OWN),
    _C.END_TXN_ON_PARTITION: Command(
        handle_transaction.handle_end_txn_on_partition, Action.END_TRANSACTION_ON_TOPIC
    ),
    _C.END_TXN_ON_SUBSCRIPTION: Command(
        handle_transaction.handle_end_txn_on_subscription, Action.END_TRANSACTION_ON_TOPIC
    ),
    _C.SCALABLE_TOPIC_LOOKUP: Command(handle_transaction.handle_not_supported, _REFUSED),
    _C.SCALABLE_TOPIC_SUBSCRIBE: Command(handle_transaction.handle_not_supported, _REFUSED),
    _C.WATCH_SCALABLE_TOPICS: Command(handle_transaction.handle_not_supported, _REFUSED),
    _C.WATCH_TC_ASSIGNMENTS: Command(handle_transaction.handle_not_supported, _REFUSED),
}

HANDLERS: Final[Mapping[int, Handler]] = {
    number: command.handler for number, command in COMMANDS.items()
}
