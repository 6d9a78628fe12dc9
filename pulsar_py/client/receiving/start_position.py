"""Decides which messages of its first entry a consumer leaves out (pure).

The broker starts with a whole entry. A start at (or a seek to) a message leaves out the messages
before it in its entry, and the message itself unless it is to be included. Earlier entries are
delivered: if the broker sends them, the subscription was moved since.

Source: isPriorEntryIndex, isPriorBatchIndex and clearReceiverQueue in ConsumerImpl of Pulsar's Java
client.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulsar_py.client.messages.message import EntryKey
from pulsar_py.common.ack_set import full_bits
from pulsar_py.common.message_id import MessageId

__all__ = ["StartPosition", "before"]


@dataclass(frozen=True, slots=True)
class StartPosition:
    """The message that a consumer begins with, or after."""

    message_id: MessageId
    is_inclusive: bool = False
    is_floor: bool = False
    """Whether earlier entries were read already, as the broker was asked to start before it."""

    def wanted(self, key: EntryKey, bits: int, batch_size: int) -> int:
        """Those of an entry's bits whose messages are after the start; `batch_size` 0: no batch."""
        start = self.message_id
        first = (start.ledger_id, start.entry_id)
        if key != first:
            return 0 if self.is_floor and key < first else bits
        if start.batch_index < 0 or not batch_size:
            return bits if self.is_inclusive else 0
        left_out = start.batch_index if self.is_inclusive else start.batch_index + 1
        return bits & ~full_bits(left_out)


def before(key: EntryKey, batch_index: int, batch_size: int) -> MessageId:
    """The id just before a message, at which a non-durable consumer subscribes again."""
    if batch_index > 0:
        return MessageId(*key, batch_index=batch_index - 1, batch_size=batch_size)
    return MessageId(key[0], key[1] - 1)
