from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.cursors.managed_cursor import ManagedCursor
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.dispatch.entry_source import EntrySource
from pulsar_py.server.dispatch.subscribe_request import SubscriptionType
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from tests.dispatch_parts import Topic, ack, received, redeliver, settle


class EvenEntries:
    """Stands in front of a cursor and leaves entries out, as a compacted reading does."""

    def __init__(self, cursor: ManagedCursor) -> None:
        self._cursor = cursor

    def __getattr__(self, name: str) -> Any:  # Any: what is not said here is the cursor's
        return getattr(self._cursor, name)

    def read_cached(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry] | None:
        entries = self._cursor.read_cached(max_entries, max_bytes, max_position)
        return entries and self._even(entries)

    async def read(
        self, max_entries: int, max_bytes: int, max_position: Position = LATEST
    ) -> Sequence[Entry]:
        return self._even(await self._cursor.read(max_entries, max_bytes, max_position))

    def _even(self, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if entry.entry_id % 2 == 0]


class Compacted(PersistentSubscription):
    """A subscription whose dispatchers read another source than its cursor."""

    @property
    def entry_source(self) -> EntrySource:
        return EvenEntries(self.cursor)  # type: ignore[return-value]


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_a_dispatcher_reads_what_stands_in_front_of_the_cursor(
    topic: Topic, kind: SubscriptionType
) -> None:
    cursor = await topic.ledger.open_cursor("sub", InitialPosition.EARLIEST)
    subscription = Compacted(topic, "sub", topic.ledger, cursor, clock=topic.clock)
    topic.subscriptions["sub"] = subscription
    await topic.publish_many(7)
    consumer = await topic.consume(kind=kind, permits=100)
    await settle()
    assert received(consumer) == [0, 2, 4, 6]
    ack(consumer, 0, 4)
    redeliver(consumer)
    await settle()
    assert received(consumer) == [0, 2, 4, 6, 2, 6]


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_the_source_of_a_subscription_is_its_cursor(
    topic: Topic, kind: SubscriptionType
) -> None:
    consumer = await topic.consume(kind=kind)
    assert isinstance(consumer.subscription, PersistentSubscription)
    assert consumer.subscription.entry_source is consumer.subscription.cursor
