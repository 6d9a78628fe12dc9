"""Rows of a task on their way to a broker in memory, and attempts that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

import pytest

from pulsar_py import Broker
from pulsar_py.client import Client
from pulsar_py.client.messages.message import Message
from pulsar_py.common.errors import (
    ConnectionClosedError,
    InvalidMessageError,
    ProducerBusyError,
    SinkReplayError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID
from pulsar_py.schema import SchemaInfo, StringSchema
from pulsar_py.spark.writing import topic_writer
from pulsar_py.spark.writing.exactly_once import UnitOfWork
from pulsar_py.spark.writing.outgoing_rows import OutgoingRows
from pulsar_py.spark.writing.partition_sender import ProducerSettings
from pulsar_py.spark.writing.topic_writer import RowCounts, TopicWriter
from tests.unit.spark.sink_parts import TOPIC, write_options

STRING: SchemaInfo = StringSchema().schema_info()
UNIT = UnitOfWork("job", None, 0)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(config={"brokerDeduplicationEnabled": True}) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with Client(broker.service_url) as client:
        yield client


@pytest.fixture
async def parted() -> AsyncIterator[Client]:
    """A client of a broker whose topics have three partitions."""
    config = {
        "brokerDeduplicationEnabled": True,
        "allowAutoTopicCreationType": "partitioned",
        "defaultNumPartitions": 3,
    }
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        yield client


def writer(
    client: Client,
    unit: UnitOfWork | None = UNIT,
    partitions: Sequence[str] = (TOPIC,),
    topic: str | None = TOPIC,
    **more: str,
) -> TopicWriter:
    settings = ProducerSettings.of(write_options(**more).client, STRING, unit)
    if unit is not None:
        unit = replace(unit, partitions_count=len(partitions))
    return TopicWriter(client, settings, topic=topic, partitions=partitions, unit=unit)


def rows(values: Iterable[int], **more: Sequence[object]) -> OutgoingRows:
    return OutgoingRows(payloads=[b"%d" % each for each in values], **more)  # type: ignore[arg-type] # as each column has it


async def messages(client: Client, topic: str = TOPIC) -> list[Message]:
    found = []
    async with await client.create_reader(topic, EARLIEST_MESSAGE_ID) as reader:
        while await reader.has_message_available():
            found.append(await reader.read_next(30_000))
    return found


async def stored(client: Client, topic: str = TOPIC) -> list[int]:
    return [int(each.data()) for each in await messages(client, topic)]


@pytest.mark.parametrize("unit", [None, UNIT])
async def test_all_rows_arrive_in_order(client: Client, unit: UnitOfWork | None) -> None:
    task = writer(client, unit)
    await task.write(rows(range(2500)))
    await task.write(rows(range(2500, 3000)))
    assert (await task.finish()).written == 3000
    assert await stored(client) == list(range(3000))


async def test_messages_have_what_rows_say(client: Client) -> None:
    task = writer(client)
    await task.write(
        OutgoingRows(
            payloads=[b"v", None],
            keys=["k", b"\xff"],
            ordering_keys=[b"o", None],
            event_times_millis=[5, None],
            properties=[{"a": "1"}, None],
            deliver_at_millis=[None, 1],
        )
    )
    await task.finish()
    first, second = await messages(client)
    assert (first.partition_key(), first.ordering_key_bytes(), first.event_timestamp()) == (
        "k",
        b"o",
        5,
    )
    assert first.properties() == {"a": "1"}
    assert second.has_null_value()
    assert second.key_bytes() == b"\xff"


@pytest.mark.parametrize("sent", [1, 1000, 2499])
async def test_a_repeated_attempt_goes_on_where_the_first_ended(client: Client, sent: int) -> None:
    first = writer(client)
    await first.write(rows(range(sent)))
    await first.abandon()
    second = writer(client)
    await second.write(rows(range(3000)))
    counts = await second.finish()
    assert await stored(client) == list(range(3000))
    assert counts.written + counts.skipped == 3000


async def test_a_finished_attempt_that_is_repeated_writes_nothing(client: Client) -> None:
    for _ in range(2):
        task = writer(client)
        await task.write(rows(range(1500)))
        counts = await task.finish()
    assert counts == RowCounts(written=1, skipped=1499, payload_bytes=4)  # the one that confirms
    assert await stored(client) == list(range(1500))


async def test_an_attempt_without_the_rows_of_the_first_is_refused(client: Client) -> None:
    first = writer(client)
    await first.write(rows(range(10)))
    await first.finish()
    second = writer(client)
    await second.write(rows(range(5)))
    with pytest.raises(SinkReplayError, match="stored row 9"):
        await second.finish()
    await second.abandon()


async def test_a_producer_closed_by_the_broker_ends_the_attempt(
    broker: Broker, client: Client
) -> None:
    task = writer(client)
    await task.write(rows(range(10)))
    for sender in task._senders.values():  # what an unloaded topic does
        session = sender.producer._session
        assert session.connection.cnx is not None
        session.on_close_producer(session.connection.cnx, None, None)
    with pytest.raises(ConnectionClosedError, match="closed by the broker"):
        await task.finish()
    await task.abandon()
    del broker


async def test_a_name_that_is_taken_is_waited_for(client: Client) -> None:
    zombie = writer(client)
    await zombie.write(rows(range(5)))
    task = writer(client)
    waiting = asyncio.get_running_loop().create_task(task.write(rows(range(10))))
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    await zombie.abandon()
    await waiting
    await task.finish()
    assert sorted(await stored(client)) == list(range(10))


async def test_a_name_that_stays_taken_is_an_error(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_writer, "BUSY_SECONDS", 0.0)
    zombie = writer(client)
    await zombie.write(rows(range(5)))
    task = writer(client)
    with pytest.raises(ProducerBusyError):
        await task.write(rows(range(10)))
    await task.abandon()
    await zombie.finish()


async def test_partitions_are_taken_by_column_by_key_and_in_turn(parted: Client) -> None:
    client = parted
    names = await client.get_topic_partitions(TOPIC)
    assert len(names) == 3
    task = writer(client, partitions=names, pulsar_producer_batchingMaxMessages="2")
    await task.write(rows(range(6)))
    await task.write(rows([6, 7], partitions=[2, 0]))
    await task.write(rows([8, 9], keys=["same", "same"]))
    await task.finish()
    found = [await stored(client, name) for name in names]
    assert found[0][:2] == [0, 1]
    assert 7 in found[0]
    assert found[1][:2] == [2, 3]
    assert found[2][:3] == [4, 5, 6]
    assert sum({8, 9} <= set(each) for each in found) == 1


@pytest.mark.parametrize("batch_id", [None, 5])
@pytest.mark.parametrize("sent", [1, 700, 1999])
async def test_partitions_that_came_between_attempts_wait_for_the_next_batch(
    parted: Client, batch_id: int | None, sent: int
) -> None:
    names = await parted.get_topic_partitions(TOPIC)
    keys = [str(each) for each in range(1000)]

    async def attempt(unit: UnitOfWork, rows_count: int) -> TopicWriter:
        more = {"pulsar_producer_batchingMaxMessages": "10"}
        partitions = names[: unit.partitions_count]
        task = writer(parted, unit, partitions, **more)
        keyed = rows(range(min(rows_count, 1000)), keys=keys[:rows_count])
        await task.write(keyed)
        await task.write(rows(range(1000, rows_count)))
        return task

    first = await attempt(UnitOfWork("grown", batch_id, 0, 2), sent)
    for sender in first._senders.values():
        await sender.cut()
        await sender.settle()
    await first.abandon()
    second = await attempt(UnitOfWork("grown", batch_id, 0, 3), 2000)
    await second.finish()
    found = [await stored(parted, name) for name in names]
    assert sorted(each for part in found for each in part) == list(range(2000))
    assert not found[2]
    if batch_id is not None:
        third = await attempt(UnitOfWork("grown", batch_id + 1, 0, 3), 2000)
        await third.finish()
        assert await stored(parted, names[2])


async def test_a_partition_that_is_not_there_is_named(parted: Client) -> None:
    task = writer(parted, partitions=await parted.get_topic_partitions(TOPIC))
    with pytest.raises(InvalidMessageError, match="for partition 3, and the topic has 3"):
        await task.write(rows([1], partitions=[3]))
    await task.abandon()


async def test_rows_name_their_topics(client: Client) -> None:
    task = writer(client, None, (), None)
    await task.write(rows([1, 2, 3], topics=["a", "b", "a"]))
    await task.finish()
    assert await stored(client, "a") == [1, 3]
    assert await stored(client, "b") == [2]
    late = writer(client, None, (), None)
    with pytest.raises(InvalidMessageError, match="null as its topic"):
        await late.write(rows([1], topics=[None]))
    await late.abandon()
