"""Cuts a large message into chunks, each an entry of its own (pure).

The payload is cut after compression, into pieces of `max_message_size - m` bytes, m being the
serialized metadata without the chunk fields (or into smaller ones, if the user says so):

    uuid                  <producer name>-<sequence id>, the same in all
    num_chunks_from_msg   how many there are
    total_chunk_msg_size  bytes of the whole, as compressed
    chunk_id              0, 1, …

All chunks share sequence id, publish time, key and properties. They are put together by
`chunk_assembly`.

Source: ProducerImpl.sendAsync in Pulsar's Java client; PIP-37.
"""

from __future__ import annotations

from collections.abc import Iterator

from pulsar_py.common.errors import MessageTooBigError
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata

__all__ = ["chunk_size", "cut"]


def chunk_size(
    metadata_size: int, *, max_message_size: int, chunk_max_message_size: int = -1
) -> int:
    """Bytes of payload in each chunk but the last.

    Args:
        metadata_size: Bytes of the serialized metadata.
        max_message_size: The broker's limit for metadata and payload, in bytes.
        chunk_max_message_size: The user's own limit, -1 for none.

    Raises:
        MessageTooBigError: The metadata alone fills an entry.
    """
    size = max_message_size - metadata_size
    if size <= 0:
        raise MessageTooBigError(
            f"metadata of {metadata_size} bytes leaves no room for a chunk: the broker's limit is "
            f"{max_message_size}"
        )
    return min(size, chunk_max_message_size) if chunk_max_message_size > 0 else size


def cut(
    metadata: MessageMetadata, payload: bytes, size: int
) -> Iterator[tuple[MessageMetadata, bytes]]:
    """The chunks of a payload that is longer than `size`, each with its metadata, in order."""
    total = -(-len(payload) // size)
    assert total > 1, f"{len(payload)} bytes are one chunk of {size}"
    for index in range(total):
        chunk = MessageMetadata()
        chunk.CopyFrom(metadata)
        chunk.uuid = f"{metadata.producer_name}-{metadata.sequence_id}"
        chunk.num_chunks_from_msg = total
        chunk.total_chunk_msg_size = len(payload)
        chunk.chunk_id = index
        yield chunk, payload[index * size : (index + 1) * size]
