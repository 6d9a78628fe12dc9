from __future__ import annotations

from pulsar_py.client.consuming.broker_statistics import BrokerConsumerStatistics
from pulsar_py.proto.PulsarApi_pb2 import CommandConsumerStatsResponse


def test_numbers_below_zero_are_seen() -> None:
    found = BrokerConsumerStatistics.of(
        CommandConsumerStatsResponse(
            request_id=1, availablePermits=2**64 - 5, msgBacklog=7, consumerName="c"
        )
    )
    assert (found.available_permits, found.message_backlog) == (-5, 7)
    assert found.consumer_name == "c"
