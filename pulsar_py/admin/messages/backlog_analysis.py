"""REST resource that counts a subscription's backlog by looking at each entry of it.

The cursor's own numbers count entries; this one counts messages and markers, too. The scan reads
beside the subscription, in turns, and ends at a number of entries or at a time (`aborted`).

Source: PersistentTopicsBase.internalAnalyzeSubscriptionBacklogAsync and
AnalyzeSubscriptionBacklogResult in Pulsar.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.admin.http_messages import HttpError, Request, Response, json_response
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import (
    POSITION,
    SUBSCRIPTION,
    read_reset_cursor,
    subscription_not_found,
)
from pulsar_py.admin.resources.topic_access import refuse_partitioned, require_topic
from pulsar_py.admin.router import Route, post
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.dispatch.filtering import summary_of
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic

BATCH_ENTRIES: Final = 100
BATCH_BYTES: Final = 1024 * 1024
"""Of one read of the scan."""

_HINT: Final = ", please try do it on specific topic partition"


class _Found(Struct):
    """What a scan has counted so far."""

    entries: int = 0
    messages: int = 0
    markers: int = 0
    first: Position | None = None
    last: Position | None = None
    is_aborted: bool = False

    def add(self, entry: Entry) -> None:
        summary = summary_of(entry)
        self.entries += 1
        self.first = self.first or entry.position
        self.last = entry.position
        if summary.is_marker:
            self.markers += 1
        else:
            self.messages += summary.messages_count

    def json(self) -> dict[str, object]:
        """The answer; no entry is rejected or delayed by a filter, as there are none."""
        accepted = self.entries - self.markers
        return {
            "entries": self.entries,
            "messages": self.messages,
            "markerMessages": self.markers,
            "filterRejectedEntries": 0,
            "filterAcceptedEntries": accepted,
            "filterRescheduledEntries": 0,
            "filterRejectedMessages": 0,
            "filterAcceptedMessages": self.messages,
            "filterRescheduledMessages": 0,
            "aborted": self.is_aborted,
            "firstMessageId": _text(self.first),
            "lastMessageId": _text(self.last),
        }


def _text(position: Position | None) -> str | None:
    return None if position is None else f"{position.ledger_id}:{position.entry_id}"


class BacklogAnalysis:
    """Counts what a subscription has not acknowledged."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            post(
                SUBSCRIPTION + "/analyzeBacklog",
                self.analyze,
                Action.CONSUME,
                POSITION,
                answer="BacklogAnalysisAnswer",
            ),
        )

    async def analyze(self, request: Request) -> Response:
        """Count the backlog; the body may name a position to begin at."""
        name, wanted = topic_of(request), request.path["subscription"]
        start = read_reset_cursor(request)
        await refuse_partitioned(self._broker, name, "Analyze backlog on", hint=_HINT)
        topic = await require_topic(self._broker, name)
        if not isinstance(topic, PersistentTopic):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Analyze backlog on a non-persistent topic is not allowed",
            )
        subscription = topic.subscriptions.get(wanted)
        if not isinstance(subscription, PersistentSubscription):
            raise subscription_not_found(name, wanted, is_partitioned=False)
        position = start.position if start is not None else EARLIEST
        return json_response((await self._count(topic, subscription, position)).json())

    async def _count(
        self, topic: PersistentTopic, subscription: PersistentSubscription, start: Position
    ) -> _Found:
        clock = subscription.clock
        max_entries = self._broker.config.subscriptionBacklogScanMaxEntries
        max_seconds = self._broker.config.subscriptionBacklogScanMaxTimeMs / 1000
        deadline = clock.monotonic_seconds() + max_seconds
        found, turns = _Found(), Turns()
        async with aclosing(backlog_entries(topic, subscription, start)) as entries:
            async for entry in entries:
                if found.entries >= max_entries or clock.monotonic_seconds() >= deadline:
                    found.is_aborted = True
                    break
                await turns.take(10)
                found.add(entry)
        return found


async def backlog_entries(
    topic: PersistentTopic, subscription: PersistentSubscription, start: Position = EARLIEST
) -> AsyncGenerator[Entry, None]:
    """The entries that a subscription has not acknowledged, in order, from `start` on.

    They are those that were there at the beginning; the subscription may go on meanwhile.

    Raises:
        StorageError: They can't be read now.
    """
    cursor = subscription.cursor
    await cursor.load_acknowledgements()
    after = topic.ledger.next_valid_position(cursor.mark_delete_position)
    async for entry in entries_from(topic, max(after, start)):
        if not cursor.is_acknowledged(entry.position):
            yield entry


async def entries_from(topic: PersistentTopic, start: Position) -> AsyncGenerator[Entry, None]:
    """The entries of a topic from `start` on, up to the one that is its last now.

    Raises:
        StorageError: They can't be read now.
    """
    ledger = topic.ledger
    end = ledger.last_confirmed_entry
    number = 0
    while (name := f"pulsar_py.scan-{number}") in ledger.cursors:
        number += 1
    reader = ledger.new_non_durable_cursor(name, start)
    try:
        while reader.read_position <= end:
            entries = await reader.read(BATCH_ENTRIES, BATCH_BYTES, end)
            if not entries:
                return
            for entry in entries:
                yield entry
    finally:
        await reader.close()
