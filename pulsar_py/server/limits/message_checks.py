"""Checks published messages against a topic's settings, and reads chunks and publish times (pure).

The metadata of published messages is parsed only here, and only if a setting needs it: most topics
store messages without parsing them. Stored metadata is parsed elsewhere, too: for dispatch
(`wire/entry_summary.py`), when deduplication replays (`publishing/message_deduplication.py`), and
for the last message id (`connection/handle_consume.py`).

Source: ServerCnx.handleSend, Producer, PersistentTopic in Pulsar's broker.
"""

from __future__ import annotations

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError, ServiceMetadataError
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata
from pulsar_py.proto.PulsarPyEntry_pb2 import EntryFields
from pulsar_py.server.policies.topic_settings import TopicSettings
from pulsar_py.wire.payload import parse_broker_entry_metadata, parse_fields


def looks_at_messages(settings: TopicSettings, *, has_delays: bool = True) -> bool:
    """Whether `check_message` could refuse anything."""
    return (
        settings.is_encryption_required
        or settings.max_message_bytes > 0
        or (has_delays and settings.max_delay_millis > 0)
    )


def check_message(data: bytes, settings: TopicSettings, *, has_delays: bool = True) -> None:
    """Refuse a published message that the topic's settings forbid.

    Its size counts everything after the command: checksum, metadata and payload. Topics without
    `has_delays`, which non-persistent ones are, ignore a message's delay.

    Raises:
        ServiceMetadataError: It is not encrypted, and the topic requires that.
        NotAllowedError: It is too large, or its delay is longer than allowed.
    """
    if not looks_at_messages(settings, has_delays=has_delays):
        return
    longest = settings.max_delay_millis if has_delays else 0
    metadata = None
    if settings.is_encryption_required or longest > 0:
        metadata = _metadata_or_none(data)
    if settings.is_encryption_required and (metadata is None or not metadata.encryption_keys):
        raise ServiceMetadataError("Messages must be encrypted")
    if 0 < settings.max_message_bytes < len(data):
        raise NotAllowedError("Exceed maximum message size")
    if longest <= 0 or metadata is None or not metadata.HasField("deliver_at_time"):
        return
    # As in Pulsar, the delay counts from the message's own publish time, not from the clock.
    if metadata.deliver_at_time - metadata.publish_time > longest:
        raise NotAllowedError(f"Exceeds max allowed delivery delay of {longest} milliseconds")


def is_chunk_part(data: bytes) -> bool:
    """Whether a chunk is not the last one of its message."""
    metadata = _metadata_or_none(data)
    return metadata is not None and metadata.chunk_id < metadata.num_chunks_from_msg - 1


def published_millis(entry: Entry) -> int:
    """Publish time of an entry: the broker's if it was stamped, else the client's.

    0 if it is unknown.
    """
    try:
        stamp = parse_broker_entry_metadata(entry.data)
    except RemoteProtocolError:
        return 0
    if stamp is not None and stamp.HasField("broker_timestamp"):
        return stamp.broker_timestamp
    metadata = _metadata_or_none(entry.data)
    return metadata.publish_time if metadata is not None else 0


def _metadata_or_none(data: EntryBytes) -> MessageMetadata | EntryFields | None:
    try:
        return parse_fields(data)
    except RemoteProtocolError:
        return None  # unreadable metadata is stored all the same, unless a setting needs it
