"""Frames of messages and batches, read back with the broker's code."""

from __future__ import annotations

import pytest

from pulsar_py.client.producing.batch_container import BatchContainer
from pulsar_py.client.producing.entry_encoder import EntryEncoder
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.pending_messages import Buffers
from pulsar_py.proto.PulsarApi_pb2 import CommandSend
from pulsar_py.wire.batch import split_batch
from pulsar_py.wire.client_commands import SendEncoder
from pulsar_py.wire.command_codec import read_command
from pulsar_py.wire.framing import FrameDecoder
from pulsar_py.wire.payload import ChecksumStatus, EntryParts, split_entry, verify_checksum


def encoder(schema_version: bytes = b"") -> EntryEncoder:
    made = EntryEncoder(7)
    made.registered("p", schema_version)
    return made


def read(buffers: Buffers) -> tuple[CommandSend, EntryParts]:
    (frame,) = FrameDecoder(10_000_000).decode(b"".join(buffers))
    assert frame.headers_and_payload is not None
    assert verify_checksum(frame.headers_and_payload) is ChecksumStatus.VALID
    return read_command(frame.command).send, split_entry(frame.headers_and_payload)


def message(payload: bytes, **options: object) -> OutgoingMessage:
    made = OutgoingMessage(payload, **options)  # type: ignore[arg-type]
    made.payload = payload
    return made


def container(*messages: OutgoingMessage) -> BatchContainer:
    made = BatchContainer(100, 10_000)
    for each in messages:
        made.add(each, len(each.payload), 0.0, -1)
    return made


@pytest.mark.parametrize("size", [0, 5, 100_000])
def test_a_plain_message(size: int) -> None:
    send, entry = read(encoder(b"\x00\x01").encode_plain(b"x" * size, 5, 1234))
    assert (send.producer_id, send.sequence_id, send.num_messages) == (7, 5, 1)
    assert not send.HasField("highest_sequence_id")
    metadata = entry.metadata
    assert (metadata.producer_name, metadata.sequence_id, metadata.publish_time) == ("p", 5, 1234)
    assert metadata.schema_version == b"\x00\x01"
    assert not metadata.HasField("num_messages_in_batch")
    assert entry.payload == b"x" * size


def test_plain_messages_are_framed_as_by_protobuf_whatever_came_before() -> None:
    made = encoder()
    for schema_version in (b"", b"\x00\x07"):
        made.registered("p", schema_version)
        for sequence_id in (0, 127, 128, 129, 2**62):
            for time in (1, 127, 128, 1_700_000_000_000, 1_700_000_000_127, 1_700_000_000_128):
                for size in (5, 6, 100_000):
                    frame = made.encode_plain(bytes(size), sequence_id, time)
                    drafted = made.draft(message(bytes(size)), sequence_id, time)
                    whole = made.frame(drafted, drafted.metadata, drafted.body)
                    assert b"".join(frame) == b"".join(whole)


@pytest.mark.parametrize("schema_version", [b"", b"\x00\x07"])
@pytest.mark.parametrize("first", [0, 126, 16_382, 2**62])
def test_plain_messages_together_are_framed_as_each_alone(
    schema_version: bytes, first: int
) -> None:
    made = encoder(schema_version)
    sizes = [0, 5, 5, 100_000, 16_384, 16_385, 5, 3]
    run = [bytes((index,)) * size for index, size in enumerate(sizes)]
    frames = made.encode_plain_run(run, first, 1_700_000_000_000)
    alone = [
        made.encode_plain(payload, first + index, 1_700_000_000_000)
        for index, payload in enumerate(run)
    ]
    assert frames == alone


