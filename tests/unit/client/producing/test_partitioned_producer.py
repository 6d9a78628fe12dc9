"""Producers of partitions: started together or lazily, shared, grown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.partitioned_producer import (
    PartitionedProducer,
    pending_messages_limit,
)
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
from pulsar_py.common.errors import (
    AlreadyClosedError,
    NotAllowedError,
    ProducerQueueFullError,
)
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.producer_parts import TOPIC, confirming, in_turn, payloads, sent
from tests.scripted_broker import POLITE, Answer, ScriptedBroker, simulated, simulated_client


def having(count: int) -> Answer:
    return lambda end, command: commands.partitioned_metadata_response(
        command.partitionMetadata.request_id, count
    )


async def partitioned(
    client: Client, broker: ScriptedBroker, count: int = 3, **options: Any
) -> PartitionedProducer:
    broker.script[BaseCommand.PARTITIONED_METADATA] = having(count)
    made = await client.create_producer(TOPIC, **options)
    assert isinstance(made, PartitionedProducer)
    return made


def registered(broker: ScriptedBroker) -> list[str]:
    return sorted(
        command.producer.topic.removeprefix(TOPIC) for command in broker.of(BaseCommand.PRODUCER)
    )


@pytest.mark.parametrize(
    ("own", "total", "partitions", "limit"),
    [
        (1000, 50_000, 10, 1000),
        (1000, 50_000, 100, 500),
        (1000, 0, 100, 1000),
        (0, 50_000, 100, 500),
        (0, 0, 100, 0),
        (1000, 5, 100, 1),
    ],
)
def test_each_partition_gets_the_least(own: int, total: int, partitions: int, limit: int) -> None:
    config = ProducerConfig(max_pending_messages=own, max_pending_messages_across_partitions=total)
    assert pending_messages_limit(config, partitions) == limit


@simulated
async def test_all_partitions_open_and_share_a_name(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker)
        assert registered(broker) == ["-partition-0", "-partition-1", "-partition-2"]
        assert producer.producer_name() == "p"
        assert producer.topic() == TOPIC
        assert producer.partitions_count() == 3
        assert producer.is_connected()
        ids = [await producer.send(b"%d" % number) for number in range(3)]
        assert sorted(each.partition_index for each in ids) == [0, 1, 2]
        assert producer.last_sequence_id() == 0
        assert producer.statistics().total_receipts_received == 3
        assert producer.take_statistics(9.0).pending_queue_size == 0
        assert producer.statistics_fields()["topic"] == TOPIC
    names = [command.producer.producer_name for command in broker.of(BaseCommand.PRODUCER)]
    assert sorted(names) == ["", "p", "p"]


@simulated
async def test_one_key_stays_in_one_partition(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker)
        ids = [await producer.send(b"x", key="k") for _ in range(4)]
        assert len({each.partition_index for each in ids}) == 1


@simulated
async def test_a_full_partition_refuses(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=1) as client:
        producer = await partitioned(client, broker, max_pending_messages_across_partitions=3)
        for _ in range(3):
            producer.send_nowait(b"x")
        with pytest.raises(ProducerQueueFullError):
            producer.send_nowait(b"x")


@simulated
async def test_lazy_partitions_open_with_their_first_message(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker, lazy_start_partitioned_producers=True)
        assert len(registered(broker)) == 1
        results = [producer.send_nowait(b"%d" % number) for number in range(6)]
        results.append(producer.send_nowait(b"k", key="k", deliver_at=5))
        await producer.flush()
        assert all(each.done() for each in results)
        assert len(registered(broker)) == 3
        assert {each.result().partition_index for each in results[:6]} == {0, 1, 2}
    by_partition: dict[int, list[bytes]] = {}
    for each in sent(broker):
        by_partition.setdefault(each.send.producer_id, []).extend(each.payloads)
    for contents in by_partition.values():
        numbers = [each for each in contents if each != b"k"]
        assert numbers == sorted(numbers)


@simulated
async def test_a_lazy_partition_that_does_not_open_fails_its_messages(
    broker: ScriptedBroker,
) -> None:
    broker.script[BaseCommand.PRODUCER] = in_turn(
        POLITE[BaseCommand.PRODUCER],
        lambda end, command: commands.error(
            command.producer.request_id, ServerError.NotAllowedError, "no"
        ),
    )
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker, 2, lazy_start_partitioned_producers=True)
        results = [producer.send_nowait(b"x") for _ in range(2)]
        await results[0]
        with pytest.raises(NotAllowedError):
            await results[1]
        assert client.context.memory_limit.current_bytes == 0


@simulated
async def test_one_partition_that_does_not_open_closes_the_others(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = in_turn(
        POLITE[BaseCommand.PRODUCER],
        POLITE[BaseCommand.PRODUCER],
        lambda end, command: commands.error(
            command.producer.request_id, ServerError.NotAllowedError, "no"
        ),
    )
    async with simulated_client(broker) as client:
        with pytest.raises(NotAllowedError):
            await partitioned(client, broker)
        assert broker.types().count("CLOSE_PRODUCER") >= 2
        assert not client.context.children


@simulated
async def test_new_partitions_are_noticed(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    heard: list[object] = []

    class Listening(ProducerInterceptor):
        def on_partitions_change(self, topic: str, partitions_count: int) -> None:
            heard.append((topic, partitions_count))

    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker, 1, interceptors=[Listening()])
        assert producer.partitions_count() == 1
        broker.script[BaseCommand.PARTITIONED_METADATA] = having(4)
        await asyncio.sleep(61)
        assert producer.partitions_count() == 4
        assert heard == [(TOPIC, 4)]
        ids = [await producer.send(b"x") for _ in range(4)]
        assert {each.partition_index for each in ids} == {0, 1, 2, 3}
        broker.script[BaseCommand.PARTITIONED_METADATA] = having(2)
        await producer.update_partitions()
        assert producer.partitions_count() == 4


@simulated
async def test_an_unanswered_count_is_asked_again(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        producer = await partitioned(client, broker, 1)
        broker.script.pop(BaseCommand.PARTITIONED_METADATA)
        await asyncio.sleep(70)
        broker.script[BaseCommand.PARTITIONED_METADATA] = having(2)
        await asyncio.sleep(70)
        assert producer.partitions_count() == 2


@simulated
async def test_custom_routers_and_interceptors_see_the_message(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    done: list[object] = []

    class Watching(ProducerInterceptor):
        def on_send_acknowledgement(
            self, producer: Any, message: Any, message_id: Any, error: Any
        ) -> None:
            done.append(message_id)

    async with simulated_client(broker) as client:
        producer = await partitioned(
            client,
            broker,
            message_router=lambda message, count: int(message.data()) % count,
            interceptors=[Watching()],
        )
        ids = [await producer.send(b"%d" % number) for number in (2, 4)]
        ids.append(await producer.send_nowait(b"2"))
        assert [each.partition_index for each in ids] == [2, 1, 2]
        assert done == ids


@simulated
async def test_interceptors_hear_of_messages_that_are_refused(broker: ScriptedBroker) -> None:
    ended: list[object] = []

    class Watching(ProducerInterceptor):
        def on_send_acknowledgement(
            self, producer: Any, message: Any, message_id: Any, error: Any
        ) -> None:
            ended.append((message.content, message_id, type(error)))

    async with simulated_client(broker) as client:
        producer = await partitioned(
            client,
            broker,
            message_router=lambda message, count: int(message.data()),
            max_pending_messages=1,
            interceptors=[Watching()],
        )
        producer.send_nowait(b"1")
        with pytest.raises(ProducerQueueFullError):
            producer.send_nowait(b"1")
        with pytest.raises(ProducerQueueFullError):
            await producer.send(b"01")
        with pytest.raises(ValueError, match="invalid literal"):
            producer.send_nowait(b"nowhere")
        assert ended == [
            (b"1", None, ProducerQueueFullError),
            (b"01", None, ProducerQueueFullError),
            (b"nowhere", None, ValueError),
        ]


@simulated
async def test_closing_closes_all(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await partitioned(client, broker, batching_enabled=True)
        result = producer.send_nowait(b"x")
        await producer.close()
        await producer.close()
        assert (await result).entry_id == 0
        assert broker.types().count("CLOSE_PRODUCER") == 3
        with pytest.raises(AlreadyClosedError):
            producer.send_nowait(b"x")
        assert not client.context.children
    assert payloads(broker) == [[b"x"]]
