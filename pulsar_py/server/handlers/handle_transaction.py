"""Handlers that refuse transaction commands, as a broker does whose coordinator is off.

END_TXN_ON_PARTITION and END_TXN_ON_SUBSCRIPTION of another broker's coordinator succeed on missing
topics and subscriptions, because nothing can be left to finish; on others they are refused.
Commands of the 5.0 line, whose feature flags this broker does not set, are refused here, too.

Source: ServerCnx.checkTransactionEnableAndSendError in Pulsar's broker; recordings of 4.2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_py.common.errors import (
    AuthorizationError,
    NotAllowedError,
    TransactionNotFoundError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandEndTxnOnPartition,
    CommandEndTxnOnSubscription,
)
from pulsar_py.server.handlers.authorizing import authorize
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import AccessTarget
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.handlers.command_connection import CommandConnection


def handle_not_enabled(
    cnx: CommandConnection, command: Any
) -> None:  # Any: one of several commands
    """Refuse a command; the text differs if `transactionCoordinatorEnabled` is set."""
    is_wanted = cnx.connections.settings.is_transaction_coordinator_enabled
    text = "not supported by this version" if is_wanted else "not enabled"
    cnx.send_error(command.request_id, NotAllowedError(f"Transactions are {text}."))


def handle_not_supported(
    cnx: CommandConnection, command: Any
) -> None:  # Any: one of several commands
    """Refuse a command of a later protocol."""
    request_id = getattr(command, "request_id", commands.NO_REQUEST_ID)
    cnx.send_error(request_id, NotAllowedError("This command is not supported by this broker."))


def handle_end_txn_on_partition(cnx: CommandConnection, command: CommandEndTxnOnPartition) -> None:
    """Succeed if there is no such topic, so that the transaction has nothing to end in it."""
    cnx.spawn(_end_on_partition(cnx, command), "end transaction on partition")


async def _end_on_partition(cnx: CommandConnection, command: CommandEndTxnOnPartition) -> None:
    txn_id = (command.txnid_most_bits, command.txnid_least_bits)
    answer = commands.end_txn_on_partition_response
    try:
        name = TopicName.parse(command.topic)
        await _authorize(cnx, name)
        if await cnx.connections.topics.exists(name):
            raise NotAllowedError(f"Transactions are not enabled: {name}")  # noqa: TRY301
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        refusal = cnx.explain(error)
        cnx.send(answer(command.request_id, txn_id, code=refusal.code, message=str(refusal)))
        return
    cnx.send(answer(command.request_id, txn_id))


def handle_end_txn_on_subscription(
    cnx: CommandConnection, command: CommandEndTxnOnSubscription
) -> None:
    """Succeed if there is no such subscription, so that the transaction has nothing to end."""
    cnx.spawn(_end_on_subscription(cnx, command), "end transaction on subscription")


async def _end_on_subscription(
    cnx: CommandConnection, command: CommandEndTxnOnSubscription
) -> None:
    txn_id = (command.txnid_most_bits, command.txnid_least_bits)
    answer = commands.end_txn_on_subscription_response
    wanted = command.subscription
    try:
        name = TopicName.parse(wanted.topic)
        await _authorize(cnx, name)
        topics = cnx.connections.topics
        if await topics.exists(name):
            topic = await topics.get_or_load(name, create_if_missing=False)
            if wanted.subscription in topic.subscriptions:
                text = f"Transactions are not enabled: {wanted.subscription} of {name}"
                raise NotAllowedError(text)  # noqa: TRY301 - one answer
    except Exception as error:  # noqa: BLE001 - a task's outermost edge; it becomes the answer
        refusal = cnx.explain(error)
        cnx.send(answer(command.request_id, txn_id, code=refusal.code, message=str(refusal)))
        return
    cnx.send(answer(command.request_id, txn_id))


async def _authorize(cnx: CommandConnection, name: TopicName) -> None:
    """Refuse all but super-users as if there were no such transaction."""
    refusal = "Client is not a super-user, and may not end transactions of others"
    try:
        await authorize(cnx, Action.END_TRANSACTION_ON_TOPIC, AccessTarget.of_topic(name), refusal)
    except AuthorizationError as error:
        raise TransactionNotFoundError(str(error)) from None
