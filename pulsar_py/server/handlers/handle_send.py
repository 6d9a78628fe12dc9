"""Handlers of SENDs that `plain_sends` can't pass directly to their producer.

    as clients write it, to a producer  --> the producer, by `plain_sends`
    its fields in another order         --> the producer, from here
    with an unsupported field           --> SEND_ERROR
    to a producer the broker closed     --> dropped: CLOSE_PRODUCER is on its way
    to an unknown one, or incomplete    --> the connection is closed

Source: ServerCnx.handleSend in Pulsar's broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError
from pulsar_py.proto.PulsarApi_pb2 import CommandSend
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection


def handle_send(cnx: CommandConnection, send: CommandSend, rest: bytes | None) -> None:
    """Serve a SEND with its fields in another order than clients write, or without payload."""
    if rest is None:
        raise RemoteProtocolError("SEND without a payload")
    producer = cnx.producers.get(send.producer_id)
    is_plain = not send.HasField("txnid_least_bits") and not send.HasField("message_id")
    if producer is None or not is_plain:
        handle_odd_send(cnx, send)
        return
    producer.publish(
        send.sequence_id,
        send.highest_sequence_id or None,
        send.num_messages,
        send.is_chunk,
        send.marker,
        rest,
    )


def handle_odd_send(cnx: CommandConnection, send: CommandSend) -> None:
    """Serve a SEND to an unknown or closed producer, or with an unsupported field."""
    if not cnx.is_connected:
        return
    if not send.IsInitialized():
        cnx.refuse("SEND lacks a required field")
        return
    producer_id = send.producer_id
    producer = cnx.producers.get(producer_id)
    if producer is None:
        if producer_id not in cnx.closed_producers:
            cnx.refuse(f"SEND to producer {producer_id}, which does not exist")
        return
    what = "a transaction" if send.HasField("txnid_least_bits") else "a message id"
    text = f"SEND with {what} is not allowed on {producer.topic.name}"
    sequence_id = max(send.sequence_id, send.highest_sequence_id)
    cnx.send(commands.send_error(producer_id, sequence_id, NotAllowedError.code, text))
