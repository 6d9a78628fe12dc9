from __future__ import annotations

import asyncio

from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import (
    deliver,
    new_client,
    open_consumer,
    permits,
    redeliveries,
)


def consumer_id(broker: ScriptedBroker) -> int:
    return broker.of(BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_id


@simulated
async def test_a_lost_connection_brings_a_new_registration(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        broker.end.cut()
        await asyncio.sleep(0.01)
        assert not consumer.is_connected()
        await asyncio.sleep(1)
        assert consumer.is_connected()
        assert permits(broker) == [1000, 1000]
        assert consumer.receive_nowait() is None, "it will be sent again"


@simulated
async def test_a_consumer_that_the_broker_closed_comes_back(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        broker.end.push(commands.close_consumer(consumer_id(broker)))
        await asyncio.sleep(1)
        assert consumer.is_connected()
        assert len(broker.of(BaseCommand.SUBSCRIBE)) == 2
        assert len(broker.ends) == 1, "the connection was good"


@simulated
async def test_epochs_tell_old_entries_from_new_ones(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, receiver_queue_size=4)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        consumer.redeliver_unacknowledged_messages()
        assert consumer.receive_nowait() is None
        deliver(broker, (1, 1))
        deliver(broker, (1, 2), consumer_epoch=0)
        deliver(broker, (1, 3), consumer_epoch=1)
        assert [(await consumer.receive()).data() for _ in range(2)] == [b"1:1", b"1:3"]
        redeliver = broker.of(BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES)[0]
        assert redeliver.redeliverUnacknowledgedMessages.consumer_epoch == 1
        await asyncio.sleep(0.01)
        assert sum(permits(broker)) == 8
        broker.end.cut()
        await asyncio.sleep(1)
        assert broker.of(BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_epoch == 1


@simulated
async def test_shared_has_no_epochs(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_type=ConsumerType.Shared)
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        consumer.redeliver_unacknowledged_messages()
        await asyncio.sleep(0.01)
        assert redeliveries(broker) == [[]]
        assert consumer.receive_nowait() is None
        deliver(broker, (1, 0))
        assert (await consumer.receive()).data() == b"1:0"


@simulated
async def test_turns_and_the_end_of_the_topic(broker: ScriptedBroker) -> None:
    calls: list[str] = []

    class Listener:
        def became_active(self, *news: object) -> None:
            calls.append("active")

        def became_inactive(self, *news: object) -> None:
            raise RuntimeError("listener")

    async with new_client(broker) as client:
        consumer = await open_consumer(
            client, consumer_type=ConsumerType.Failover, consumer_event_listener=Listener()
        )
        broker.end.push(commands.active_consumer_change(consumer_id(broker), is_active=True))
        await asyncio.sleep(0.01)
        assert consumer.is_active
        broker.end.push(
            commands.active_consumer_change(consumer_id(broker), is_active=False),
            commands.reached_end_of_topic(consumer_id(broker)),
        )
        await asyncio.sleep(0.01)
        assert not consumer.is_active
        assert consumer.has_reached_end_of_topic
        assert consumer.is_connected()
        assert calls == ["active"]


@simulated
async def test_what_is_dead_is_handed_on_though_nobody_receives(broker: ScriptedBroker) -> None:
    taken: list[bytes] = []
    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_type=ConsumerType.Shared)
        consumer.redelivery_filter = lambda message: taken.append(message.data()) or True
        deliver(broker, (1, 0))
        await asyncio.sleep(0.01)
        assert taken == [b"1:0"]
