"""Turns an entry as a broker stores it into messages, without a consumer (pure).

A broker decides what a consumer gets of some entries, and a consumer needs more than their bytes:
markers, entries of transactions, chunks, encrypted ones, and those to which the broker has put
metadata of its own. These are left to the broker, as is whatever can't be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from pulsar_py.client.messages.message import EntryKey, EntryMetadata, Message, ReceivedEntry
from pulsar_py.client.receiving.entry_decoder import (
    MAX_INFLATED_BYTES,
    NOT_BATCHED,
    ParsedEntry,
    Problem,
    check_batch_size,
    inflate,
    messages_of,
    parse,
)
from pulsar_py.client.receiving.received_batch import batch_of
from pulsar_py.common.ack_set import full_bits
from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.names import TopicName
from pulsar_py.proto.PulsarApi_pb2 import CommandMessage
from pulsar_py.wire.payload import CHECKSUM_MAGIC_NUMBER

__all__ = ["Messages", "stored_messages"]

Messages: TypeAlias = Sequence[Message]
"""Messages of one entry or several; a large batch is a `ReceivedBatch`."""

_MAGIC: Final = CHECKSUM_MAGIC_NUMBER.to_bytes(2)
_NO_COMMAND: Final = CommandMessage()
"""Stands for the command with which a broker sends an entry; don't change it."""


def stored_messages(data: EntryBytes, key: EntryKey, name: TopicName) -> Messages | None:
    """All messages of an entry whose checksum is right; None if it has to come from the broker.

    A `ReceivedBatch` has views of `data`; other messages have copies.

    Args:
        data: The entry as it is stored.
        key: Its ledger and entry id.
        name: Of the topic or partition.
    """
    # Hot path: batch read in `make bench-spark`.
    if data[:2] != _MAGIC:
        return None  # metadata of the broker, or no checksum
    parsed = parse(_NO_COMMAND, data, key, str(name))
    if isinstance(parsed, Problem) or not _is_plain(parsed.metadata):
        return None
    if not parsed.metadata.compression:
        return _split(parsed, data, parsed.payload_start, name)
    body = inflate(parsed, parsed.payload_view, str(name), MAX_INFLATED_BYTES)
    return None if isinstance(body, Problem) else _split(parsed, body, 0, name)


def _is_plain(metadata: EntryMetadata) -> bool:
    return not (
        metadata.num_chunks_from_msg
        or metadata.encryption_keys
        or metadata.HasField("marker_type")
        or metadata.HasField("txnid_most_bits")
    )


def _split(parsed: ParsedEntry, body: EntryBytes, start: int, name: TopicName) -> Messages | None:
    topic = str(name)
    if not parsed.is_batch:
        entry = ReceivedEntry(parsed.key, topic, parsed.metadata, name.partition_index)
        return [Message(entry, NOT_BATCHED, None, bytes(body[start:]))]
    if check_batch_size(parsed, len(body) - start, topic) is not None:
        return None
    size = parsed.messages_count
    bits = full_bits(size)
    entry = ReceivedEntry(parsed.key, topic, parsed.metadata, name.partition_index, 0, size, bits)
    batch = batch_of(entry, body, start)
    if batch is not None:
        return batch
    messages = messages_of(entry, body, start, bits)
    return None if isinstance(messages, Problem) else messages
