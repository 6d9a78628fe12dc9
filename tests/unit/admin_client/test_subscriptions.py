"""Calls about subscriptions are those of pulsar-admin."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import subscriptions
from pulsar_py.admin_client.call import Call
from pulsar_py.admin_client.records import EARLIEST, LATEST, ResetCursorData
from tests.unit.admin_client.recorded_calls import SUBSCRIPTION, TOPIC, was_recorded

AT = ResetCursorData(ledger_id=3, entry_id=4)
AFTER = ResetCursorData(ledger_id=3, entry_id=4, excluded=True)
WITH_PROPERTIES = ResetCursorData(ledger_id=3, entry_id=4, properties={"a": "b"})
CALLS: list[Call[Any]] = [
    subscriptions.subscriptions(TOPIC),
    subscriptions.create_subscription(TOPIC, SUBSCRIPTION, WITH_PROPERTIES, replicated=True),
    subscriptions.delete_subscription(TOPIC, SUBSCRIPTION, force=True),
    subscriptions.skip(TOPIC, SUBSCRIPTION, 3),
    subscriptions.clear_backlog(TOPIC, SUBSCRIPTION),
    subscriptions.expire_older(TOPIC, SUBSCRIPTION, 7200),
    subscriptions.expire_until(TOPIC, SUBSCRIPTION, AFTER),
    subscriptions.expire_older_on_all(TOPIC, 7200),
    subscriptions.reset_to_position(TOPIC, SUBSCRIPTION, AT),
    subscriptions.reset_to_position(TOPIC, SUBSCRIPTION, AFTER),
    subscriptions.reset_to_position("x", "s", LATEST),
    subscriptions.reset_to_position("x", "s", EARLIEST),
    subscriptions.analyze_backlog(TOPIC, SUBSCRIPTION),
    subscriptions.analyze_backlog(TOPIC, SUBSCRIPTION, AT),
    subscriptions.properties(TOPIC, SUBSCRIPTION),
    subscriptions.replicated_status(TOPIC, SUBSCRIPTION),
    subscriptions.set_replicated_status(TOPIC, SUBSCRIPTION, replicated=True),
    subscriptions.peek(TOPIC, SUBSCRIPTION, 2),
    subscriptions.message(TOPIC, 8, 8),
    subscriptions.examine(TOPIC, from_end="earliest", number=8),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)


def test_a_new_subscription_begins_at_the_end() -> None:
    call = subscriptions.create_subscription("x", "s")
    assert call.body == {
        "ledgerId": 2**63 - 1,
        "entryId": 2**63 - 1,
        "partitionIndex": -1,
        "batchIndex": -1,
        "excluded": False,
    }


def test_a_time_is_part_of_the_path() -> None:
    call = subscriptions.reset_to_time("x", "s", 17)
    assert call.path.endswith("/subscription/s/resetcursor/17")


def test_properties_are_replaced() -> None:
    call = subscriptions.set_properties("x", "s", {"a": "b"})
    assert (call.method, call.body) == ("PUT", {"a": "b"})


def test_what_moves_a_subscription_says_so() -> None:
    assert "subscription s" in subscriptions.skip("x", "s", 1).destroys
    assert not subscriptions.peek("x", "s", 1).destroys
