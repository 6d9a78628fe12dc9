from __future__ import annotations

import asyncio

import pytest

from pulsar_py.proto.PulsarApi_pb2 import CommandPing, CommandSend
from pulsar_py.server.handlers.settings import ConnectionSettings
from pulsar_py.wire import commands
from pulsar_py.wire.commands import serialize
from pulsar_py.wire.framing import encode_message_header
from tests.unit.server.connection.standins import Server, send_frame, settle, with_producer


async def test_send_whose_fields_come_in_another_order_is_served(server: Server) -> None:
    client, producer = await with_producer(server)
    command = serialize(CommandSend(producer_id=1, sequence_id=4))
    turned = command[2:] + command[:2]  # the type stands last
    client.cnx.data_received(encode_message_header(turned, 1) + b"x")
    assert producer.published == [(4, None, 1, False, False, b"x")]


async def test_send_to_a_producer_that_never_was_closes_the_connection(server: Server) -> None:
    client, producer = await with_producer(server)
    client.cnx.data_received(send_frame(producer_id=2) + send_frame())
    await settle()
    assert client.is_closed
    assert not producer.published
    assert producer.lost


async def test_sends_to_a_producer_the_broker_closed_are_dropped_for_a_while(
    server: Server, settings: ConnectionSettings
) -> None:
    client, producer = await with_producer(server)
    client.cnx.producer_closed_by_broker(1)
    client.cnx.data_received(send_frame())
    (closed,) = await client.receives()
    assert closed.DESCRIPTOR.name == "CommandCloseProducer"
    assert not client.is_closed
    server.connections.start()
    for _ in range(3):
        await asyncio.sleep(settings.keep_alive_interval_seconds)
        client.sends(CommandPing())
    client.cnx.data_received(send_frame())
    assert client.is_closed
    assert not producer.published


async def test_send_without_payload_closes_the_connection(server: Server) -> None:
    client, _ = await with_producer(server)
    client.sends(CommandSend(producer_id=1, sequence_id=0))
    assert client.is_closed


@pytest.mark.parametrize(
    "fields",
    [{"txnid_least_bits": 0, "txnid_most_bits": 0}, {"message_id": {"ledgerId": 1, "entryId": 2}}],
)
async def test_sends_with_what_is_not_supported_are_refused(
    server: Server, fields: dict[str, object]
) -> None:
    client, producer = await with_producer(server)
    client.cnx.data_received(send_frame(sequence_id=3, highest_sequence_id=5, **fields))
    (error,) = await client.receives()
    assert error.DESCRIPTOR.name == "CommandSendError"
    assert (error.sequence_id, error.error) == (5, commands.ServerError.NotAllowedError)  # type: ignore[attr-defined]
    assert not producer.published


async def test_send_without_a_required_field_closes_the_connection(server: Server) -> None:
    client, producer = await with_producer(server)
    client.cnx.data_received(encode_message_header(b"\x08\x06\x32\x02\x08\x01", 1) + b"x")
    assert client.is_closed
    assert not producer.published
