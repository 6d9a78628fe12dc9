"""REST resource of topics: create, list, partitions, delete, unload, terminate, statistics.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final, cast

from msgspec import Struct, field

from pulsar_py.admin.declared import PROPERTIES, Body, Flag, Int
from pulsar_py.admin.http_messages import (
    JSON,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    encoded_part,
    json_response,
)
from pulsar_py.admin.resources.partitioned_stats_json import PartitionedStats
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.topic_access import (
    NOT_THERE,
    ask_owner,
    broker_id_of,
    partitions_in_turns,
    refuse_partitioned,
    require_namespace,
    require_owned,
    require_topic,
    topic_not_found,
)
from pulsar_py.admin.resources.topic_stats_json import (
    Json,
    internal_stats_json,
    non_persistent_internal_stats_json,
    topic_stats_json,
)
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import (
    LedgerNotFoundError,
    NotAllowedError,
    TopicExistsError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.names import PARTITION_SUFFIX, PERSISTENT, TopicName
from pulsar_py.common.position import Position
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.compaction.compaction_status import CompactionStats
from pulsar_py.server.compaction.topic_compaction import TopicCompaction
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.registry import TopicListMode
from pulsar_py.server.topics.topic import Topic

DOMAIN: Final = "/admin/v2/{domain:persistent|non-persistent}"
NAMESPACE: Final = DOMAIN + "/{tenant}/{namespace}"
TOPIC: Final = NAMESPACE + "/{topic}"
COMPACTION: Final = TOPIC + "/compaction"
PARTITIONED_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"
EXISTS: Final = "This topic already exists"

SYSTEM_TOO: Final = Flag("includeSystemTopic")
FORCE: Final = Flag("force")
AUTO_CREATED: Final = Flag("checkAllowAutoCreation")
_LOCAL_ONLY: Final = Flag("createLocalTopicOnly")
_NO_PUBLISHERS: Final = Flag("excludePublishers")
_NO_CONSUMERS: Final = Flag("excludeConsumers")
_BACKLOG_SIZE: Final = Flag("subscriptionBacklogSize", default=True)
_EARLIEST: Final = Flag("getEarliestTimeInBacklog")
_PRECISE: Final = Flag("getPreciseBacklog")
"""Backlogs are exact here whether it is set or not."""
_STATS: Final = (_NO_PUBLISHERS, _NO_CONSUMERS, _BACKLOG_SIZE, _EARLIEST, _PRECISE)
_PER_PARTITION: Final = Flag("perPartition", default=True)
_METADATA: Final = Flag("metadata")
_NEW_COUNT: Final = Body(Int, "number of partitions")


class PartitionedTopic(Struct, frozen=True):
    """The body that names properties beside the number of partitions."""

    partitions: Int | None = None
    properties: dict[str, str] = field(default_factory=dict)


_PARTITIONS: Final = Body(
    cast("type[int | PartitionedTopic]", Int | PartitionedTopic),
    "number of partitions",
    content_types=(JSON, PARTITIONED_METADATA),
)


def message_id_json(position: Position, partition_index: int) -> Json:
    """The MessageId of an entry as JSON."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition_index,
        "batchIndex": -1,
        "batchSize": 0,
    }


_MISSING: Final = (HTTPStatus.NOT_FOUND,)
"""Of a partition that another broker serves: it was deleted alone, or never loaded."""


