from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnSubscription,
    CommandNewTxn,
    CommandTcClientConnectRequest,
)
from pulsar_py.server.connection.settings import ConnectionSettings
from tests.unit.server.connection.standins import Message, Server


@pytest.mark.parametrize(
    "command",
    [
        CommandTcClientConnectRequest(request_id=5, tc_id=0),
        CommandNewTxn(request_id=5),
        CommandAddPartitionToTxn(request_id=5),
        CommandAddSubscriptionToTxn(request_id=5),
        CommandEndTxn(request_id=5),
    ],
)
async def test_transactions_are_not_enabled(server: Server, command: Message) -> None:
    client = await server.connect()
    error = await client.asks(command)
    assert (error.request_id, error.error) == (5, NotAllowedError.code)


async def test_who_switched_them_on_is_told_that_they_are_missing(
    server: Server, settings: ConnectionSettings
) -> None:
    client = await server.connect()
    assert "not enabled" in (await client.asks(CommandNewTxn(request_id=5))).message
    server.connections.settings = replace(settings, is_transaction_coordinator_enabled=True)
    assert "not supported" in (await client.asks(CommandNewTxn(request_id=6))).message


@pytest.mark.parametrize("kind", [CommandEndTxnOnPartition, CommandEndTxnOnSubscription])
async def test_ending_where_nothing_is_succeeds(server: Server, kind: Message) -> None:
    client = await server.connect()
    answer = await client.asks(kind(request_id=5, txnid_most_bits=1, txnid_least_bits=2))
    assert (answer.request_id, answer.txnid_most_bits, answer.txnid_least_bits) == (5, 1, 2)
    assert not answer.HasField("error")
