"""An acknowledgement with receipt is on the broker when it returns, grouped or not."""

from __future__ import annotations

import pytest

from pulsar_py import Broker, Client
from pulsar_py.client.shared.enums import ConsumerType, InitialPosition
from pulsar_py.common.message_id import MessageId


@pytest.mark.parametrize("group_millis", [0, 20])
@pytest.mark.parametrize("is_cumulative", [False, True])
async def test_a_receipt_follows_the_broker(group_millis: int, *, is_cumulative: bool) -> None:
    async with Broker() as broker, Client(broker.service_url) as client:
        async with await client.create_producer("acks") as producer:
            sent = [await producer.send(b"%d" % index) for index in range(3)]
        consumer = await client.subscribe(
            "acks",
            "s",
            consumer_type=ConsumerType.Failover,
            initial_position=InitialPosition.Earliest,
            ack_receipt_enabled=True,
            ack_grouping_time_ms=group_millis,
        )
        if is_cumulative:
            await consumer.acknowledge_cumulative(MessageId(*sent[1].position))
        else:
            await consumer.acknowledge([MessageId(*each.position) for each in sent[:2]])
        client.shutdown()  # nothing that was not sent is sent any more
        async with (
            Client(broker.service_url) as other,
            await other.subscribe("acks", "s", consumer_type=ConsumerType.Failover) as again,
        ):
            assert (await again.receive()).data() == b"2"
