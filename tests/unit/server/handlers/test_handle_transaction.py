from __future__ import annotations

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import InvalidTopicNameError, NotAllowedError
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnSubscription,
    CommandNewTxn,
    CommandSubscribe,
    CommandTcClientConnectRequest,
    Subscription,
)
from pulsar_py.server.handlers.settings import ConnectionSettings
from tests.unit.server.connection.standins import Client, Message, Server


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


def end_on_partition(topic: str) -> CommandEndTxnOnPartition:
    return CommandEndTxnOnPartition(
        request_id=5, txnid_most_bits=1, txnid_least_bits=2, topic=topic
    )


def end_on_subscription(topic: str, name: str) -> CommandEndTxnOnSubscription:
    return CommandEndTxnOnSubscription(
        request_id=5,
        txnid_most_bits=1,
        txnid_least_bits=2,
        subscription=Subscription(topic=topic, subscription=name),
    )


async def with_subscription(server: Server) -> Client:
    """A connection with a consumer on subscription `s` of `t`."""
    client = await server.connect()
    await client.asks(
        CommandSubscribe(
            topic="t",
            subscription="s",
            subType=CommandSubscribe.Shared,
            consumer_id=1,
            request_id=1,
        )
    )
    return client


@pytest.mark.parametrize(
    "command",
    [
        end_on_partition("nowhere"),
        end_on_subscription("nowhere", "s"),
        end_on_subscription("t", "x"),
    ],
)
async def test_ending_where_nothing_is_succeeds(server: Server, command: Message) -> None:
    client = await with_subscription(server)
    answer = await client.asks(command)
    assert (answer.request_id, answer.txnid_most_bits, answer.txnid_least_bits) == (5, 1, 2)
    assert not answer.HasField("error")


@pytest.mark.parametrize("command", [end_on_partition("t"), end_on_subscription("t", "s")])
async def test_ending_where_something_may_be_is_refused(server: Server, command: Message) -> None:
    client = await with_subscription(server)
    answer = await client.asks(command)
    assert (answer.request_id, answer.txnid_most_bits, answer.txnid_least_bits) == (5, 1, 2)
    assert answer.error == NotAllowedError.code


@pytest.mark.parametrize("command", [end_on_partition("a://b"), end_on_subscription("a://b", "s")])
async def test_ending_where_nothing_can_be_is_an_error(server: Server, command: Message) -> None:
    client = await server.connect()
    assert (await client.asks(command)).error == InvalidTopicNameError.code
