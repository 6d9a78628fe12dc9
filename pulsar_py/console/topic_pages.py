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
from collections.abc import AsyncIterator, Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from pulsar_py.admin.http_messages import Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import subscription_not_found
from pulsar_py.admin.resources.topic_access import (
    ask_owner,
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
from pulsar_py.console.stats_of_others import topic_stats_of
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats, SubscriptionStats
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.stats import TopicStats
from pulsar_py.server.topics.topic import Topic

__all__ = ["SUBSCRIPTION", "TOPIC", "TopicPages", "require_parts"]

DOMAIN: Final = "{domain:persistent|non-persistent}"
TOPIC: Final = BASE + "/topic/" + DOMAIN + "/{tenant}/{namespace}/{topic}"
SUBSCRIPTION: Final = TOPIC + "/subscription/{subscription}"

MAX_PARTITIONS: Final = 200
MAX_LINES: Final = 100

Json = dict[str, Any]  # Any: JSON of many shapes


class TopicPart(Struct, frozen=True, kw_only=True):
    """A topic, or a partition of a partitioned one."""

    name: TopicName
    stats: TopicStats
    topic: Topic | None
    """None: another broker serves it."""


async def require_parts(broker: BrokerService, name: TopicName) -> None:
    """Return if there is such a topic, partitioned or not.

    Raises:
        HttpError: 404, there is none.
        RedirectError: Another broker serves the topic, which is not partitioned.
    """
    await require_namespace(broker, name.namespace_name)
    if not await broker.topics.partitioned.count(name):
        await require_topic(broker, name)


async def parts_in_turns(
    broker: BrokerService, name: TopicName, turns: Turns
) -> AsyncIterator[TopicPart]:
    """The topic, or the partitions of a partitioned one, wherever they are served.

    Raises:
        HttpError: 404, there is none.
        RedirectError: Another broker serves the topic, which is not partitioned.
        OtherBrokerError: A broker that serves a partition refused, or could not be reached.
    """
    await require_parts(broker, name)
    count = await broker.topics.partitioned.count(name)
    if not count:
        topic = await require_topic(broker, name)
        yield TopicPart(name=name, stats=await topic.stats_in_turns(turns), topic=topic)
        return
    async for part in partitions_in_turns(name, count):
        answer = await ask_owner(broker, part, "GET", "/stats")
        if answer is not None:
            yield TopicPart(name=part, stats=topic_stats_of(answer), topic=None)
            continue
        topic = await require_topic(broker, part)
        yield TopicPart(name=part, stats=await topic.stats_in_turns(turns), topic=topic)


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
        sums: Counter[str] = Counter()
        by_name: dict[str, list[SubscriptionStats]] = {}
        partitions: list[Json] = []
        producers: list[Json] = []
        ledger: Json | None = None
        async for part in parts_in_turns(self._broker, name, turns):
            line = _totals(part.stats)
            sums.update(line)
            for subscription, each in part.stats.subscriptions.items():
                await turns.take()
                by_name.setdefault(subscription, []).append(each)
            if part.name == name:
                ledger = _ledger(part.topic)
            else:
                partitions.append({"name": str(part.name), **line})
            for producer in islice(part.stats.producers, MAX_LINES - len(producers)):
                await turns.take(10)
                shown = publisher_json(producer, is_persistent=name.is_persistent)
                producers.append({"topic": str(part.name), **shown})
        shown_names, total = await page_of(by_name, page, turns)
        lines = [_subscription_line(each, by_name[each]) for each in shown_names[: page.limit]]
        return json_response(
            {
                "name": str(name),
                "partitions": len(partitions),
                "totals": dict(sums),
                "partitionLines": partitions[:MAX_PARTITIONS],
                "producers": producers,
                "subscriptions": {
                    "items": lines,
                    "more": len(shown_names) > page.limit,
                    "total": total,
                },
                "ledger": ledger,
            }
        )

    async def subscription(self, request: Request) -> Response:
        """Return a subscription: its figures, why it stands still, a page of its consumers."""
        name, wanted = topic_of(request), request.path["subscription"]
        page, turns = ListPage.of(request), Turns()
        found: list[SubscriptionStats] = []
        parts: list[Json] = []
        consumers: dict[str, tuple[str, ConsumerStats]] = {}
        async for part in parts_in_turns(self._broker, name, turns):
            stats = part.stats.subscriptions.get(wanted)
            if stats is None:
                continue
            found.append(stats)
            if len(parts) < MAX_PARTITIONS:
                parts.append(await self._part(part, wanted))
            for number, each in enumerate(stats.consumers):
                await turns.take()
                key = f"{each.consumer_name} {part.name.partition_index:05} {number:06}"
                consumers[key] = str(part.name), each
        if not found:
            raise subscription_not_found(name, wanted, is_partitioned=False)
        keys, total = await page_of(consumers, page, turns)
        return json_response(
            {
                "topic": str(name),
                **_subscription_line(wanted, found),
                "parts": parts,
                "consumerLines": {
                    "items": [_consumer_line(key, *consumers[key]) for key in keys[: page.limit]],
                    "more": len(keys) > page.limit,
                    "total": total,
                },
            }
        )

    async def _part(self, part: TopicPart, wanted: str) -> Json:
        """The line of one partition: why it stands still, and where its cursor is."""
        line: Json = {
            "topic": str(part.name),
            "backlog": part.stats.subscriptions[wanted].backlog_entries,
        }
        if part.topic is None:
            return line | await self._part_elsewhere(part.name, wanted)
        subscription = part.topic.subscriptions.get(wanted)
        if isinstance(subscription, PersistentSubscription):
            line |= standstill_json(part.name, subscription)
            line["cursor"] = _cursor(subscription)
        return line

    async def _part_elsewhere(self, name: TopicName, wanted: str) -> Json:
        """The same as another broker says it; Apache Pulsar's brokers do not say the reasons."""
        line: Json = {}
        missing = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
        path = f"/subscription/{quote(wanted, safe='')}/standstill"
        said = await ask_owner(self._broker, name, "GET", path, tolerated=missing)
        if isinstance(said, list) and said and isinstance(said[0], dict):
            line |= said[0]
        stats = await ask_owner(self._broker, name, "GET", "/internalStats", tolerated=missing)
        stats = stats or {}
        cursor = stats.get("cursors", {}).get(wanted)
        if isinstance(cursor, dict) and "markDeletePosition" in cursor:
            line["cursor"] = {
                "markDeletePosition": cursor["markDeletePosition"],
                "readPosition": cursor.get("readPosition"),
                "lastPosition": stats.get("lastConfirmedEntry"),
            }
        return line


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


def _ledger(topic: Topic | None) -> Json | None:
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
