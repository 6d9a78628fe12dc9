"""Which handler serves which command: the whole protocol at one glance.

A handler is called with the connection and the command's message, in order of arrival. It returns
at once; what has to wait goes on as a task. What it raises becomes an ERROR, save
`RemoteProtocolError`, which closes the connection. Messages are the handler's to keep.

SEND is not here: `ServerCnx.data_received` hands it to its producer, or to `handle_send`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.server.connection import (
    handle_connect,
    handle_consume,
    handle_lookup,
    handle_produce,
    handle_schema,
    handle_transaction,
)

_C = BaseCommand

# Any: connections and each command's own message, which the table can't tie to its key.
Handler = Callable[[Any, Any], None]

HANDLERS: Final[Mapping[int, Handler]] = {
    _C.CONNECT: handle_connect.handle_connect,
    _C.AUTH_RESPONSE: handle_connect.handle_auth_response,
    _C.PING: handle_connect.handle_ping,
    _C.PONG: handle_connect.handle_pong,
    _C.LOOKUP: handle_lookup.handle_lookup,
    _C.PARTITIONED_METADATA: handle_lookup.handle_partitioned_metadata,
    _C.GET_TOPICS_OF_NAMESPACE: handle_lookup.handle_get_topics_of_namespace,
    _C.WATCH_TOPIC_LIST: handle_lookup.handle_watch_topic_list,
    _C.WATCH_TOPIC_LIST_CLOSE: handle_lookup.handle_watch_topic_list_close,
    _C.PRODUCER: handle_produce.handle_producer,
    _C.CLOSE_PRODUCER: handle_produce.handle_close_producer,
    _C.SUBSCRIBE: handle_consume.handle_subscribe,
    _C.FLOW: handle_consume.handle_flow,
    _C.ACK: handle_consume.handle_ack,
    _C.REDELIVER_UNACKNOWLEDGED_MESSAGES: handle_consume.handle_redeliver,
    _C.UNSUBSCRIBE: handle_consume.handle_unsubscribe,
    _C.SEEK: handle_consume.handle_seek,
    _C.GET_LAST_MESSAGE_ID: handle_consume.handle_get_last_message_id,
    _C.CONSUMER_STATS: handle_consume.handle_consumer_stats,
    _C.CLOSE_CONSUMER: handle_consume.handle_close_consumer,
    _C.GET_SCHEMA: handle_schema.handle_get_schema,
    _C.GET_OR_CREATE_SCHEMA: handle_schema.handle_get_or_create_schema,
    _C.TC_CLIENT_CONNECT_REQUEST: handle_transaction.handle_not_enabled,
    _C.NEW_TXN: handle_transaction.handle_not_enabled,
    _C.ADD_PARTITION_TO_TXN: handle_transaction.handle_not_enabled,
    _C.ADD_SUBSCRIPTION_TO_TXN: handle_transaction.handle_not_enabled,
    _C.END_TXN: handle_transaction.handle_not_enabled,
    _C.END_TXN_ON_PARTITION: handle_transaction.handle_end_txn_on_partition,
    _C.END_TXN_ON_SUBSCRIPTION: handle_transaction.handle_end_txn_on_subscription,
    _C.SCALABLE_TOPIC_LOOKUP: handle_transaction.handle_not_supported,
    _C.SCALABLE_TOPIC_SUBSCRIBE: handle_transaction.handle_not_supported,
    _C.WATCH_SCALABLE_TOPICS: handle_transaction.handle_not_supported,
    _C.WATCH_TC_ASSIGNMENTS: handle_transaction.handle_not_supported,
}
