from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.consuming.subscription_position import is_after
from pulsar_py.client.receiving.batch_receive import ConsumerBatchReceivePolicy
from pulsar_py.client.shared.enums import SubscriptionMode
from pulsar_py.common.errors import (
    ClientTimeoutError,
    ServiceMetadataError,
    UnknownServiceError,
)
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, LATEST_MESSAGE_ID, MessageId
from pulsar_py.common.position import Position
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, MessageIdData, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import Answer, BrokerEnd, ScriptedBroker, simulated
from tests.unit.client.consumer_parts import deliver, new_client, open_consumer, spawn
from tests.unit.client.entries import batch

READER = {"subscription_mode": SubscriptionMode.NonDurable}


def last_is(entry_id: int, *, mark_delete: Position | None = None) -> Answer:
    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        data = MessageIdData(ledgerId=1, entryId=entry_id % 2**64)
        return commands.get_last_message_id_response(
            command.getLastMessageId.request_id, data, mark_delete
        )

    return answer


def moved(end: BrokerEnd, command: BaseCommand) -> list[bytes]:
    return [
        commands.close_consumer(command.seek.consumer_id),
        commands.success(command.seek.request_id),
    ]


def stays(end: BrokerEnd, command: BaseCommand) -> bytes:
    return commands.success(command.seek.request_id)


def starts(broker: ScriptedBroker) -> list[tuple[int, int, int]]:
    ids = [each.subscribe.start_message_id for each in broker.of(BaseCommand.SUBSCRIBE)]
    return [(each.ledgerId, each.entryId, each.batch_index) for each in ids]


@pytest.mark.parametrize(
    ("last", "position", "is_inclusive", "expected"),
    [
        (MessageId(1, 5), MessageId(1, 4), False, True),
        (MessageId(1, 5), MessageId(1, 5), False, False),
        (MessageId(1, 5), MessageId(1, 5), True, True),
        (MessageId(1, 5), MessageId(1, 6), True, False),
        (MessageId(1, 5, batch_index=3), MessageId(1, 5, batch_index=2), False, True),
        (MessageId(1, 5, batch_index=3), MessageId(1, 5, batch_index=3), False, False),
        (MessageId(1, 5, batch_index=3), MessageId(1, 5), False, False),
        (MessageId(1, 0), EARLIEST_MESSAGE_ID, False, True),
    ],
)
def test_what_comes_after(
    last: MessageId, position: MessageId, *, is_inclusive: bool, expected: bool
) -> None:
    assert is_after(last, position, is_inclusive=is_inclusive) is expected


@simulated
async def test_availability_by_what_was_received(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.GET_LAST_MESSAGE_ID] = last_is(1)
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        for entry_id in range(2):
            deliver(broker, (1, entry_id))
            assert await consumer.has_message_available()
            await consumer.receive()
        assert not await consumer.has_message_available()
        assert await consumer.get_last_message_id() == MessageId(1, 1)


@simulated
async def test_availability_where_nothing_was_received(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        broker.script[BaseCommand.GET_LAST_MESSAGE_ID] = last_is(-1)
        assert not await consumer.has_message_available()
        broker.script[BaseCommand.GET_LAST_MESSAGE_ID] = last_is(5, mark_delete=Position(1, 4))
        assert await consumer.has_message_available()
        broker.script[BaseCommand.GET_LAST_MESSAGE_ID] = last_is(5, mark_delete=Position(1, 5))
        assert not await consumer.has_message_available()
        reader = await open_consumer(client, start=MessageId(1, 4), **READER)
        assert await reader.has_message_available()
        latest = await open_consumer(client, start=LATEST_MESSAGE_ID, **READER)
        assert not await latest.has_message_available()


@simulated
async def test_a_reader_begins_after_the_last_message_it_had(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, start=EARLIEST_MESSAGE_ID, **READER)
        deliver(broker, (1, 0), batch([b"a", b"b", b"c"]))
        await consumer.receive()
        await consumer.receive()
        broker.end.cut()
        await asyncio.sleep(1)
        assert starts(broker)[1] == (1, 0, 1)
        deliver(broker, (1, 0), batch([b"a", b"b", b"c"]))
        assert (await consumer.receive()).data() == b"c"


@simulated
async def test_a_reader_that_had_none_begins_before_the_first_that_waits(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, start=LATEST_MESSAGE_ID, **READER)
        deliver(broker, (1, 7))
        await asyncio.sleep(0.01)
        broker.end.cut()
        await asyncio.sleep(1)
        assert starts(broker)[1][:2] == (1, 6)
        deliver(broker, (1, 6))
        deliver(broker, (1, 7))
        assert (await consumer.receive()).data() == b"1:7"


@simulated
async def test_a_reader_begins_before_the_first_that_a_batch_in_the_making_has(
    broker: ScriptedBroker,
) -> None:
    policy = ConsumerBatchReceivePolicy(3, -1, -1)
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client, start=LATEST_MESSAGE_ID, batch_receive_policy=policy, **READER
        )
        collecting = spawn(consumer.batch_receive())
        deliver(broker, (1, 7))
        deliver(broker, (1, 8))
        await asyncio.sleep(0.01)
        broker.end.cut()
        await asyncio.sleep(1)
        assert starts(broker)[1][:2] == (1, 6)
        for entry_id in (6, 7, 8, 9):
            deliver(broker, (1, entry_id))
        assert [each.data() for each in await collecting] == [b"1:7", b"1:8", b"1:9"]


