"""What other brokers answer is read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.admin.resources.topic_stats_json import topic_stats_json
from pulsar_py.client.shared.enums import ConsumerType
from pulsar_py.common.loops.work import Turns
from pulsar_py.console.stats_of_others import topic_stats_of
from tests.unit.console.conftest import ConsoleCalls


def without_nulls(value: Any) -> Any:  # Any: JSON
    """As answers are written."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


async def test_what_a_broker_answers_is_read_back(console: ConsoleCalls) -> None:
    producer = await console.client.create_producer("t", producer_name="shop")
    for number in range(2):
        await console.client.subscribe(
            "t", "s", consumer_type=ConsumerType.Shared, consumer_name=f"c{number}"
        )
    await console.call("PUT", "/admin/v2/persistent/public/default/t/subscription/idle")
    await producer.send(b"x" * 100)
    answer: dict[str, Any] = await console.get("/admin/v2/persistent/public/default/t/stats")
    stats = topic_stats_of(answer)
    again = await topic_stats_json(
        stats, Turns(), is_persistent=True, owner_broker=answer["ownerBroker"]
    )
    read = without_nulls(json.loads(json.dumps(again)))
    shown = (
        "msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut", "bytesInCounter",
        "msgInCounter", "bytesOutCounter", "msgOutCounter", "averageMsgSize", "storageSize",
        "backlogSize", "publishers", "subscriptions",
    )  # fmt: skip
    for key in shown:
        assert read[key] == answer[key], key
    assert stats.subscriptions["idle"].standstill == ("NO_CONSUMERS",)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"msgRateIn": "fast", "publishers": {}, "subscriptions": []},
        {"publishers": [None], "subscriptions": {"s": None}},
        {"publishers": [{"accessMode": "None", "connectedSince": "long ago"}]},
        {"subscriptions": {"s": {"consumers": [7], "standstill": ["NEW", 7], "backlogSize": -1}}},
    ],
)
async def test_what_has_another_form_counts_as_not_said(document: object) -> None:
    stats = topic_stats_of(document)
    assert stats.message_in_rate == 0.0
    assert all(each.connected_since_millis == 0 for each in stats.producers)
    assert all(each.backlog_bytes == 0 for each in stats.subscriptions.values())
    assert all(each.standstill == () for each in stats.subscriptions.values())
