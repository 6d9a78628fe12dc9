from __future__ import annotations

import pytest

from pulsar_py.client.receiving.batch_receive import BatchCollector, ConsumerBatchReceivePolicy
from pulsar_py.common.errors import InvalidConfigurationError
from tests.unit.client.entries import message


def test_the_count_limits() -> None:
    collector = BatchCollector(ConsumerBatchReceivePolicy(2, -1, -1))
    collector.add(message())
    assert collector.has_room_for(message())
    assert not collector.is_full
    collector.add(message())
    assert not collector.has_room_for(message())
    assert collector.is_full


def test_the_bytes_limit_and_one_message_always_fits() -> None:
    collector = BatchCollector(ConsumerBatchReceivePolicy(-1, 10, -1))
    assert collector.has_room_for(message(b"x" * 50))
    collector.add(message(b"x" * 6))
    assert collector.has_room_for(message(b"x" * 4))
    assert not collector.has_room_for(message(b"x" * 5))
    collector.add(message(b"x" * 4))
    assert collector.is_full
    collector.clear()
    assert not collector.is_full
    assert collector.messages == []


def test_the_time_is_in_milliseconds() -> None:
    assert ConsumerBatchReceivePolicy().timeout_seconds == 0.1
    assert ConsumerBatchReceivePolicy(1, -1, -1).timeout_seconds is None


def test_one_limit_is_needed() -> None:
    with pytest.raises(InvalidConfigurationError, match="batch_receive_policy"):
        ConsumerBatchReceivePolicy(-1, 0, -1)
