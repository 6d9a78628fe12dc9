"""Calls about brokers and transactions are those of pulsar-admin."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import brokers
from pulsar_py.admin_client.call import Call
from tests.unit.admin_client.recorded_calls import SUBSCRIPTION, TOPIC, was_recorded

CALLS: list[Call[Any]] = [
    brokers.brokers("c1"),
    brokers.leader_broker(),
    brokers.owned_namespaces("c1", "http://h:8080"),
    brokers.health(),
    brokers.health("V2"),
    brokers.version(),
    brokers.dynamic_settings(),
    brokers.changed_settings(),
    brokers.runtime_settings(),
    brokers.internal_settings(),
    brokers.change_setting("maxTenants", "v"),
    brokers.restore_setting("maxTenants"),
    brokers.check_backlog_quotas(),
    brokers.shutdown(max_concurrent_unload_per_second=7, forced=True),
    brokers.metrics(),
    brokers.mbeans(),
    brokers.topics_of_broker(),
    brokers.allocator_stats("default"),
    brokers.coordinators(),
    brokers.coordinator_stats(),
    brokers.coordinator_stats(7),
    brokers.coordinator_internal_stats(7, metadata=True),
    brokers.scale_coordinators(7),
    brokers.transaction_metadata(7, 8),
    brokers.slow_transactions(10_800_000, 7),
    brokers.abort_transaction(8, 8),
    brokers.transaction_buffer_stats(TOPIC, low_water_marks=True, segment_stats=True),
    brokers.transaction_buffer_internal_stats(TOPIC),
    brokers.transaction_in_buffer(TOPIC, 7, 8),
    brokers.pending_ack_stats(TOPIC, SUBSCRIPTION, low_water_marks=True),
    brokers.pending_ack_internal_stats(TOPIC, SUBSCRIPTION),
    brokers.transaction_in_pending_ack(TOPIC, SUBSCRIPTION, 7, 8),
    brokers.position_in_pending_ack(TOPIC, SUBSCRIPTION, 9, 9, 7),
]
OTHERS: list[Call[Any]] = [brokers.load_report()]
"""Whose recorded command sent another request, or got no answer that it took."""


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)


def test_the_load_report() -> None:
    assert OTHERS[0].path == "/admin/v2/broker-stats/load-report"