@simulated
async def test_a_seek_begins_anew_at_its_target(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEEK] = moved
    async with new_client(broker) as client:
        consumer = await open_consumer(client, start=EARLIEST_MESSAGE_ID, **READER)
        deliver(broker, (1, 0))
        await consumer.receive()
        deliver(broker, (1, 1))
        await consumer.seek(MessageId(1, 5))
        assert starts(broker)[1][:2] == (1, 5)
        assert consumer.receive_nowait() is None
        deliver(broker, (1, 5))
        deliver(broker, (1, 6))
        assert (await consumer.receive()).data() == b"1:6"


@simulated
async def test_a_seek_that_closes_nobody_clears_the_queue(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEEK] = stays
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        await consumer.seek(1234)
        assert consumer.receive_nowait() is None
        assert broker.of(BaseCommand.SEEK)[0].seek.message_publish_time == 1234


@simulated
async def test_a_refused_seek_changes_nothing(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEEK] = lambda end, command: commands.error(
        command.seek.request_id, ServerError.UnknownError, "already resetting"
    )
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        with pytest.raises(UnknownServiceError, match="already resetting"):
            await consumer.seek(MessageId(1, 5))
        assert (await consumer.receive()).data() == b"1:0"


@simulated
async def test_requests_survive_a_lost_connection(broker: ScriptedBroker) -> None:
    attempts: list[None] = []

    def first_lost(end: BrokerEnd, command: BaseCommand) -> bytes | None:
        attempts.append(None)
        if len(attempts) == 1:
            end.cut()
            return None
        return last_is(3)(end, command)

    broker.script[BaseCommand.GET_LAST_MESSAGE_ID] = first_lost
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        assert await consumer.get_last_message_id() == MessageId(1, 3)
        assert len(attempts) == 2


@simulated
async def test_requests_that_cross_the_end_of_the_consumer_are_repeated(
    broker: ScriptedBroker,
) -> None:
    def closed_before(end: BrokerEnd, command: BaseCommand) -> list[bytes]:
        broker.script[BaseCommand.SEEK] = moved
        consumer_id, request_id = command.seek.consumer_id, command.seek.request_id
        return [
            commands.close_consumer(consumer_id),
            commands.error(request_id, ServerError.MetadataError, "Consumer not found"),
        ]

    broker.script[BaseCommand.SEEK] = closed_before
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        await consumer.seek(5)
        assert len(broker.of(BaseCommand.SEEK)) == 2
        assert consumer.is_connected()


@simulated
async def test_a_refusal_with_the_consumer_still_there_is_final(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEEK] = lambda end, command: commands.error(
        command.seek.request_id, ServerError.MetadataError, "Message id was not present"
    )
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        with pytest.raises(ServiceMetadataError, match="was not present"):
            await consumer.seek(5)
        assert len(broker.of(BaseCommand.SEEK)) == 1


@simulated
async def test_requests_end_with_the_operation_timeout(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        for call in (
            consumer.get_last_message_id(),
            consumer.seek(5),
            consumer.broker_statistics(),
        ):
            began = asyncio.get_running_loop().time()
            with pytest.raises(ClientTimeoutError, match="persistent://public/default/t"):
                await call
            assert asyncio.get_running_loop().time() - began <= 5.1
