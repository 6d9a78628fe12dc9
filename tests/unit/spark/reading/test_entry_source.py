"""Pieces of real topics, read through a broker in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pulsar_py import Broker
from pulsar_py.client import Client, CompressionType
from pulsar_py.client.messages.message import Message
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.common.errors import ClientTimeoutError, SchemaSerializationError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import EncryptionKeys, MessageMetadata, SingleMessageMetadata
from pulsar_py.spark.planning.pieces import Piece
from pulsar_py.spark.reading.entry_source import (
    BrokerEntrySource,
    ChunksOfPiece,
    QueueSize,
    TornMessage,
)
from tests.unit.client.entries import batch, single
from tests.unit.spark.message_parts import plain

TOPIC = "persistent://public/default/pieces"


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(
        config={
            "managedLedgerMaxEntriesPerLedger": 10,
            "managedLedgerMinLedgerRolloverTimeMinutes": 0,
            "defaultRetentionSizeInMB": 100,
            "defaultRetentionTimeInMinutes": 100,
        }
    ) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url) as client:
        yield client


async def publish(client: Client, count: int, **options: object) -> list[Position]:
    async with await client.create_producer(TOPIC, **options) as producer:
        sent = [producer.send_nowait(b"%d" % index) for index in range(count)]
        return [(await each).position for each in sent]


def source(client: Client, **options: object) -> BrokerEntrySource:
    return BrokerEntrySource(
        client, **({"poll_timeout_millis": 2000, "fail_on_data_loss": True} | options)
    )


async def read(source: BrokerEntrySource, start: Position, end: Position) -> list[Message]:
    return [message async for run in source.read(Piece(TOPIC, start, end)) for message in run]


async def test_pieces_give_exactly_their_entries(client: Client) -> None:
    positions = await publish(client, 25)
    first = await read(source(client), positions[0], positions[12])
    rest = await read(
        source(client), positions[12], Position(positions[-1].ledger_id, positions[-1].entry_id + 1)
    )
    assert [int(message.data()) for message in first] == list(range(12))
    assert [int(message.data()) for message in rest] == list(range(12, 25))


async def test_batches_are_never_divided(client: Client) -> None:
    positions = await publish(client, 20, batching_enabled=True, batching_max_messages=10)
    assert len(set(positions)) == 2
    messages = await read(source(client), positions[10], Position(positions[10].ledger_id, 99))
    assert [int(message.data()) for message in messages] == list(range(10, 20))


async def test_large_batches_come_whole_and_end_with_the_piece(client: Client) -> None:
    positions = await publish(client, 300, batching_enabled=True, batching_max_messages=100)
    assert len(set(positions)) == 3
    runs = [run async for run in source(client).read(Piece(TOPIC, positions[0], positions[200]))]
    assert [type(run) for run in runs] == [ReceivedBatch, ReceivedBatch]
    assert [int(message.data()) for run in runs for message in run] == list(range(200))


async def test_compressed_batches_come_whole_too(client: Client) -> None:
    options = {"batching_enabled": True, "compression_type": CompressionType.ZSTD}
    positions = await publish(client, 100, batching_max_messages=100, **options)
    end = Position(positions[0].ledger_id, 99)
    (run,) = [run async for run in source(client).read(Piece(TOPIC, positions[0], end))]
    assert isinstance(run, ReceivedBatch)
    assert run.payloads() == [b"%d" % index for index in range(100)]


async def test_a_reconnect_goes_on_behind_the_last_batch(broker: Broker, client: Client) -> None:
    positions = await publish(client, 1000, batching_enabled=True, batching_max_messages=100)
    name = TopicName.parse(TOPIC)
    values: list[int] = []
    few = source(client, queue_bytes=600)
    async for run in few.read(Piece(TOPIC, positions[0], positions[-1])):
        values += [int(message.data()) for message in run]
        if len(values) == 200:
            await broker.service.topics.unload(name)
    assert values == list(range(900))


OUT = SingleMessageMetadata(compacted_out=True)
AT_END = {
    "last compacted out": (batch([b"1", b""], singles=[SingleMessageMetadata(), OUT]), [b"1"]),
    "all compacted out": (batch([b"", b""], singles=[OUT, OUT]), []),
    "last index gone": (
        batch([b"1"], num_messages_in_batch=3, compacted_batch_indexes=[0]),
        [b"1"],
    ),
    "marker": (single(b"", marker_type=1), []),
}
UNUSABLE = {
    "counts": batch([b"a"] * 5, num_messages_in_batch=6),
    "compression": single(b"x", compression=2, uncompressed_size=999_000_000),
    "checksum": single(b"abc")[:-1],
    "encrypted": single(b"abc", encryption_keys=[EncryptionKeys(key="k", value=b"v")]),
}


async def append(broker: Broker, data: bytes) -> None:
    """An entry as no producer of ours would send it."""
    topic = await broker.service.topics.get_or_load(TopicName.parse(TOPIC), create_if_missing=False)
    await topic.ledger.append_and_wait(data)


@pytest.mark.parametrize("name", list(AT_END))
@pytest.mark.parametrize("before", [0, 1])
async def test_a_piece_that_ends_with_nothing_to_give_does_not_wait(
    broker: Broker, client: Client, name: str, before: int
) -> None:
    (first,) = await publish(client, 1)
    data, expected = AT_END[name]
    await append(broker, data)
    start = Position(first.ledger_id, first.entry_id + 1 - before)
    end = Position(first.ledger_id, first.entry_id + 2)
    async with asyncio.timeout(20):
        messages = await read(source(client, poll_timeout_millis=60_000), start, end)
    assert [each.data() for each in messages] == [b"0"] * before + expected


@pytest.mark.parametrize("name", list(UNUSABLE))
@pytest.mark.parametrize("behind", [0, 1])
async def test_what_can_t_be_used_is_an_error_wherever_it_stands(
    broker: Broker, client: Client, name: str, behind: int
) -> None:
    (first,) = await publish(client, 1)
    await append(broker, UNUSABLE[name])
    await publish(client, behind)
    odd = Position(first.ledger_id, first.entry_id + 1)
    end = Position(first.ledger_id, first.entry_id + 2 + behind)
    with pytest.raises(
        SchemaSerializationError, match=rf"{TOPIC}: entry {odd}: .*undecodable=drop"
    ):
        await read(source(client), first, end)
    assert [each.data() for each in await read(source(client), first, odd)] == [b"0"]


async def test_what_can_t_be_used_may_be_left_out_with_a_warning(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    (first,) = await publish(client, 1)
    await append(broker, UNUSABLE["counts"])
    await append(broker, UNUSABLE["checksum"])
    await publish(client, 1)
    dropping = source(client, drops_unusable=True)
    messages = await read(dropping, first, Position(first.ledger_id, first.entry_id + 4))
    assert [each.data() for each in messages] == [b"0", b"0"]
    (record,) = [each for each in caplog.records if each.message == "entries can't be used"]
    assert vars(record)["dropped"] == 2


@pytest.mark.parametrize("name", list(UNUSABLE))
async def test_more_than_a_queue_of_what_can_t_be_used_does_not_stop_a_piece(
    broker: Broker, client: Client, name: str
) -> None:
    (first,) = await publish(client, 1)
    for _ in range(2 * QueueSize.PROBE):
        await append(broker, UNUSABLE[name])
    (last,) = await publish(client, 1)
    start = Position(first.ledger_id, first.entry_id + 1)
    end = Position(last.ledger_id, last.entry_id + 1)
    messages = await read(source(client, drops_unusable=True), start, end)
    assert [each.message_id().position for each in messages] == [last]
    with pytest.raises(SchemaSerializationError, match=f"entry {start}: "):
        await read(source(client), start, end)


async def test_an_end_that_does_not_exist_yet_ends_with_the_topic(client: Client) -> None:
    positions = await publish(client, 3)
    messages = await read(source(client), positions[0], Position(positions[0].ledger_id + 50, 0))
    assert len(messages) == 3


async def test_an_empty_piece_asks_nobody(client: Client) -> None:
    assert await read(source(client), Position(5, 0), Position(5, 0)) == []


async def test_large_messages_shrink_the_queue_and_nothing_is_read_twice(client: Client) -> None:
    positions = await publish(client, 25)
    small_queue = source(client, queue_bytes=6)
    messages = await read(small_queue, positions[0], Position(positions[-1].ledger_id, 99))
    assert [int(message.data()) for message in messages] == list(range(25))


async def test_no_subscription_is_left_behind(broker: Broker, client: Client) -> None:
    positions = await publish(client, 3)
    await read(source(client), positions[0], Position(positions[-1].ledger_id, 99))
    topic = await broker.service.topics.get_or_load(TopicName.parse(TOPIC), create_if_missing=False)
    assert not topic.subscriptions


async def chunked(client: Client, payload: bytes) -> tuple[MessageId, list[Position]]:
    """A message between two others; its id, and the positions of the others."""
    async with await client.create_producer(TOPIC) as producer:
        before = await producer.send(b"before")
        async with await client.create_producer(
            TOPIC, batching_enabled=False, chunking_enabled=True, chunk_max_message_size=1000
        ) as large:
            sent = await large.send(payload)
        after = await producer.send(b"after")
    assert sent.first_chunk is not None
    return sent, [before.position, after.position]


@pytest.mark.parametrize("cut_after", [1, 2, 14])
async def test_a_chunked_message_belongs_to_the_piece_with_its_last_chunk(
    client: Client, cut_after: int
) -> None:
    payload = bytes(range(256)) * 60  # 16 chunks, in two or three ledgers
    sent, (before, after) = await chunked(client, payload)
    assert sent.first_chunk is not None
    end = Position(after.ledger_id, after.entry_id + 1)
    first = sent.first_chunk.position
    cut = Position(first.ledger_id, first.entry_id + cut_after)
    left = await read(source(client), before, cut)
    right = await read(source(client), cut, end)
    assert [each.data() for each in left] == [b"before"]
    assert [each.data() for each in right] == [payload, b"after"]
    whole = await read(source(client), before, end)
    assert [each.data() for each in whole] == [b"before", payload, b"after"]


async def test_a_piece_may_be_the_last_chunk_alone(client: Client) -> None:
    payload = b"x" * 3500
    sent, _ = await chunked(client, payload)
    last = sent.position
    (message,) = await read(source(client), last, Position(last.ledger_id, last.entry_id + 1))
    assert message.data() == payload


async def test_messages_whose_chunks_lie_among_those_of_others_belong_to_one_piece_each(
    broker: Broker, client: Client
) -> None:
    await publish(client, 1)
    pairs = [(f"a{number}", f"b{number}") for number in range(3)]
    for pair in pairs:
        for chunk_id in range(9):
            for name in pair:
                await append(broker, chunk(name, chunk_id, late=name.startswith("b")))
    (last,) = await publish(client, 1)
    end = Position(last.ledger_id, last.entry_id + 1)
    messages = await read(source(client), Position(0, 0), end)
    ends = [each.message_id().position for each in messages]
    assert [each.data() for each in messages[1:-1]] == [
        name.encode() * 9 for pair in pairs for name in pair
    ]
    for cut in [Position(ledger, entry) for ledger in range(1, 6) for entry in (1, 8)]:
        left = await read(source(client), Position(0, 0), cut)
        right = await read(source(client), cut, end)
        assert [each.message_id().position for each in left + right] == ends


def chunk(name: str, chunk_id: int, *, late: bool) -> bytes:
    """One of nine, of a producer whose clock may be late."""
    return single(
        name.encode(),
        uuid=name,
        publish_time=1_000_000 + int(name[1:]) - late * 5000,
        chunk_id=chunk_id,
        num_chunks_from_msg=9,
        total_chunk_msg_size=9 * len(name),
    )


async def test_a_piece_that_ends_in_an_unfinished_message_does_not_wait(client: Client) -> None:
    sent, (before, _) = await chunked(client, b"x" * 3500)
    waiting = source(client, poll_timeout_millis=60_000)
    async with asyncio.timeout(30):
        messages = await read(waiting, before, sent.position)
    assert [each.data() for each in messages] == [b"before"]


def test_the_end_of_a_message_is_torn_once_and_within_the_piece_alone() -> None:
    def chunk(index: int) -> MessageMetadata:
        return MessageMetadata(
            producer_name="p",
            sequence_id=1,
            publish_time=77,
            uuid="u",
            chunk_id=index,
            num_chunks_from_msg=3,
        )

    chunks = ChunksOfPiece(Position(5, 10))
    chunks.on_chunk((5, 1), chunk(1), False)
    assert chunks.take_torn() == []
    chunks.on_chunk((5, 2), chunk(2), False)
    chunks.on_chunk((5, 2), chunk(2), False)
    chunks.on_chunk((5, 4), chunk(2), True)
    chunks.on_chunk((5, 10), chunk(2), False)
    assert chunks.take_torn() == [TornMessage((5, 2), "u", 77, 3)]
    assert chunks.take_torn() == []


def test_the_queue_is_made_for_the_messages_size() -> None:
    size = QueueSize(100_000)
    assert size.messages_count == QueueSize.PROBE
    assert size.observe([plain(b"x" * 1000)])
    assert size.messages_count == 100
    assert not size.observe([plain(b"x" * 1500)])
    assert size.observe([plain(b"x" * 100_000)])
    assert size.messages_count == QueueSize.MINIMUM


def test_the_queue_grows_to_what_a_user_allows() -> None:
    size = QueueSize(1 << 20, 10)
    assert size.observe([plain(b"x" * 100)])
    assert size.messages_count == 10
    assert QueueSize(1 << 20, 1).messages_count == 1


def test_small_messages_make_it_larger_once() -> None:
    size = QueueSize(1 << 20)
    assert size.observe([plain(b"x" * 100)])
    assert size.messages_count == QueueSize.MAXIMUM
    assert not size.observe([plain(b"x" * 100)])


class _Silent(BrokerEntrySource):
    """Its broker says that there is more, and sends nothing."""

    async def _is_more_to_come(self, *_: object) -> bool:
        return True


async def test_entries_that_don_t_come_are_an_error_with_topic_and_positions(
    client: Client,
) -> None:
    positions = await publish(client, 2)
    silent = _Silent(client, poll_timeout_millis=1000, fail_on_data_loss=True)
    with pytest.raises(ClientTimeoutError, match=rf"{TOPIC}: no message for 1000 ms at"):
        await read(silent, positions[0], Position(positions[0].ledger_id, 9))


async def test_entries_that_don_t_come_may_be_left_out(client: Client) -> None:
    positions = await publish(client, 2)
    silent = _Silent(client, poll_timeout_millis=1000, fail_on_data_loss=False)
    assert len(await read(silent, positions[0], Position(positions[0].ledger_id, 9))) == 2
