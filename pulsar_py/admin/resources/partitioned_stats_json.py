"""`PartitionedStats`: adds up the statistics of a topic's partitions.

Of numbers the sum or the largest is taken, of times the largest or the first; averages are made of
the sums. Maps are merged by key, and lists of publishers and consumers by name; of other values
that of the first partition is taken. The time to add a partition depends on its own size alone, and
large ones are added in several turns of the loop.

Source: PartitionedTopicStatsImpl, TopicStatsImpl.add in Pulsar's client API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pulsar_py.admin.http_messages import encoded_part
from pulsar_py.admin.json_text import EncodedJson
from pulsar_py.admin.resources.topic_stats_json import (
    CONSUMER_UNITS,
    PUBLISHER_UNITS,
    SUBSCRIPTION_UNITS,
    Json,
)
from pulsar_py.common.loops.work import Turns

TOPIC_UNITS: Final = 30
"""Units of work that the fields of a topic are, without publishers and subscriptions."""

_LARGEST: Final = frozenset(
    {
        "oldestBacklogMessageAgeSeconds",
        "backlogQuotaLimitSize",
        "backlogQuotaLimitTime",
        "topicCreationTimeStamp",
        "lastPublishTimeStamp",
        "lastPublishTimestamp",
        "topicEpoch",
        "lastMessageIndex",
        "avgMessagesPerEntry",
        "lastAckedTime",
        "lastConsumedTime",
    }
)
"""What is not added up: the largest counts."""

_FIRST: Final = frozenset(
    {
        "earliestMsgPublishTimeInBacklogs",
        "earliestMsgPublishTimeInBacklog",
        "firstMessagesSentTimestamp",
        "firstConsumedFlowTimestamp",
    }
)
"""Times of which the first counts; 0 is none."""

_OF_THE_FIRST: Final = frozenset({"producerId"})


class PartitionedStats:
    """GET `T/partitioned-stats`; made for one answer."""

    def __init__(self, turns: Turns, *, partitions_count: int, per_partition: bool) -> None:
        """`per_partition`: whether the statistics of each partition are shown as well."""
        self._turns = turns
        self._metadata = {"partitions": partitions_count, "deleted": False}
        self._per_partition = per_partition
        self._parts: dict[str, EncodedJson] = {}
        self._is_empty = True  # nothing was added so far
        self._total: Json = {}
        self._publishers: dict[object, Json] = {}
        self._subscriptions: dict[str, Json] = {}
        self._consumers: dict[str, dict[object, Json]] = {}  # by subscription, then by name

    async def add(self, name: str, part: Json) -> None:
        """Take in the statistics of the partition of that name; nobody changes them any more."""
        if self._per_partition:
            self._parts[name] = await encoded_part(part, self._turns)
        self._is_empty = False
        await self._turns.take(TOPIC_UNITS)
        _add(self._total, part, but=("publishers", "subscriptions", "ownerBroker"))
        for publisher in part["publishers"]:
            await self._turns.take(PUBLISHER_UNITS)
            _add(self._publishers.setdefault(publisher.get("producerName"), {}), publisher)
        for subscription, stats in part["subscriptions"].items():
            await self._turns.take(SUBSCRIPTION_UNITS)
            _add(self._subscriptions.setdefault(subscription, {}), stats, but=("consumers",))
            by_name = self._consumers.setdefault(subscription, {})
            for consumer in stats["consumers"]:
                await self._turns.take(CONSUMER_UNITS)
                _add(by_name.setdefault(consumer.get("consumerName"), {}), consumer)

    async def json(self) -> Json:
        """The sum of what was added, and each partition if wanted."""
        for name, stats in self._subscriptions.items():
            await self._turns.take(1 + len(self._consumers[name]) // CONSUMER_UNITS)
            stats["consumers"] = list(self._consumers[name].values())
        for each in (self._total, *self._publishers.values()):
            if (rate := each.get("msgRateIn")) and "averageMsgSize" in each:
                each["averageMsgSize"] = each["msgThroughputIn"] / rate
        if not self._is_empty:
            self._total["publishers"] = list(self._publishers.values())
            self._total["subscriptions"] = self._subscriptions
        return {**self._total, "metadata": self._metadata, "partitions": self._parts}


def _add(total: Json, item: Mapping[str, Any], *, but: tuple[str, ...] = ()) -> None:  # Any: JSON
    """Add the fields of an item to a total, which shares nothing with it that is changed."""
    for key, value in item.items():
        if key in but:
            continue
        if isinstance(value, dict):
            inner = total.setdefault(key, {})
            if isinstance(inner, dict):
                _add(inner, value)
        else:
            total[key] = _merged(key, total[key], value) if key in total else value


def _merged(key: str, left: Any, right: Any) -> Any:  # Any: JSON values of one key
    if key == "standstill":
        return list(dict.fromkeys([*left, *right]))
    if isinstance(left, bool) or isinstance(right, bool):
        return left or right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _merged_number(key, left, right)
    if key in _LARGEST and isinstance(left, str) and isinstance(right, str):
        return max(left, right)
    return left if left is not None else right


def _merged_number(key: str, left: float, right: float) -> float:
    if key in _OF_THE_FIRST:
        return left
    if key in _FIRST:
        return min(left, right) if left and right else left or right
    if key == "backlogSize" and min(left, right) < 0:
        return -1  # nobody asked for it
    is_largest = key in _LARGEST or key.endswith("Timestamp")
    return max(left, right) if is_largest else left + right
