"""REST resource of the statistics of topics: ledgers, cursors, subscriptions, clients.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import Flag
from pulsar_py.admin.http_messages import HttpError, Request, Response, encoded_part, json_response
from pulsar_py.admin.resources.partitioned_stats_json import PartitionedStats
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import (
    MISSING_PARTITION,
    ask_owner,
    broker_id_of,
    partitions_in_turns,
    refuse_partition_name,
    require_namespace,
    require_owned,
    require_topic,
)
from pulsar_py.admin.resources.topic_stats_json import (
    Json,
    internal_stats_json,
    non_persistent_internal_stats_json,
    topic_stats_json,
)
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, get
from pulsar_py.common.errors import LedgerNotFoundError, TopicNotFoundError
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import PERSISTENT, TopicName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.topic import Topic

_NO_PUBLISHERS: Final = Flag("excludePublishers")
_NO_CONSUMERS: Final = Flag("excludeConsumers")
_BACKLOG_SIZE: Final = Flag("subscriptionBacklogSize", default=True)
_EARLIEST: Final = Flag("getEarliestTimeInBacklog")
_PRECISE: Final = Flag("getPreciseBacklog")
"""Backlogs are exact here whether it is set or not."""
_STATS: Final = (_NO_PUBLISHERS, _NO_CONSUMERS, _BACKLOG_SIZE, _EARLIEST, _PRECISE)
_PER_PARTITION: Final = Flag("perPartition", default=True)
_METADATA: Final = Flag("metadata")


class TopicStatistics:
    """Statistics of topics and partitions, and sums of those of partitioned topics."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._topics = broker.topics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC + "/stats", self.stats, Action.GET_STATS, *_STATS, answer="TopicStats"),
            get(
                TOPIC + "/partitioned-stats",
                self.partitioned_stats,
                Action.GET_STATS,
                *_STATS,
                _PER_PARTITION,
                answer="PartitionedTopicStats",
            ),
            get(
                TOPIC + "/internalStats",
                self.internal_stats,
                Action.GET_STATS,
                _METADATA,
                answer="TopicInternalStats",
            ),
            get(
                TOPIC + "/partitioned-internalStats",
                self.partitioned_internal_stats,
                Action.GET_STATS,
                answer="PartitionedInternalStats",
            ),
        )

    async def stats(self, request: Request) -> Response:
        """Return the statistics of one topic or partition."""
        topic = await require_topic(self._broker, topic_of(request))
        return json_response(await self._stats_json(topic, Turns(), request))

    async def _stats_json(self, topic: Topic, turns: Turns, request: Request) -> Json:
        earliest = {}
        if _EARLIEST.of(request) and isinstance(topic, PersistentTopic):
            earliest = await topic.oldest_publish_times(turns)
        return await topic_stats_json(
            await topic.stats_in_turns(turns),
            turns,
            is_persistent=topic.name.is_persistent,
            is_system=topic.name.is_system,
            owner_broker=broker_id_of(self._broker),
            with_publishers=not _NO_PUBLISHERS.of(request),
            with_consumers=not _NO_CONSUMERS.of(request),
            with_backlog_size=_BACKLOG_SIZE.of(request),
            earliest=earliest,
        )

    async def partitioned_stats(self, request: Request) -> Response:
        """Return the sum of all partitions' statistics, and each of them if wanted."""
        name = topic_of(request)
        refuse_partition_name(name)
        partitions_count = await self._require_partitions(name)
        turns = Turns()
        total = PartitionedStats(
            turns,
            partitions_count=partitions_count,
            per_partition=_PER_PARTITION.of(request),
        )
        async for part in partitions_in_turns(name, partitions_count):
            what = f"/stats{request.passed_on_query}"
            stats = await ask_owner(self._broker, part, "GET", what, tolerated=MISSING_PARTITION)
            if stats is None and (topic := await self._partition(part)) is not None:
                stats = await self._stats_json(topic, turns, request)
            if stats:
                await total.add(str(part), stats)
        return json_response(await total.json())

    async def internal_stats(self, request: Request) -> Response:
        """Return the ledgers and cursors of one topic or partition."""
        topic = await require_topic(self._broker, topic_of(request))
        describe = self._describe_ledger if _METADATA.of(request) else None
        return json_response(await self._internal_stats_json(topic, Turns(), describe))

    async def _internal_stats_json(
        self,
        topic: Topic,
        turns: Turns,
        describe: Callable[[int], Awaitable[str]] | None = None,
    ) -> Json:
        if isinstance(topic, PersistentTopic):
            compaction = topic.compaction
            stats = (
                CompactionStats() if compaction is None else await compaction.stats_with_ledger()
            )
            schemas = await self._broker.schemas.ledgers(topic.name.schema_id)
            return await internal_stats_json(topic.ledger, stats, schemas, turns, describe)
        assert topic.name.domain != PERSISTENT
        counts = await topic.stats_in_turns(turns)
        return non_persistent_internal_stats_json(
            counts.messages_in_count, list(topic.subscriptions)
        )

    async def _describe_ledger(self, ledger_id: int) -> str:
        """What the ledger store knows about a ledger, in words."""
        try:
            info = await self._broker.ledger_store.info(ledger_id)
        except LedgerNotFoundError:
            return "deleted meanwhile"
        labels = {
            name: value.decode("utf-8", "backslashreplace")
            for name, value in sorted(info.custom_metadata.items())
        }
        end = "" if info.last_entry_id is None else f", lastEntryId={info.last_entry_id}"
        length = "" if info.length_bytes is None else f", length={info.length_bytes}"
        state = "CLOSED" if info.is_closed else "OPEN"
        return f"LedgerMetadata{{state={state}{end}{length}, customMetadata={labels}}}"

    async def partitioned_internal_stats(self, request: Request) -> Response:
        """Return the ledgers and cursors of each partition."""
        name = topic_of(request)
        partitions_count = await self._require_partitions(name)
        turns = Turns()
        parts = {}
        async for part in partitions_in_turns(name, partitions_count):
            stats = await ask_owner(
                self._broker, part, "GET", "/internalStats", tolerated=MISSING_PARTITION
            )
            if stats is None and (topic := await self._partition(part)) is not None:
                stats = await self._internal_stats_json(topic, turns)
            if stats:
                parts[str(part)] = await encoded_part(stats, turns)
        metadata = {"partitions": partitions_count, "deleted": False}
        return json_response({"metadata": metadata, "partitions": parts})

    async def _require_partitions(self, name: TopicName) -> int:
        await require_namespace(self._broker, name.namespace_name)
        partitions_count = await self._topics.partitioned.count(name)
        if not partitions_count:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Partitioned Topic {name} not found")
        return partitions_count

    async def _partition(self, name: TopicName) -> Topic | None:
        """A partition; None if it was deleted alone."""
        await require_owned(self._broker, name)
        try:
            return await self._topics.get_or_load(name, create_if_missing=not name.is_persistent)
        except TopicNotFoundError:
            return None