def test_ctrl_c_leaves_nothing_behind_that_frames_the_next_ones_wrongly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain_start = SendEncoder.plain_start
    interrupts: list[KeyboardInterrupt] = []

    def interrupted(self: SendEncoder, id_size: int, payload_length: int) -> bytes:
        if interrupts:
            raise interrupts.pop()
        return plain_start(self, id_size, payload_length)

    monkeypatch.setattr(SendEncoder, "plain_start", interrupted)
    for size in (10, 300):  # as the message before, as the one that was interrupted
        made = encoder()
        made.encode_plain(bytes(10), 1, 1)
        interrupts.append(KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            made.encode_plain(bytes(300), 1, 1)
        expected = encoder().encode_plain(bytes(size), 1, 1)
        assert made.encode_plain(bytes(size), 1, 1) == expected


def test_one_message_leaves_nothing_behind_for_the_next() -> None:
    made = encoder()
    made.encode_batch(container(message(b"a"), message(b"b")).take()[0], 0, 1)
    send, entry = read(made.encode_plain(b"c", 2, 1))
    assert not send.HasField("highest_sequence_id")
    assert not entry.metadata.HasField("schema_version")


def test_a_batch() -> None:
    with_key = message(b"second", partition_key="k", properties={"a": "b"})
    (batch,) = container(message(b"first"), with_key, message(b"")).take()
    send, entry = read(encoder().encode_batch(batch, 10, 1234))
    assert (send.sequence_id, send.highest_sequence_id, send.num_messages) == (10, 12, 3)
    metadata = entry.metadata
    assert (metadata.sequence_id, metadata.highest_sequence_id) == (10, 12)
    assert metadata.num_messages_in_batch == 3
    assert not metadata.HasField("partition_key")
    messages = split_batch(entry.payload, 3)
    assert [each.payload for each in messages] == [b"first", b"second", b""]
    assert [each.metadata.sequence_id for each in messages] == [10, 11, 12]
    assert messages[1].metadata.partition_key == "k"
    assert messages[1].metadata.properties[0].value == "b"


@pytest.mark.parametrize("sizes", [[5, 0, 5, 200, 127, 128, 20_000, 5], [5, 5, 5], [128] * 4])
@pytest.mark.parametrize("first", [0, 126, 16_382, 2**62])
def test_a_batch_of_payloads_is_written_as_protobuf_writes_it(first: int, sizes: list[int]) -> None:
    made = BatchContainer(100, 1 << 20)
    for index, size in enumerate(sizes):
        payload = bytes((index,)) * size
        made.add(message(payload), size, 0.0, -1)
    (batch,) = made.take()
    assert set(map(type, batch.messages)) == {bytes}
    with_protobuf = encoder().draft_batch(batch, range(first, first + len(sizes)), 1234)
    _, entry = read(encoder().encode_batch(batch, first, 1234))
    assert entry.payload == with_protobuf.body
    assert entry.metadata == with_protobuf.metadata


def test_a_batch_shows_the_keys_of_its_first_message() -> None:
    first = message(b"a", partition_key="k", ordering_key="o")
    (batch,) = container(first, message(b"b")).take()
    _, entry = read(encoder().encode_batch(batch, 0, 1))
    assert (entry.metadata.partition_key, entry.metadata.ordering_key) == ("k", b"o")


def test_a_batch_of_own_ids_goes_from_the_lowest_to_the_highest() -> None:
    made = encoder()
    (batch,) = container(message(b"a", sequence_id=9), message(b"b", sequence_id=5)).take()
    draft = made.draft_batch(batch, [9, 5], 1)
    send, entry = read(made.frame(draft, draft.metadata, draft.body))
    assert (send.sequence_id, send.highest_sequence_id, send.num_messages) == (5, 9, 2)
    assert [each.metadata.sequence_id for each in split_batch(entry.payload, 2)] == [9, 5]


def test_a_batch_shows_where_it_is_replicated_to() -> None:
    (batch,) = container(message(b"a", disable_replication=True), message(b"b")).take()
    _, entry = read(encoder().encode_batch(batch, 0, 1))
    assert list(entry.metadata.replicate_to) == ["__local__"]


def test_a_draft_is_a_message_alone() -> None:
    made = encoder(b"1")
    own_schema = message(b"x", partition_key="k", deliver_at=99)
    own_schema.schema_version = b"2"
    draft = made.draft(own_schema, 3, 1)
    send, entry = read(made.frame(draft, draft.metadata, b"changed", is_chunk=True))
    assert send.is_chunk
    assert not send.HasField("highest_sequence_id")
    assert entry.payload == b"changed"
    assert entry.metadata.schema_version == b"2"
    assert entry.metadata.deliver_at_time == 99
    assert not entry.metadata.HasField("num_messages_in_batch")
