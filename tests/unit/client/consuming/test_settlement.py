from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.consuming.consumer_interceptor import ConsumerInterceptor
from pulsar_py.client.messages.message import Message
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import (
    AlreadyClosedError,
    CumulativeAcknowledgementNotAllowedError,
    InvalidMessageError,
    PulsarError,
    ServiceError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import (
    acked_entries,
    confirm_acks,
    deliver,
    new_client,
    open_consumer,
    redeliveries,
)
from tests.unit.client.entries import batch


@simulated
async def test_messages_ids_and_lists_are_acknowledged(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_grouping_time_ms=0)
        deliver(broker, (1, 0), batch([b"a", b"b"]))
        for entry_id in (1, 2):
            deliver(broker, (1, entry_id))
        found = [await consumer.receive() for _ in range(4)]
        await consumer.acknowledge(found[0])
        await consumer.acknowledge(found[1].message_id())
        await consumer.acknowledge([found[2], found[3].message_id(), MessageId(1, 9)])
        await asyncio.sleep(0.01)
        assert acked_entries(broker) == [[0], [1], [2], [9]]
        assert consumer.statistics().acks_sent == 5
        with pytest.raises(InvalidMessageError, match="got 'x'"):
            await consumer.acknowledge("x")


@simulated
async def test_nothing_of_a_list_with_something_else_is_acknowledged(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_grouping_time_ms=0)
        with pytest.raises(InvalidMessageError, match="got 'x'"):
            await consumer.acknowledge([MessageId(1, 0), "x"])
        await asyncio.sleep(1)
        assert acked_entries(broker) == []


@simulated
async def test_a_shared_subscription_has_no_cumulative_acknowledgements(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_type=ConsumerType.Shared)
        with pytest.raises(
            CumulativeAcknowledgementNotAllowedError, match="Shared subscription can't acknowledge"
        ):
            await consumer.acknowledge_cumulative(MessageId(1, 0))
        await asyncio.sleep(1)
        assert (acked_entries(broker), consumer.statistics().acks_sent) == ([], 0)


class Listening(ConsumerInterceptor):
    """Keeps what it is told of acknowledgements."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, bool]] = []

    def on_acknowledge(
        self, consumer: object, message_id: MessageId, error: Exception | None
    ) -> None:
        self.told.append(("one", message_id.entry_id, error is None))

    def on_acknowledge_cumulative(
        self, consumer: object, message_id: MessageId, error: Exception | None
    ) -> None:
        self.told.append(("until", message_id.entry_id, error is None))


@simulated
async def test_interceptors_hear_of_each_acknowledgement_and_whether_it_was_confirmed(
    broker: ScriptedBroker,
) -> None:
    def refuse(end: object, command: BaseCommand) -> bytes:
        ack = command.ack
        return commands.ack_response(
            ack.consumer_id, ack.request_id, code=ServerError.MetadataError, message="no"
        )

    confirm_acks(broker)
    listening = Listening()
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True, interceptors=[listening])
        await consumer.acknowledge([MessageId(1, 0), MessageId(1, 1)])
        await consumer.acknowledge_cumulative(MessageId(1, 2))
        assert listening.told == [("one", 0, True), ("one", 1, True), ("until", 2, True)]
        listening.told.clear()
        broker.script[BaseCommand.ACK] = refuse
        with pytest.raises(ServiceError):
            await consumer.acknowledge(MessageId(1, 3))
        with pytest.raises(PulsarError):
            await consumer.acknowledge_cumulative(MessageId(1, 4))
        assert listening.told == [("one", 3, False), ("until", 4, False)]
        assert consumer.statistics().ack_failures == 2


@simulated
async def test_interceptors_hear_at_once_where_nothing_is_confirmed(
    broker: ScriptedBroker,
) -> None:
    listening = Listening()
    async with new_client(broker) as client:
        consumer = await open_consumer(client, interceptors=[listening])
        deliver(broker, (1, 0))
        await consumer.acknowledge(await consumer.receive())
        await consumer.acknowledge_cumulative(MessageId(1, 2))
        assert listening.told == [("one", 0, True), ("until", 2, True)]


@simulated
async def test_what_is_done_is_watched_no_more(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client,
            consumer_type=ConsumerType.Shared,
            unacked_messages_timeout_ms=5000,
            negative_ack_redelivery_delay_ms=1000,
        )
        for entry_id in range(4):
            deliver(broker, (1, entry_id))
        messages = [await consumer.receive() for _ in range(4)]
        for message in messages[:3]:
            consumer.negative_acknowledge(message)
        await consumer.acknowledge(messages[0])
        await consumer.acknowledge(messages[1].message_id())
        await consumer.acknowledge([messages[3], MessageId(1, 2)])
        await asyncio.sleep(30)
        assert redeliveries(broker) == []


@simulated
async def test_asking_again_may_be_awaited(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, negative_ack_redelivery_delay_ms=10)
        deliver(broker, (1, 0))
        await consumer.negative_acknowledge(await consumer.receive())
        await consumer.redeliver_unacknowledged_messages()
        await consumer.close()
        with pytest.raises(AlreadyClosedError):
            await consumer.negative_acknowledge(MessageId(1, 0))


@simulated
async def test_a_value_of_any_kind_may_be_refused(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, negative_ack_redelivery_delay_ms=10)
        deliver(broker, (1, 0))
        message: Message = await consumer.receive()
        consumer.negative_acknowledge(message)
        consumer.negative_acknowledge(message.message_id())
        consumer.negative_acknowledge(MessageId(1, 7))
        await consumer.close()
        with pytest.raises(AlreadyClosedError):
            consumer.negative_acknowledge(message)
        consumer.redeliver_unacknowledged_messages()
        consumer.redeliver([(1, 0)])
