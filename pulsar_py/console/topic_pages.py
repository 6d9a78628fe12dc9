"""Resource of the data for the pages of a topic and of a subscription.

    GET /admin/console/topic/{domain}/{tenant}/{namespace}/{topic}                  the topic
    GET …/{topic}/subscription/{subscription}                                       a subscription

    query       search, after, limit   which subscriptions (or consumers) the answer has; see
                                       `listings`

A partitioned topic has sums over its partitions and a line for each of the first `MAX_PARTITIONS`.
Whatever a topic holds, an answer has `MAX_LINES` producers and a page of subscriptions at the most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import subscription_not_found
from pulsar_py.admin.resources.topic_access import (
    as_partition,
    partitions_in_turns,
    require_namespace,
    require_topic,
)
from pulsar_py.admin.resources.topic_stats_json import (
    consumer_json,
    publisher_json,
    standstill_json,
)
from pulsar_py.admin.router import Route, get
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import TopicName
from pulsar_py.console.answers import SubscriptionAnswer, TopicAnswer
from pulsar_py.console.callers import BASE
from pulsar_py.console.listings import PAGE, ListPage, page_of
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic import Topic

__all__ = ["SUBSCRIPTION", "TOPIC", "TopicPages", "parts_of"]

DOMAIN: Final = "{domain:persistent|non-persistent}"
TOPIC: Final = BASE + "/topic/" + DOMAIN + "/{tenant}/{namespace}/{topic}"
SUBSCRIPTION: Final = TOPIC + "/subscription/{subscription}"

MAX_PARTITIONS: Final = 200
MAX_LINES: Final = 100

Json = dict[str, Any]  # Any: JSON of many shapes


async def parts_of(broker: BrokerService, name: TopicName) -> list[Topic]:
    """The topic, or the partitions of a partitioned one, loaded.

    Raises:
        HttpError: 404, there is none; 503, another broker serves a partition.
        RedirectError: Another broker serves the topic.
    """
    await require_namespace(broker, name.namespace_name)
    count = await broker.topics.partitioned.count(name)
    if not count:
        return [await require_topic(broker, name)]
    found: list[Topic] = []
    async for part in partitions_in_turns(name, count):
        with as_partition(part):
            found.append(await require_topic(broker, part))
    return found


class TopicPages:
    """Shows topics and subscriptions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC, self.topic, Action.GET_STATS, *PAGE, answer=TopicAnswer),
            get(
                SUBSCRIPTION,
                self.subscription,
                Action.GET_STATS,
                *PAGE,
                answer=SubscriptionAnswer,
            ),
        )

    async def topic(self, request: Request) -> Response:
        """Return a topic with a page of its subscriptions."""
        name, page, turns = topic_of(request), ListPage.of(request), Turns()
        topics = await parts_of(self._broker, name)
        sums: Counter[str] = Counter()
        by_name: dict[str, list[SubscriptionStats]] = {}
        partitions: list[Json] = []
        producers: list[Json] = []
        for topic in topics:
            stats = await topic.stats_in_turns(turns)
            line = _totals(stats)
            sums.update(line)
            for subscription, each in stats.subscriptions.items():
                await turns.take()
                by_name.setdefault(subscription, []).append(each)
            if topic.name != name and len(partitions) < MAX_PARTITIONS:
                partitions.append({"name": str(topic.name), **line})
            for producer in islice(stats.producers, MAX_LINES - len(producers)):
                await turns.take(10)
                shown = publisher_json(producer, is_persistent=name.is_persistent)
                producers.append({"topic": str(topic.name), **shown})
        shown_names, total = await page_of(by_name, page, turns)
        lines = [_subscription_line(each, by_name[each]) for each in shown_names[: page.limit]]
        return json_response(
            {
                "name": str(name),
                "partitions": len(topics) if partitions else 0,
                "totals": dict(sums),
                "partitionLines": partitions,
                "producers": producers,
                "subscriptions": {
                    "items": lines,
                    "more": len(shown_names) > page.limit,
                    "total": total,
                },
                "ledger": _ledger(topics[0]) if len(topics) == 1 else None,
            }
        )

    async def subscription(self, request: Request) -> Response:
        """Return a subscription: its figures, why it stands still, a page of its consumers."""
        name, wanted = topic_of(request), request.path["subscription"]
        page, turns = ListPage.of(request), Turns()
        found: list[SubscriptionStats] = []
        parts: list[Json] = []
        consumers: dict[str, tuple[str, ConsumerStats]] = {}
        for topic in await parts_of(self._broker, name):
            subscription = topic.subscriptions.get(wanted)
            if subscription is None:
                continue
            stats = await subscription.stats_in_turns(turns)
            found.append(stats)
            part: Json = {"topic": str(topic.name), "backlog": stats.backlog_entries}
            if isinstance(subscription, PersistentSubscription):
                part |= standstill_json(topic.name, subscription)
                part["cursor"] = _cursor(subscription)
            parts.append(part)
            for number, each in enumerate(stats.consumers):
                await turns.take()
                key = f"{each.consumer_name} {topic.name.partition_index:05} {number:06}"
                consumers[key] = str(topic.name), each
        if not found:
            raise subscription_not_found(name, wanted, is_partitioned=False)
        keys, total = await page_of(consumers, page, turns)
        return json_response(
            {
                "topic": str(name),
                **_subscription_line(wanted, found),
                "parts": parts[:MAX_PARTITIONS],
                "consumerLines": {
                    "items": [_consumer_line(key, *consumers[key]) for key in keys[: page.limit]],
                    "more": len(keys) > page.limit,
                    "total": total,
                },
            }
        )


