from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConsumerStatsResponse
from pulsar_py.wire.framing import encode_command
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated
from tests.unit.client.consumer_parts import deliver, new_client, open_consumer
from tests.unit.client.entries import TOPIC, batch


@simulated
async def test_statistics_end_with_their_interval(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client)
        deliver(broker, (1, 0), batch([b"aa", b"bb"]))
        await consumer.receive()
        await asyncio.sleep(2)
        taken = consumer._statistics.take_statistics(asyncio.get_running_loop().time())
        assert (taken.messages_received, taken.receiver_queue_size) == (1, 1)
        assert taken.messages_rate == pytest.approx(0.5, rel=0.1)
        await consumer.receive()
        assert consumer.statistics().messages_received == 1
        assert consumer.statistics().total_messages_received == 2


@simulated
async def test_messages_that_may_time_out_count_as_unacknowledged(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(
            client, consumer_type=ConsumerType.Shared, unacked_messages_timeout_ms=10_000
        )
        deliver(broker, (1, 0))
        deliver(broker, (1, 1))
        message = await consumer.receive()
        assert consumer.statistics().unacknowledged == 1
        await consumer.acknowledge(message)
        assert consumer.statistics().unacknowledged == 0


@simulated
async def test_the_log_tells_consumers_apart(broker: ScriptedBroker) -> None:
    async with new_client(broker) as client:
        consumer = await open_consumer(client, consumer_name="me")
        assert consumer._statistics.statistics_fields() == {
            "topic": TOPIC,
            "subscription": "s",
            "consumer": "me",
        }


@simulated
async def test_the_broker_is_asked_again_when_its_answer_is_old(broker: ScriptedBroker) -> None:
    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        reply = BaseCommand(type=BaseCommand.CONSUMER_STATS_RESPONSE)
        reply.consumerStatsResponse.CopyFrom(
            CommandConsumerStatsResponse(
                request_id=command.consumerStats.request_id,
                msgBacklog=len(broker.of(BaseCommand.CONSUMER_STATS)),
            )
        )
        return encode_command(reply)

    broker.script[BaseCommand.CONSUMER_STATS] = answer
    async with new_client(broker) as client:
        consumer = await open_consumer(client, broker_consumer_stats_cache_time_ms=30_000)
        for backlog in (1, 1, 2):
            assert (await consumer.broker_statistics()).message_backlog == backlog
            await asyncio.sleep(20)
