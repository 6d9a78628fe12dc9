"""The statistics of partitions are added up."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from pulsar_py.admin.json_text import json_pieces, without_nulls
from pulsar_py.admin.resources.partitioned_stats_json import PartitionedStats
from pulsar_py.admin.resources.topic_stats_json import topic_stats_json
from pulsar_py.common.loops.work import Turns
from tests.unit.admin.resources.test_topic_stats_json import TOPIC

Json = dict[str, Any]


async def sum_of(parts: Mapping[str, Json], *, per_partition: bool = True) -> Json:
    stats = PartitionedStats(Turns(), partitions_count=len(parts), per_partition=per_partition)
    for name, part in parts.items():
        await stats.add(name, part)
    return json.loads("".join(json_pieces(await stats.json())))  # type: ignore[no-any-return]


async def test_partitions_are_added_up_by_name() -> None:
    one = await topic_stats_json(TOPIC, Turns(), is_persistent=True, owner_broker="b:1")
    before = copy.deepcopy(one)
    stats = await sum_of({"a": one, "b": one})
    assert one == before
    assert stats["msgInCounter"] == 14
    assert stats["subscriptions"]["s"]["msgBacklog"] == 8
    assert len(stats["subscriptions"]["s"]["consumers"]) == 1
    assert stats["subscriptions"]["s"]["consumers"][0]["msgOutCounter"] == 6
    assert stats["subscriptions"]["s"]["durable"] is True
    assert len(stats["publishers"]) == 1
    assert stats["oldestBacklogMessageAgeSeconds"] == -1
    assert stats["metadata"] == {"partitions": 2, "deleted": False}
    assert stats["partitions"] == {"a": without_nulls(one), "b": without_nulls(one)}
    assert "ownerBroker" not in stats


async def test_partitions_are_shown_on_request_only() -> None:
    one = await topic_stats_json(TOPIC, Turns(), is_persistent=True, owner_broker="b:1")
    assert (await sum_of({"a": one}, per_partition=False))["partitions"] == {}


async def test_of_no_partitions_there_is_nothing_to_add() -> None:
    metadata = {"partitions": 0, "deleted": False}
    assert await sum_of({}) == {"metadata": metadata, "partitions": {}}


async def test_other_names_stay_apart() -> None:
    def part(name: str) -> Json:
        consumers = [{"consumerName": name, "msgOutCounter": 1}]
        return {
            "publishers": [{"producerName": name, "msgRateIn": 1.0}],
            "subscriptions": {name: {"consumers": consumers}, "both": {"consumers": consumers}},
        }

    stats = await sum_of({"0": part("a"), "1": part("b")})
    assert [each["producerName"] for each in stats["publishers"]] == ["a", "b"]
    assert list(stats["subscriptions"]) == ["a", "both", "b"]
    assert [each["consumerName"] for each in stats["subscriptions"]["both"]["consumers"]] == [
        "a",
        "b",
    ]


async def test_what_is_no_sum_is_not_added() -> None:
    def part(rate: float, size: float, first: int, acked: str) -> Json:
        consumer = {
            "consumerName": "c",
            "avgMessagesPerEntry": 3,
            "lastAckedTime": acked,
            "firstConsumedFlowTimestamp": first,
        }
        backlog = {"consumers": [consumer], "backlogSize": -1}
        return {
            "msgRateIn": rate,
            "msgThroughputIn": rate * size,
            "averageMsgSize": size,
            "topicEpoch": 2,
            "earliestMsgPublishTimeInBacklogs": first,
            "publishers": [{"producerName": "p", "producerId": 7}],
            "subscriptions": {"s": backlog},
        }

    stats = await sum_of({"0": part(1.0, 10, 0, "2026"), "1": part(3.0, 30, 5, "2025")})
    assert stats["averageMsgSize"] == (10 + 3 * 30) / 4
    assert stats["topicEpoch"] == 2
    assert stats["earliestMsgPublishTimeInBacklogs"] == 5
    assert stats["publishers"][0]["producerId"] == 7
    subscription = stats["subscriptions"]["s"]
    assert subscription["backlogSize"] == -1
    (consumer,) = subscription["consumers"]
    assert consumer["avgMessagesPerEntry"] == 3
    assert consumer["lastAckedTime"] == "2026"
    assert consumer["firstConsumedFlowTimestamp"] == 5