def _totals(stats: TopicStats) -> dict[str, float]:
    return {
        "messageInRate": stats.message_in_rate,
        "bytesInRate": stats.bytes_in_rate,
        "messageOutRate": stats.message_out_rate,
        "bytesOutRate": stats.bytes_out_rate,
        "messagesIn": stats.messages_in_count,
        "bytesIn": stats.bytes_in_count,
        "messagesOut": stats.messages_out_count,
        "bytesOut": stats.bytes_out_count,
        "storageBytes": stats.storage_bytes,
        "backlogBytes": stats.backlog_bytes,
        "producers": len(stats.producers),
    }


def _subscription_line(name: str, found: list[SubscriptionStats]) -> Json:
    properties: Mapping[str, str] = found[0].properties
    return {
        "name": name,
        "type": next((each.subscription_type for each in found if each.subscription_type), None),
        "isDurable": found[0].is_durable,
        "backlog": sum(each.backlog_entries for each in found),
        "backlogBytes": sum(each.backlog_bytes for each in found),
        "delayed": sum(each.delayed_entries for each in found),
        "unacked": sum(each.unacked_messages for each in found),
        "holes": sum(each.non_contiguous_deleted_ranges_count for each in found),
        "messageOutRate": sum(each.message_out_rate for each in found),
        "ackRate": sum(each.acked_rate for each in found),
        "redeliverRate": sum(each.redelivered_rate for each in found),
        "consumers": sum(len(each.consumers) for each in found),
        "lastConsumedMillis": max(each.last_consumed_millis for each in found),
        "lastAckedMillis": max(each.last_acked_millis for each in found),
        "standing": sorted({cause for each in found for cause in each.standstill}),
        "properties": dict(islice(properties.items(), MAX_LINES)),
    }


def _consumer_line(key: str, topic: str, stats: ConsumerStats) -> Json:
    shown = consumer_json(stats)
    for long in ("keyHashRanges", "keyHashRangeArrays", "drainingHashes"):
        shown.pop(long, None)
    return {"key": key, "topic": topic, **shown}


def _cursor(subscription: PersistentSubscription) -> Json:
    cursor = subscription.cursor
    return {
        "markDeletePosition": str(cursor.mark_delete_position),
        "readPosition": str(cursor.read_position),
        "lastPosition": str(subscription.ledger.last_confirmed_entry),
    }


def _ledger(topic: Topic) -> Json | None:
    if not isinstance(topic, PersistentTopic):
        return None
    ledger = topic.ledger
    return {
        "entries": ledger.entries_count,
        "ledgers": len(ledger.ledgers.ledgers),
        "firstPosition": str(ledger.first_position),
        "lastPosition": str(ledger.last_confirmed_entry),
        "isTerminated": ledger.is_terminated,
    }
