"""`BrokerConsumerStatistics`: a broker's figures about a consumer (values).

The client's own figures are `statistics.ConsumerStatistics`.

Source: BrokerConsumerStats in Pulsar's C++ client; CommandConsumerStatsResponse in PulsarApi.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pulsar_py.common.message_id import to_signed
from pulsar_py.proto.PulsarApi_pb2 import CommandConsumerStatsResponse

__all__ = ["BrokerConsumerStatistics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConsumerStatistics:
    """A consumer as its broker sees it."""

    message_rate_out: float
    """Messages a second that the broker sent."""
    message_throughput_out: float
    """Bytes a second."""
    message_rate_redeliver: float
    consumer_name: str
    available_permits: int
    """Messages it may still send; below 0 after a batch with more messages than permits."""
    unacked_messages: int
    is_blocked_on_unacked_messages: bool
    """Whether it sends no more until some are acknowledged."""
    address: str
    connected_since: str
    type: str
    message_rate_expired: float
    message_backlog: int
    """Messages of the subscription that are not acknowledged."""
    message_ack_rate: float

    @classmethod
    def of(cls, response: CommandConsumerStatsResponse) -> Self:
        """Parse the broker's answer."""
        return cls(
            message_rate_out=response.msgRateOut,
            message_throughput_out=response.msgThroughputOut,
            message_rate_redeliver=response.msgRateRedeliver,
            consumer_name=response.consumerName,
            available_permits=to_signed(response.availablePermits),
            unacked_messages=to_signed(response.unackedMessages),
            is_blocked_on_unacked_messages=response.blockedConsumerOnUnackedMsgs,
            address=response.address,
            connected_since=response.connectedSince,
            type=response.type,
            message_rate_expired=response.msgRateExpired,
            message_backlog=to_signed(response.msgBacklog),
            message_ack_rate=response.messageAckRate,
        )
