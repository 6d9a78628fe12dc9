"""REST resource that counts a subscription's backlog by looking at each entry of it.

The cursor's own numbers count entries; this one counts messages and markers, too. Of a batch, only
messages that are not acknowledged count; Apache Pulsar counts all of it. Users' entry filters are
asked about each entry but markers, and counted apart from the subscription's own statistics. The
scan reads beside the subscription, in turns, and ends at a number of entries or at a time
(`aborted`).

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
from pulsar_py.common.ack_set import to_bits
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.dispatch.filtering import summary_of
from pulsar_py.server.hooks.entry_filter import FilterResult
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.entry_summary import EntrySummary

BATCH_ENTRIES: Final = 100
BATCH_BYTES: Final = 1024 * 1024
"""Of one read of the scan."""

_HINT: Final = ", please try do it on specific topic partition"


class _Judged(Struct):
    """Entries and messages for which the users' filters had one result."""

    entries: int = 0
    messages: int = 0


class _Found:
    """What a scan has counted so far."""

    def __init__(self, subscription: PersistentSubscription) -> None:
        self.entries = 0
        self.is_aborted = False
        self._cursor = subscription.cursor
        self._filters = subscription.filters_beside_dispatch()
        self._messages = 0
        self._markers = 0
        self._first: Position | None = None
        self._last: Position | None = None
        self._judged = {result: _Judged() for result in FilterResult}

    def add(self, entry: Entry) -> None:
        summary = summary_of(entry)
        self.entries += 1
        self._first = self._first or entry.position
        self._last = entry.position
        if summary.is_marker:
            self._markers += 1
            return
        count = self._unacknowledged_of(entry, summary)
        self._messages += count
        result = FilterResult.ACCEPT
        if self._filters is not None:
            result = self._filters.result_of(entry, summary)
        judged = self._judged[result]
        judged.entries += 1
        judged.messages += count

    def _unacknowledged_of(self, entry: Entry, summary: EntrySummary) -> int:
        """Messages of an entry that wait for an acknowledgement."""
        words = self._cursor.batch_ack_set(entry.position) if summary.is_batch else None
        if words is None:
            return summary.messages_count
        # A client may leave bits behind the last message set.
        return (to_bits(words) & ((1 << summary.messages_count) - 1)).bit_count()

    def json(self) -> dict[str, object]:
        """The answer."""
        accepted = self._judged[FilterResult.ACCEPT]
        rejected = self._judged[FilterResult.REJECT]
        rescheduled = self._judged[FilterResult.RESCHEDULE]
        return {
            "entries": self.entries,
            "messages": self._messages,
            "markerMessages": self._markers,
            "filterRejectedEntries": rejected.entries,
            "filterAcceptedEntries": accepted.entries,
            "filterRescheduledEntries": rescheduled.entries,
            "filterRejectedMessages": rejected.messages,
            "filterAcceptedMessages": accepted.messages,
            "filterRescheduledMessages": rescheduled.messages,
            "aborted": self.is_aborted,
            "firstMessageId": _text(self._first),
            "lastMessageId": _text(self._last),
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
        found, turns = _Found(subscription), Turns()
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
