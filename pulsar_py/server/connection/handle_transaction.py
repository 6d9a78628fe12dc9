"""Transaction commands: refused, as by a broker whose coordinator is off.

What a coordinator elsewhere sends to finish its transactions succeeds on topics that are not
there, because nothing can be left to finish. Also here: commands of the 5.0 line, whose feature
flags this broker does not set.

Source: ServerCnx.checkTransactionEnableAndSendError in Pulsar's broker; recordings of 4.2.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulsar_py.common.errors import NotAllowedError
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandEndTxnOnPartition,
    CommandEndTxnOnSubscription,
)
from pulsar_py.wire import commands

if TYPE_CHECKING:
    from pulsar_py.server.connection.server_cnx import ServerCnx


def handle_not_enabled(cnx: ServerCnx, command: Any) -> None:  # Any: one of several commands
    """Refuse, and tell those who switched transactions on why that did not help."""
    is_wanted = cnx.connections.settings.is_transaction_coordinator_enabled
    text = "not supported by this version" if is_wanted else "not enabled"
    cnx.send_error(command.request_id, NotAllowedError(f"Transactions are {text}."))


def handle_not_supported(cnx: ServerCnx, command: Any) -> None:  # Any: one of several commands
    """Refuse a command of a later protocol."""
    request_id = getattr(command, "request_id", commands.NO_REQUEST_ID)
    cnx.send_error(request_id, NotAllowedError("not supported by this broker"))


def handle_end_txn_on_partition(cnx: ServerCnx, command: CommandEndTxnOnPartition) -> None:
    """Nothing of the transaction is here: done."""
    txn_id = (command.txnid_most_bits, command.txnid_least_bits)
    cnx.send(commands.end_txn_on_partition_response(command.request_id, txn_id))


def handle_end_txn_on_subscription(cnx: ServerCnx, command: CommandEndTxnOnSubscription) -> None:
    """Nothing of the transaction is here: done."""
    txn_id = (command.txnid_most_bits, command.txnid_least_bits)
    cnx.send(commands.end_txn_on_subscription_response(command.request_id, txn_id))
