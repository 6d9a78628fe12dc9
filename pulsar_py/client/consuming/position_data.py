"""Converts message ids to the form that SUBSCRIBE and SEEK carry (pure).

A chunked message is named by its first chunk, so that all of its chunks are delivered.

Source: Commands.newSeek, ConsumerImpl.connectionOpened; MessageIdData in PulsarApi.proto.
"""

from __future__ import annotations

from pulsar_py.common.ack_set import from_index_on
from pulsar_py.common.message_id import MessageId, to_unsigned
from pulsar_py.proto.PulsarApi_pb2 import MessageIdData

__all__ = ["seek_data", "start_data"]


def start_data(message_id: MessageId) -> MessageIdData:
    """The position that SUBSCRIBE carries: the entry; of a chunked message, its first chunk."""
    first = message_id.first_chunk or message_id
    data = MessageIdData(ledgerId=to_unsigned(first.ledger_id), entryId=to_unsigned(first.entry_id))
    if first.batch_index >= 0:
        data.batch_index = first.batch_index
    return data


def seek_data(message_id: MessageId) -> MessageIdData:
    """The id that SEEK carries: the entry, and of a batch the set of messages from the index on."""
    first = message_id.first_chunk or message_id
    data = MessageIdData(ledgerId=to_unsigned(first.ledger_id), entryId=to_unsigned(first.entry_id))
    if first.batch_index > 0 and first.batch_size > first.batch_index:
        data.ack_set.extend(from_index_on(first.batch_index, first.batch_size))
    return data
