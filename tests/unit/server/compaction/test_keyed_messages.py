"""What an entry holds for compaction."""

from __future__ import annotations

import pytest

from pulsar_py.proto.PulsarApi_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from pulsar_py.server.compaction.keyed_messages import (
    ChunkPart,
    KeyedMessage,
    examine,
    numbers_count,
    rebatch,
)
from pulsar_py.wire.batch import join_batch, split_batch
from pulsar_py.wire.compression import compress, decompress
from pulsar_py.wire.payload import ChecksumStatus, encode_entry, split_entry, verify_checksum


def metadata(**fields: object) -> MessageMetadata:
    return MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, **fields)


def batch(
    *messages: tuple[dict[str, object], bytes],
    compression: CompressionType.ValueType = CompressionType.NONE,
    **fields: object,
) -> bytes:
    body = join_batch(
        (SingleMessageMetadata(payload_size=0, **own), data) for own, data in messages
    )
    head = metadata(
        num_messages_in_batch=len(messages),
        compression=compression,
        uncompressed_size=len(body),
        **fields,
    )
    return encode_entry(head, compress(compression, body))


def test_a_message_has_its_key_and_event_time() -> None:
    entry = examine(encode_entry(metadata(partition_key="a", event_time=5), b"value"))
    assert entry.messages == (KeyedMessage(-1, b"a", False, 5),)


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ({}, b""),
        ({"null_value": True}, b"value"),
        ({"compression": CompressionType.LZ4}, b"\0"),
    ],
)
def test_tombstones_have_no_value(fields: dict[str, object], payload: bytes) -> None:
    (message,) = examine(encode_entry(metadata(partition_key="a", **fields), payload)).messages
    assert message.is_tombstone


@pytest.mark.parametrize("fields", [{}, {"ordering_key": b"o"}, {"null_partition_key": True}])
def test_messages_without_a_key(fields: dict[str, object]) -> None:
    (message,) = examine(encode_entry(metadata(**fields), b"value")).messages
    assert message.key is None


def test_a_chunk_says_which_of_its_message_it_is() -> None:
    head = metadata(partition_key="a", uuid="u", chunk_id=1, num_chunks_from_msg=3)
    assert examine(encode_entry(head, b"x")).chunk == ChunkPart("u", 1, 3)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\1x", encode_entry(metadata(marker_type=1), b"x")])
def test_markers_and_what_cannot_be_read_never_stay(data: bytes) -> None:
    entry = examine(data)
    assert not entry.messages
    assert not entry.is_opaque


def test_an_encrypted_batch_is_one_message_with_the_key_of_its_headers() -> None:
    head = metadata(partition_key="a", num_messages_in_batch=3)
    head.encryption_keys.add(key="k", value=b"v")
    (message,) = examine(encode_entry(head, b"cipher")).messages
    assert (message.batch_index, message.key) == (-1, b"a")


@pytest.mark.parametrize(
    "head",
    [
        metadata(num_messages_in_batch=3),
        metadata(num_messages_in_batch=1 << 30),
        metadata(num_messages_in_batch=1, compression=CompressionType.LZ4, uncompressed_size=9),
        metadata(num_messages_in_batch=1, uncompressed_size=1 << 31),
    ],
)
def test_a_batch_that_cannot_be_opened_is_opaque(head: MessageMetadata) -> None:
    assert examine(encode_entry(head, b"\xff\xff\xff\xffgarbage")).is_opaque


@pytest.mark.parametrize("compression", CompressionType.values())
def test_a_batch_keeps_its_size_and_indexes(compression: CompressionType.ValueType) -> None:
    messages = [({"partition_key": key}, key.encode()) for key in "abcd"]
    data = batch(*messages, compression=compression)
    assert [message.key for message in examine(data).messages] == [b"a", b"b", b"c", b"d"]
    left, opened_count = rebatch(data, {1, 3})
    assert opened_count == 4
    assert verify_checksum(left) is ChecksumStatus.VALID
    assert [message.batch_index for message in examine(left).messages] == [1, 3]
    parts = split_entry(left)
    assert parts.metadata.num_messages_in_batch == 4
    assert parts.metadata.compacted_batch_indexes == [1, 3]
    body = decompress(compression, parts.payload, parts.metadata.uncompressed_size)
    assert [each.payload for each in split_batch(bytes(body), 4)] == [b"b", b"d"]
    again, _ = rebatch(left, {3})
    assert [message.key for message in examine(again).messages] == [b"d"]


@pytest.mark.parametrize("compression", CompressionType.values())
def test_a_batch_of_which_all_stay_is_not_opened(
    compression: CompressionType.ValueType,
) -> None:
    data = batch(*[({"partition_key": key}, b"v") for key in "abc"], compression=compression)
    left, opened_count = rebatch(data, {0, 1, 2})
    assert opened_count == 0
    assert verify_checksum(left) is ChecksumStatus.VALID
    before, after = split_entry(data), split_entry(left)
    assert after.metadata.compacted_batch_indexes == [0, 1, 2]
    after.metadata.ClearField("compacted_batch_indexes")
    assert (after.metadata, bytes(after.payload)) == (before.metadata, bytes(before.payload))


ENCRYPTED = metadata(num_messages_in_batch=3)
ENCRYPTED.encryption_keys.add(key="k", value=b"v")


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"", 1),
        (encode_entry(metadata(), b"x"), 1),
        (encode_entry(metadata(marker_type=1), b"x"), 1),
        (encode_entry(metadata(marker_type=1, num_messages_in_batch=2), b"x"), 3),
        (encode_entry(metadata(uuid="u", num_chunks_from_msg=3), b"x"), 1),
        (encode_entry(ENCRYPTED, b"cipher"), 1),
        (batch(*[({}, b"v")] * 4), 5),
        (rebatch(batch(*[({}, b"v")] * 4), {1})[0], 5),
        (encode_entry(metadata(num_messages_in_batch=0), b""), 1),
        (encode_entry(metadata(num_messages_in_batch=-5), b"x"), 1),
        (encode_entry(metadata(num_messages_in_batch=9), b"no batch"), 10),
    ],
)
def test_both_phases_count_the_same_numbers(data: bytes, count: int) -> None:
    assert numbers_count(data) == examine(data).numbers_count == count
    assert all(message.batch_index + 1 < count for message in examine(data).messages)
