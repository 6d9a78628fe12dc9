from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionClosedError,
    ServiceError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.scripted_broker import ScriptedBroker, simulated
from tests.unit.client.consumer_parts import (
    acked_entries,
    acks,
    confirm_acks,
    deliver,
    new_client,
    open_consumer,
    spawn,
)


@simulated
async def test_acknowledgements_go_out_together_after_a_while(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        for entry_id in range(3):
            await consumer.acknowledge(MessageId(1, entry_id))
        await asyncio.sleep(0.09)
        assert acks(broker) == []
        await asyncio.sleep(0.02)
        assert acked_entries(broker) == [[0, 1, 2]]
        await asyncio.sleep(10)
        assert len(acks(broker)) == 1


@simulated
async def test_near_its_end_a_group_goes_out_behind_the_next_message(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        for entry_id in range(75):
            await consumer.acknowledge(MessageId(1, entry_id))
            await asyncio.sleep(0.001)
        assert acks(broker) == []
        await asyncio.sleep(0.0005)
        assert acks(broker) == [], "not by itself"
        await consumer.acknowledge(MessageId(1, 75))
        await asyncio.sleep(0.001)
        assert acked_entries(broker) == [list(range(76))]
        await consumer.acknowledge(MessageId(1, 76))
        await asyncio.sleep(0.099)
        assert len(acks(broker)) == 1, "the next group has its whole time"
        await asyncio.sleep(0.002)
        assert acked_entries(broker)[1:] == [[76]]


@simulated
async def test_a_full_group_goes_out_at_once(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_grouping_max_size=2)
        for entry_id in range(5):
            await consumer.acknowledge(MessageId(1, entry_id))
        await asyncio.sleep(0.01)
        assert acked_entries(broker) == [[0, 1], [2, 3]]


@simulated
async def test_without_grouping_each_goes_out(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_grouping_time_ms=0)
        await consumer.acknowledge(MessageId(1, 0))
        await consumer.acknowledge_cumulative(MessageId(1, 5))
        await asyncio.sleep(0.01)
        assert acked_entries(broker) == [[0], [5]]


@simulated
async def test_without_a_connection_they_wait_for_one(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        broker.end.cut()
        await asyncio.sleep(0)
        await consumer.acknowledge(MessageId(1, 0))
        await asyncio.sleep(1)
        assert consumer.is_connected()
        assert acked_entries(broker) == [[0]]
        names = broker.types()
        assert names.index("ACK") < len(names) - 1 - names[::-1].index("FLOW"), "before permits"


@simulated
async def test_a_receipt_is_waited_for(broker: ScriptedBroker) -> None:
    confirm_acks(broker)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        first = spawn(consumer.acknowledge(MessageId(1, 0)))
        second = spawn(consumer.acknowledge(MessageId(1, 1)))
        await asyncio.sleep(0)
        assert not first.done()
        await asyncio.gather(first, second)
        assert acked_entries(broker) == [[0, 1]]


@simulated
async def test_whoever_waits_for_a_receipt_does_not_wait_for_others(broker: ScriptedBroker) -> None:
    confirm_acks(broker)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        began = asyncio.get_running_loop().time()
        for entry_id in range(20):
            await consumer.acknowledge(MessageId(1, entry_id))
        assert asyncio.get_running_loop().time() - began < 0.1, "the group time of one"
        assert acked_entries(broker) == [[entry_id] for entry_id in range(20)]


@simulated
async def test_what_comes_while_a_receipt_is_awaited_goes_out_together(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        waiting = [spawn(consumer.acknowledge(MessageId(1, 0)))]
        await asyncio.sleep(0.01)
        for entry_id in range(1, 5):
            waiting.append(spawn(consumer.acknowledge(MessageId(1, entry_id))))
            await asyncio.sleep(0.01)
        assert acked_entries(broker) == [[0]]
        (first,) = acks(broker)
        confirm_acks(broker)
        broker.end.push(commands.ack_response(first.consumer_id, first.request_id))
        await asyncio.gather(*waiting)
        assert acked_entries(broker) == [[0], [1, 2, 3, 4]]


@simulated
async def test_a_silent_broker_holds_nothing_back_for_longer_than_the_group_time(
    broker: ScriptedBroker,
) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        waiting = [spawn(consumer.acknowledge(MessageId(1, 0)))]
        await asyncio.sleep(0.01)
        waiting.append(spawn(consumer.acknowledge(MessageId(1, 1))))
        await asyncio.sleep(0.15)
        assert acked_entries(broker) == [[0], [1]]
        for each in waiting:
            each.cancel()


@simulated
async def test_a_refused_receipt_is_raised(broker: ScriptedBroker) -> None:
    def refuse(end: object, command: BaseCommand) -> bytes:
        ack = command.ack
        return commands.ack_response(
            ack.consumer_id, ack.request_id, code=ServerError.MetadataError, message="no"
        )

    broker.script[BaseCommand.ACK] = refuse
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        with pytest.raises(ServiceError, match="no"):
            await consumer.acknowledge(MessageId(1, 0))
        assert consumer.statistics().ack_failures == 1


@simulated
async def test_a_receipt_that_does_not_come(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        with pytest.raises(ClientTimeoutError, match="persistent://public/default/t"):
            await consumer.acknowledge(MessageId(1, 0))


@simulated
async def test_a_receipt_outlives_its_connection(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client, ack_receipt_enabled=True, consumer_type=ConsumerType.Exclusive
        )
        waiting = [spawn(consumer.acknowledge(MessageId(1, entry_id))) for entry_id in range(2)]
        waiting.append(spawn(consumer.acknowledge_cumulative(MessageId(1, 0))))
        await asyncio.sleep(0.05)
        assert acked_entries(broker) == [[0], [0, 1]]
        confirm_acks(broker)
        broker.end.cut()
        await asyncio.sleep(0.01)
        waiting.append(spawn(consumer.acknowledge(MessageId(1, 2))))
        await asyncio.gather(*waiting)
        assert acked_entries(broker)[2:] == [[0], [0, 1, 2]]
        assert consumer.statistics().ack_failures == 0


@simulated
async def test_what_was_lost_does_not_count_after_a_seek(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEEK] = lambda _, command: commands.success(command.seek.request_id)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        waiting = spawn(consumer.acknowledge(MessageId(1, 5)))
        await asyncio.sleep(0.01)
        await consumer.seek(MessageId(1, 0))
        broker.end.cut()
        with pytest.raises(ConnectionClosedError):
            await waiting
        await asyncio.sleep(1)
        assert acked_entries(broker) == [[5]]


@simulated
async def test_a_receipt_that_no_connection_brings_ends_in_time(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        waiting = spawn(consumer.acknowledge(MessageId(1, 0)))
        await asyncio.sleep(0.01)
        broker.close()
        broker.end.cut()
        with pytest.raises(ClientTimeoutError, match="acknowledging"):
            await waiting


@simulated
async def test_cancelling_one_who_waits_leaves_the_others(broker: ScriptedBroker) -> None:
    confirm_acks(broker)
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        first = spawn(consumer.acknowledge(MessageId(1, 0)))
        second = spawn(consumer.acknowledge(MessageId(1, 1)))
        await asyncio.sleep(0.05)
        first.cancel()
        await second
        assert acked_entries(broker) == [[0, 1]]


@simulated
async def test_closing_sends_what_is_left(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        await consumer.acknowledge(MessageId(1, 0))
        await consumer.close()
        names = broker.types()
        assert names.index("ACK") < names.index("CLOSE_CONSUMER")


@simulated
async def test_closing_ends_those_who_wait_for_receipts(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, ack_receipt_enabled=True)
        waiting = spawn(consumer.acknowledge(MessageId(1, 0)))
        await asyncio.sleep(0.01)
        broker.end.cut()
        broker.close()
        await asyncio.sleep(0.01)
        await consumer.close()
        with pytest.raises((AlreadyClosedError, ConnectionClosedError)):
            await waiting


@simulated
async def test_what_is_acknowledged_and_comes_again_is_dropped(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0))
        await consumer.acknowledge(await consumer.receive())
        deliver(broker, (1, 0))
        deliver(broker, (1, 1))
        assert (await consumer.receive()).data() == b"1:1"
