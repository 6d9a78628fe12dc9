"""REST resource of topics: list, create, delete, unload, compact, terminate.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import PROPERTIES, Flag
from pulsar_py.admin.http_messages import NO_CONTENT, HttpError, Request, Response, json_response
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.topic_access import (
    MISSING_PARTITION,
    NOT_THERE,
    ask_owner,
    partitions_in_turns,
    refuse_partitioned,
    require_namespace,
    require_owned,
    require_topic,
    topic_not_found,
)
from pulsar_py.admin.resources.topic_lists import list_response
from pulsar_py.admin.resources.topic_stats_json import Json
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import NotAllowedError, TopicExistsError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import Position
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.compaction.topic_compaction import TopicCompaction
from pulsar_py.server.security.actions import Action
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.registry import TopicListMode
from pulsar_py.server.topics.topic import Topic

DOMAIN: Final = "/admin/v2/{domain:persistent|non-persistent}"
NAMESPACE: Final = DOMAIN + "/{tenant}/{namespace}"
TOPIC: Final = NAMESPACE + "/{topic}"
COMPACTION: Final = TOPIC + "/compaction"
EXISTS: Final = "This topic already exists"

SYSTEM_TOO: Final = Flag("includeSystemTopic")
FORCE: Final = Flag("force")


def message_id_json(position: Position, partition_index: int) -> Json:
    """The MessageId of an entry as JSON."""
    return {
        "ledgerId": position.ledger_id,
        "entryId": position.entry_id,
        "partitionIndex": partition_index,
        "batchIndex": -1,
        "batchSize": 0,
    }


class Topics:
    """Operations on topics as a whole, one or all partitions."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._topics = broker.topics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                NAMESPACE,
                self.list_topics,
                Action.GET_TOPICS,
                SYSTEM_TOO,
                answer=list[str],
                errors=(HTTPStatus.TOO_MANY_REQUESTS,),
            ),
            put(TOPIC, self.create, Action.CREATE_TOPIC, PROPERTIES),
            delete(TOPIC, self.delete, Action.DELETE_TOPIC, FORCE),
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
            get(
                TOPIC + "/lastMessageId",
                self.last_message_id,
                Action.PEEK_MESSAGES,
                answer="MessageIdAnswer",
            ),
        )

    # --- lists ---------------------------------------------------------------------------------

    async def list_topics(self, request: Request) -> Response:
        """Return full names; partitions one by one, non-persistent topics only while loaded."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        return await list_response(
            self._broker,
            f"{namespace}/{request.path['domain']}",
            partial(
                self._topics.list_topics,
                namespace,
                TopicListMode(request.path["domain"]),
                includes_system=SYSTEM_TOO.of(request),
            ),
        )

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
                await ask_owner(self._broker, part, "PUT", "/unload", tolerated=MISSING_PARTITION)
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
        if name.is_system:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, "Termination of a system topic is not allowed"
            )
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


def _compaction_of(topic: Topic) -> TopicCompaction:
    compaction = topic.compaction if isinstance(topic, PersistentTopic) else None
    if compaction is None:
        raise HttpError(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{topic.name} can't be compacted: it is not persistent"
        )
    return compaction
