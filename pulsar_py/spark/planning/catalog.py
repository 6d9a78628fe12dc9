"""Asks the cluster for topics and partitions, and where they begin and end (edge).

Ledgers come from the REST API if `admin.url` is given. Without it the end of a topic is taken from
its last message id, and its ledgers stay unknown: the topic is then read in one piece, and a
micro-batch takes all there is. Positions by publish time are found by a seek of a non-durable
consumer, so no subscription is left behind. A named topic may not exist, or may have been deleted:
asking does not create it, and the caller decides what that means.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

from pulsar_py.client import Client
from pulsar_py.client.brokers.http_lookup import HttpLookup
from pulsar_py.client.brokers.service_url import ServiceUrl
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.many_topics.topic_lists import TopicList, TopicPattern
from pulsar_py.client.shared.enums import RegexSubscriptionMode, SubscriptionMode
from pulsar_py.common.errors import ClientTimeoutError, TopicNotFoundError
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.internal_stats import layout_of
from pulsar_py.spark.planning.pieces import TopicLayout
from pulsar_py.spark.shared.offsets import Edge, Place
from pulsar_py.spark.shared.options import WAITING, ReadOptions, Topics, ValueMode

logger = logging.getLogger(__name__)

WAIT_FOR_TOPICS_SECONDS: Final = 5.0
_SUBSCRIPTION: Final = "spark-pulsar-lookup"


class Follower(NamedTuple):
    """A durable subscription that the user gave, which the query moves on as it reads."""

    acknowledged: Position
    # Whether messages have expired for it, as far as the broker remembers.
    has_expired: bool


class TopicCatalog:
    """Asks the cluster for the topics of a read. Lives as long as one plan, or one stream."""

    def __init__(self, client: Client, options: ReadOptions) -> None:
        """`client` stays open; no request is sent yet."""
        self._client = client
        self._options = options
        self._rest: HttpLookup | None = None
        if options.client.admin_url is not None:
            self._rest = HttpLookup(client.context, ServiceUrl.parse(options.client.admin_url))

    async def close(self) -> None:
        """Close the connections to the REST API; the client stays open."""
        if self._rest is not None:
            await self._rest.close()

    async def partitions(self) -> list[str]:
        """The full names of all topics and partitions that are read, in order.

        Topics that the options name are included even if they do not exist, unless the read waits
        for them.

        Raises:
            TopicNotFoundError: No topic exists, and the read does not wait for one.
        """
        found = await self.found()
        while self._options.waits_for_topics and not (found and await self._all_exist(found)):
            logger.warning("waiting for topics", extra={"detail": described(self._options.topics)})
            await self._client.context.clock.sleep(WAIT_FOR_TOPICS_SECONDS)
            found = await self.found()
        if not found:
            raise TopicNotFoundError(
                f"{described(self._options.topics)}: there is no such topic; {WAITING}"
            )
        return found

    async def found(self) -> list[str]:
        """The topics and partitions that exist now, without waiting; empty if there are none."""
        names = await self._find_topics(self._options.topics)
        return sorted({each for name in names for each in await self._partitions_of(name)})

    async def _partitions_of(self, topic: str) -> list[str]:
        name = TopicName.parse(topic)
        count = 0
        if name.partition_index < 0:
            count = await self._partitions_count(str(name)) or 0
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    async def _partitions_count(self, topic: str) -> int | None:
        """The number of partitions: 0 for a topic without, None for one that does not exist.

        For the latter, too, brokers before Pulsar 3.3 answer 0.
        """
        try:
            return await self._client.context.lookup.partitions_count(topic, may_create=False)
        except TopicNotFoundError:
            return None

    async def exists(self, topic: str) -> bool:
        """Whether there is such a topic, with partitions or without, or such a partition."""
        if await self._partitions_count(topic):
            return True
        return bool(await self.layouts([topic]))

    async def check_named(self) -> None:
        """Refuse topics that the options name, or a pattern, of which there is no topic now.

        Raises:
            TopicNotFoundError: The text has all of them.
        """
        topics = self._options.topics
        if topics.pattern is not None:
            missing = [] if await self._find_topics(topics) else [described(topics)]
        else:
            missing = [each for each in topics.names if not await self.exists(each)]
        if missing:
            raise TopicNotFoundError(
                f"failOnMissingTopic: {', '.join(missing)}: there is no such topic; create it, or"
                f" correct the name ({WAITING})"
            )

    async def _all_exist(self, topics: Iterable[str]) -> bool:
        return not set(topics) - set(await self.layouts(topics))

    async def _find_topics(self, topics: Topics) -> Sequence[str]:
        if topics.pattern is None:
            return topics.names
        pattern = TopicPattern(topics.pattern, RegexSubscriptionMode.PersistentOnly)
        listed = await self._client.context.lookup.topics_of_namespace(
            str(pattern.namespace_name), pattern.mode, pattern=pattern.broker_text
        )
        matching = TopicList(pattern)
        matching.on_listed(listed.topics)
        return sorted(matching.topics)

    async def layouts(self, topics: Iterable[str]) -> dict[str, TopicLayout]:
        """The layouts of those of these topic partitions that exist."""
        layouts = {}
        for topic in topics:
            with suppress(TopicNotFoundError):
                layouts[topic] = await self.layout(topic)
        return layouts

    async def layout(self, topic: str) -> TopicLayout:
        """The layout of a topic partition as it is now.

        Raises:
            TopicNotFoundError: It does not exist.
            AuthorizationError: It may not be read, and tasks would read files, which ask nobody.
        """
        if self._rest is not None:
            found = layout_of(topic, await self._rest.internal_stats(topic))
            if self._options.short_circuit_path is not None:
                # Who may only produce to a topic gets its statistics, too.
                async with self._consumer(topic, EARLIEST_MESSAGE_ID, queue_messages=0):
                    pass
            return found
        async with self._consumer(topic, EARLIEST_MESSAGE_ID) as consumer:
            last = await consumer.get_last_message_id()
        is_empty = last.entry_id < 0
        end = Position(max(last.ledger_id, 0), 0 if is_empty else last.entry_id + 1)
        return TopicLayout(topic, [], known_end=end)

    async def follower(self, topic: str, subscription: str) -> Follower | None:
        """The position of a subscription; None if it does not exist, or asking would create it.

        Raises:
            TopicNotFoundError: The topic does not exist.
        """
        if self._rest is None:
            return None
        stats = await self._rest.internal_stats(topic)
        cursor = stats.get("cursors", {}).get(subscription)
        if cursor is None:
            return None
        figures = (await self._rest.stats(topic)).get("subscriptions", {}).get(subscription, {})
        has_expired = figures.get("totalMsgExpired") or figures.get("lastExpireTimestamp")
        return Follower(Position.parse(cursor["markDeletePosition"]), bool(has_expired))

    async def position_of(self, layout: TopicLayout, place: Place, *, is_end: bool) -> Position:
        """The position of a place that a user named as the beginning or end of a range."""
        if place is Edge.EARLIEST:
            return layout.start
        if place is Edge.LATEST:
            return layout.end
        assert not isinstance(place, Edge), "there are two edges"
        return place.end if is_end else place.start

    async def position_at(self, layout: TopicLayout, publish_millis: int) -> Position:
        """The first entry published at that time or later; the end if there is none.

        Where publish times don't ascend, as producers' clocks differ: an entry of that time or
        later whose predecessor was published earlier.
        """
        if publish_millis <= 0:
            return layout.start
        async with self._consumer(layout.topic, EARLIEST_MESSAGE_ID) as consumer:
            await consumer.seek(publish_millis)
            found = await self._first_of(consumer)
        return layout.end if found is None else max(found, EARLIEST)

    async def first_from(self, topic: str, position: Position) -> Position | None:
        """The first entry at `position` or after it that has a message; None if there is none."""
        async with self._consumer(topic, MessageId(*position)) as consumer:
            return await self._first_of(consumer)

    async def _first_of(self, consumer: Consumer) -> Position | None:
        if not await consumer.has_message_available():
            return None
        try:
            entry = (await consumer.receive(self._options.poll_timeout_millis)).entry
        except ClientTimeoutError:
            return None
        # A chunked message begins with its first chunk, which a start there has to include.
        return Position(*(entry.chunk_ids[0] if entry.chunk_ids else entry.key))

    @asynccontextmanager
    async def _consumer(
        self, topic: str, start: MessageId, *, queue_messages: int = 1
    ) -> AsyncIterator[Consumer]:
        config = ConsumerConfig(
            subscription_mode=SubscriptionMode.NonDurable,
            receiver_queue_size=queue_messages,
            force_topic_creation=False,
            start_message_id_inclusive=True,
        )
        prefix = self._options.subscription_prefix or _SUBSCRIPTION
        consumer = await Consumer.open(
            self._client.context, topic, f"{prefix}-{id(self):x}", config, start_message_id=start
        )
        try:
            yield consumer
        finally:
            await consumer.close()


async def known_topics(catalog: TopicCatalog, options: ReadOptions) -> list[str]:
    """The topics whose schemas give a read its columns; may be empty where values stay bytes.

    A stream whose topics are all gone may have a checkpoint; its plan then reports the loss.

    Raises:
        TopicNotFoundError: No topic exists, so the columns are unknown.
    """
    if options.value_mode is ValueMode.RAW and not options.waits_for_topics:
        return await catalog.found()
    return await catalog.partitions()


def described(topics: Topics) -> str:
    """The topics of a read as the user named them, for errors and logs."""
    return f"topicsPattern {topics.pattern!r}" if topics.pattern else ", ".join(topics.names)
