"""The messages of `__change_events`: each an event of one topic's policies by its key (pure).

`event_entry` makes the entry that is stored: one message that is no batch, with the key, the
version of the schema, and `replicate_to` this cluster where the policies are for it alone. A
removal has `null_value` and no payload. `messages_of` opens what anybody appended: batches and
compressed messages, too; who decodes their payloads needs the schema of each one's version.

Source: TopicPoliciesSystemTopicClient and SystemTopicBasedTopicPoliciesService in Pulsar's broker.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple

from pulsar_py.common.buffer import EntryBytes
from pulsar_py.common.errors import PayloadError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsar_py.server.policies.policy_events import PolicyEvent, encode_event
from pulsar_py.wire.batch import each_in_batch
from pulsar_py.wire.compression import decompress
from pulsar_py.wire.payload import encode_entry, split_entry

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""A compressed message or batch that says it inflates to more is refused."""


class EventMessage(NamedTuple):
    """One message, its payload not decoded; without payload its key was removed."""

    key: str
    payload: bytes
    schema_version: bytes
    """Empty where the producer had no schema."""
    published_millis: int


def event_entry(
    event: PolicyEvent,
    cluster: str,
    *,
    producer_name: str,
    sequence_id: int,
    schema_version: bytes,
    now_millis: int,
) -> bytes:
    """The entry of an event; `cluster` is the one that local policies are for."""
    payload = encode_event(event, cluster)
    metadata = MessageMetadata(
        producer_name=producer_name,
        sequence_id=sequence_id,
        publish_time=now_millis,
        partition_key=event.key,
        partition_key_b64_encoded=False,
        uncompressed_size=len(payload),
        schema_version=schema_version,
        replicate_to=[] if event.is_global else [cluster],
    )
    if event.document is None:
        metadata.null_value = True
    return encode_entry(metadata, payload)


def messages_of(data: EntryBytes) -> list[EventMessage]:
    """The messages of an entry that have a key, in their order; none of markers.

    Raises:
        PayloadError: It can't be opened: it is damaged, encrypted, or a part of a chunked message.
    """
    parts = split_entry(bytes(data))
    metadata = parts.metadata
    if metadata.HasField("marker_type"):
        return []
    if metadata.encryption_keys or metadata.num_chunks_from_msg > 1:
        raise PayloadError("an event can't be encrypted or in chunks")
    if metadata.uncompressed_size > MAX_BODY_BYTES:
        raise PayloadError(
            f"{metadata.uncompressed_size} bytes, at most {MAX_BODY_BYTES} are opened"
        )
    body = bytes(decompress(metadata.compression, parts.payload, metadata.uncompressed_size))
    singles: list[tuple[MessageMetadata | SingleMessageMetadata, bytes]] = [(metadata, body)]
    if metadata.HasField("num_messages_in_batch"):
        count, kept = metadata.num_messages_in_batch, metadata.compacted_batch_indexes
        singles = [(each.metadata, each.payload) for each in each_in_batch(body, count, kept)]
    found: list[EventMessage] = []
    for single, part in singles:
        key = _key_of(single)
        if key is not None:
            value = b"" if single.null_value else part
            found.append(EventMessage(key, value, metadata.schema_version, metadata.publish_time))
    return found


def _key_of(metadata: MessageMetadata | SingleMessageMetadata) -> str | None:
    """The key as text; None where there is none."""
    if not metadata.HasField("partition_key") or metadata.null_partition_key:
        return None
    key: str | bytes = metadata.partition_key  # upb gives bytes where it is not UTF-8
    try:
        if metadata.partition_key_b64_encoded:
            key = base64.b64decode(key, validate=True)
        return key.decode() if isinstance(key, bytes) else key
    except (binascii.Error, UnicodeDecodeError):
        return None  # it is no topic's name