class Topics:
    """Operations on topics and partitioned topics as a whole."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._topics = broker.topics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(NAMESPACE, self.list_topics, Action.GET_TOPICS, SYSTEM_TOO, answer=list[str]),
            get(
                NAMESPACE + "/partitioned",
                self.list_partitioned,
                Action.GET_TOPICS,
                SYSTEM_TOO,
                answer=list[str],
            ),
            put(TOPIC, self.create, Action.CREATE_TOPIC, PROPERTIES),
            delete(TOPIC, self.delete, Action.DELETE_TOPIC, FORCE),
            get(
                TOPIC + "/partitions",
                self.partitions,
                Action.GET_METADATA,
                AUTO_CREATED,
                answer="PartitionedMetadata",
            ),
            put(
                TOPIC + "/partitions",
                self.create_partitioned,
                Action.CREATE_TOPIC,
                _PARTITIONS,
                _LOCAL_ONLY,
                errors=(HTTPStatus.UNPROCESSABLE_ENTITY,),
            ),
            post(
                TOPIC + "/partitions",
                self.update_partitions,
                Action.UPDATE_PARTITIONS,
                _NEW_COUNT,
                errors=(HTTPStatus.UNPROCESSABLE_ENTITY,),
            ),
            delete(TOPIC + "/partitions", self.delete_partitioned, Action.DELETE_TOPIC, FORCE),
            post(
                TOPIC + "/createMissedPartitions",
                self.create_missed_partitions,
                Action.CREATE_TOPIC,
            ),
            put(TOPIC + "/unload", self.unload, Action.UNLOAD),
            put(COMPACTION, self.compact, Action.COMPACT),
            get(COMPACTION, self.compaction_status, Action.COMPACT, answer="CompactionProgress"),
            post(TOPIC + "/terminate", self.terminate, Action.TERMINATE, answer="MessageIdAnswer"),
            post(
                TOPIC + "/terminate/partitions",
                self.terminate_partitions,
                Action.TERMINATE,
                answer="dict[str, MessageIdAnswer]",
            ),
            *self._statistics(),
        )

    def _statistics(self) -> Iterable[Route]:
        return (
            get(
                TOPIC + "/lastMessageId",
                self.last_message_id,
                Action.PEEK_MESSAGES,
                answer="MessageIdAnswer",
            ),
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

    # --- lists ---------------------------------------------------------------------------------

    async def list_topics(self, request: Request) -> Response:
        """Return full names; partitions one by one, non-persistent topics only while loaded."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        names = await self._topics.list_topics(
            namespace,
            TopicListMode(request.path["domain"]),
            includes_system=SYSTEM_TOO.of(request),
        )
        return json_response(names)

    async def list_partitioned(self, request: Request) -> Response:
        """Return the full names of partitioned topics, without `-partition-N`."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        prefix = request.path["domain"] + "://"
        names = await self._topics.partitioned.names(namespace)
        return json_response([name for name in names if name.startswith(prefix)])

    # --- create and delete ---------------------------------------------------------------------

    async def create(self, request: Request) -> Response:
        """Create a topic without partitions; the body may have its properties."""
        name = topic_of(request)
        properties = PROPERTIES.of(request)
        await require_namespace(self._broker, name.namespace_name)
        if name.is_system:
            raise HttpError(HTTPStatus.CONFLICT, EXISTS)
        if await self._topics.partitioned.count(name):
            raise HttpError(HTTPStatus.CONFLICT, EXISTS)
        if name.is_partition:
            await self._check_partition_name(name)
        await require_owned(self._broker, name)
        try:
            await self._topics.create_topic(name, properties=properties or {})
        except TopicExistsError:
            raise HttpError(HTTPStatus.CONFLICT, EXISTS) from None
        return NO_CONTENT

    async def _check_partition_name(self, name: TopicName) -> None:
        """Refuse a name that ends like a partition's and is not one."""
        base = name.base
        partitions_count = await self._topics.partitioned.count(base)
        if not partitions_count:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f'Can\'t create topic {name.local_name} with "-partition-" followed by numeric '
                f"value if there isn't a partitioned topic {base.local_name} created.",
            )
        if name.partition_index >= partitions_count:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f'Can\'t create topic {name.local_name} with "-partition-" followed by a number '
                f"smaller than number of partition of partitioned topic {base.local_name}",
            )

    async def delete(self, request: Request) -> Response:
        """Delete a topic without partitions, or one partition."""
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        if await self._topics.partitioned.count(name):
            raise HttpError(
                HTTPStatus.CONFLICT,
                f"{name} is a partitioned topic, instead of calling delete topic, please call "
                "delete-partitioned-topic.",
            )
        await require_owned(self._broker, name)
        try:
            await self._topics.delete(name, force=FORCE.of(request))
        except TopicNotFoundError:
            if name.is_persistent:
                raise topic_not_found(name) from None
        return NO_CONTENT

    # --- partitions ----------------------------------------------------------------------------

    async def partitions(self, request: Request) -> Response:
        """Return the number of partitions; 0 for a topic without."""
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        metadata = await self._broker.resources.partitioned_topics.get(name)
        if metadata is not None:
            return json_response(
                {
                    "partitions": metadata.partitions_count,
                    "deleted": bool(metadata.is_deleted),
                    "properties": metadata.properties or None,
                }
            )
        partitions_count = 0
        if not await self._topics.exists(name):
            if not AUTO_CREATED.of(request):
                raise topic_not_found(name)
            try:
                partitions_count = await self._topics.partitioned.count_or_create(
                    name, auto_create=True
                )
            except TopicNotFoundError:
                raise topic_not_found(name) from None
        return json_response({"partitions": partitions_count, "deleted": False})

    async def create_partitioned(self, request: Request) -> Response:
        """Create a partitioned topic with all its partitions."""
        name = topic_of(request)
        partitions_count, properties = _partitions_body(request)
        await require_namespace(self._broker, name.namespace_name)
        _refuse_partition(name)
        if partitions_count <= 0:
            raise HttpError(HTTPStatus.NOT_ACCEPTABLE, "Number of partitions should be more than 0")
        self._check_partitions_limit(partitions_count, HTTPStatus.NOT_ACCEPTABLE)
        try:
            await self._topics.partitioned.create(
                name,
                partitions_count,
                properties=properties,
                is_local_only=_LOCAL_ONLY.of(request),
            )
        except TopicExistsError:
            raise HttpError(HTTPStatus.CONFLICT, EXISTS) from None
        return NO_CONTENT

    def _check_partitions_limit(self, partitions_count: int, status: int) -> None:
        limit = self._topics.settings.max_partitions
        if partitions_count > limit:
            raise HttpError(status, f"Number of partitions should be less than or equal to {limit}")

    async def update_partitions(self, request: Request) -> Response:
        """Add partitions to a partitioned topic."""
        name = topic_of(request)
        wanted = 0 if _NEW_COUNT.is_null(request) else _NEW_COUNT.required(request)
        _refuse_partition(name)
        current = await self._topics.partitioned.count(name)
        if not current:
            raise HttpError(HTTPStatus.CONFLICT, f"Topic {name} is not the partitioned topic.")
        if wanted < current:
            raise HttpError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"Desired partitions {wanted} can't be less than the current partitions {current}.",
            )
        self._check_partitions_limit(wanted, HTTPStatus.UNPROCESSABLE_ENTITY)
        # The same number completes a topic that a broker was stopped from growing.
        await self._topics.partitioned.grow(name, wanted)
        return NO_CONTENT

    async def create_missed_partitions(self, request: Request) -> Response:
        """Make the partitions, and subscriptions of them, that are missing."""
        name = topic_of(request)
        _refuse_partition(name)
        await require_namespace(self._broker, name.namespace_name)
        try:
            await self._topics.partitioned.create_missed(name)
        except TopicNotFoundError:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Topic {name} does not exist") from None
        return NO_CONTENT

    async def delete_partitioned(self, request: Request) -> Response:
        """Delete all partitions, then the partitioned topic itself."""
        name = topic_of(request)
        _refuse_partition(name)
        await require_namespace(self._broker, name.namespace_name)
        if not await self._topics.partitioned.count(name):
            if await self._topics.exists(name):
                raise HttpError(
                    HTTPStatus.CONFLICT,
                    f"{name} is a non-partitioned topic. Instead of calling "
                    "delete-partitioned-topic please call delete.",
                )
            raise HttpError(HTTPStatus.NOT_FOUND, f"Topic {name} not found.")
        await self._topics.partitioned.delete(name, force=FORCE.of(request))
        return NO_CONTENT

    # --- life ----------------------------------------------------------------------------------

    async def unload(self, request: Request) -> Response:
        """Close the topic; clients reconnect by themselves."""
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        partitions_count = await self._topics.partitioned.count(name)
        if not partitions_count:
            await require_topic(self._broker, name)
            await self._topics.unload(name)
            return NO_CONTENT
        async for part in partitions_in_turns(name, partitions_count):
            if self._topics.loaded(part) is not None:
                await self._topics.unload(part)
            else:
                await ask_owner(self._broker, part, "PUT", "/unload", tolerated=_MISSING)
        return NO_CONTENT

    async def compact(self, request: Request) -> Response:
        """Start a compaction of the topic, or of all partitions.

        Raises:
            HttpError: 404 if there is no such topic, 409 if one is under way.
        """
        name = topic_of(request)
        partitions_count = await self._topics.partitioned.count(name)
        if partitions_count:
            for index in range(partitions_count):
                part = name.partition(index)
                is_under_way = (HTTPStatus.CONFLICT,)
                asked = await ask_owner(
                    self._broker, part, "PUT", "/compaction", tolerated=is_under_way
                )
                if asked is not None:
                    continue
                partition = await require_topic(self._broker, part)
                with contextlib.suppress(NotAllowedError):  # it is under way there
                    _compaction_of(partition).begin()
            return NO_CONTENT
        compaction = _compaction_of(await require_topic(self._broker, name))
        try:
            compaction.begin()
        except NotAllowedError as error:
            raise HttpError(HTTPStatus.CONFLICT, str(error)) from None
        return NO_CONTENT

    async def compaction_status(self, request: Request) -> Response:
        """Return the status of the last compaction since the topic was loaded."""
        topic = await require_topic(self._broker, topic_of(request))
        stats = _compaction_of(topic).stats()
        return json_response({"status": stats.state.value, "lastError": stats.last_error})

    async def terminate(self, request: Request) -> Response:
        """Terminate the topic; returns the id of its last message."""
        name = topic_of(request)
        if not name.is_persistent:
            raise HttpError(HTTPStatus.NOT_ACCEPTABLE, "Need to provide a persistent topic name")
        await refuse_partitioned(self._broker, name, "Termination of")
        topic = await require_topic(self._broker, name)
        return json_response(message_id_json(await topic.terminate(), name.partition_index))

    async def terminate_partitions(self, request: Request) -> Response:
        """Terminate each partition."""
        name = topic_of(request)
        await require_namespace(self._broker, name.namespace_name)
        partitions_count = await self._topics.partitioned.count(name)
        if not partitions_count:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Termination of a non-partitioned topic is not allowed using "
                "partitioned-terminate, please use terminate commands",
            )
        answer = {}
        async for part in partitions_in_turns(name, partitions_count):
            ended = await ask_owner(self._broker, part, "POST", "/terminate")
            if ended is None:
                topic = await require_topic(self._broker, part)
                ended = message_id_json(await topic.terminate(), -1)
            answer[str(part.partition_index)] = {**ended, "partitionIndex": -1}
        return json_response(answer)

    async def last_message_id(self, request: Request) -> Response:
        """Return the id of the last message that may be dispatched."""
        name = topic_of(request)
        topic = await require_topic(self._broker, name)
        if not isinstance(topic, PersistentTopic):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "GetLastMessageId on a non-persistent topic is not allowed",
            )
        position = topic.ledger.last_entry_up_to(topic.max_read_position())
        return json_response(message_id_json(position, name.partition_index))

    # --- statistics ----------------------------------------------------------------------------

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
        _refuse_partition(name)
        partitions_count = await self._require_partitions(name)
        turns = Turns()
        total = PartitionedStats(
            turns,
            partitions_count=partitions_count,
            per_partition=_PER_PARTITION.of(request),
        )
        async for part in partitions_in_turns(name, partitions_count):
            what = f"/stats{request.passed_on_query}"
            stats = await ask_owner(self._broker, part, "GET", what, tolerated=_MISSING)
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
            stats = await ask_owner(self._broker, part, "GET", "/internalStats", tolerated=_MISSING)
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


def _refuse_partition(name: TopicName) -> None:
    if PARTITION_SUFFIX in name.local_name:
        raise HttpError(
            HTTPStatus.PRECONDITION_FAILED,
            f"Partitioned Topic Name should not contain '{PARTITION_SUFFIX}'",
        )


def _partitions_body(request: Request) -> tuple[int, dict[str, str]]:
    """Number of partitions and properties: the body is a number, or an object with both."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    value = 0 if _PARTITIONS.is_null(request) else _PARTITIONS.required(request)
    is_object = isinstance(value, PartitionedTopic)
    if is_object != (content_type == PARTITIONED_METADATA):
        raise UnreadableBodyError(
            f"expected a JSON object in a body of {PARTITIONED_METADATA}, else a number; "
            f"Content-Type is {content_type or 'missing'}"
        )
    if not isinstance(value, PartitionedTopic):
        return value, {}
    if value.partitions is None:
        raise UnreadableBodyError("the number of partitions is required")
    return value.partitions, value.properties


def _compaction_of(topic: Topic) -> TopicCompaction:
    compaction = topic.compaction if isinstance(topic, PersistentTopic) else None
    if compaction is None:
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{topic.name} can't be compacted: it is not persistent"
        )
    return compaction
