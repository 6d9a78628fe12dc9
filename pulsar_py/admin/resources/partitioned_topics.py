"""REST resource of partitioned topics: list, create, add partitions, delete.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final, cast

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Flag, Int
from pulsar_py.admin.http_messages import (
    JSON,
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
)
from pulsar_py.admin.resources.requests import namespace_of, topic_of
from pulsar_py.admin.resources.topic_access import (
    NOT_THERE,
    refuse_partition_name,
    require_namespace,
    topic_not_found,
)
from pulsar_py.admin.resources.topic_lists import list_response
from pulsar_py.admin.resources.topics import EXISTS, FORCE, NAMESPACE, SYSTEM_TOO, TOPIC
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import CountLimitError, TopicExistsError, TopicNotFoundError
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action

_LOCAL_ONLY: Final = Flag("createLocalTopicOnly")
AUTO_CREATED: Final = Flag("checkAllowAutoCreation")
_NEW_COUNT: Final = Body(Int, "number of partitions")
PARTITIONED_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"


class PartitionedTopic(Struct, frozen=True):
    """The body that names properties beside the number of partitions."""

    partitions: Int | None = None
    properties: dict[str, str] = field(default_factory=dict)


_PARTITIONS: Final = Body(
    cast("type[int | PartitionedTopic]", Int | PartitionedTopic),
    "number of partitions",
    content_types=(JSON, PARTITIONED_METADATA),
)


class PartitionedTopicResource:
    """Operations on partitioned topics: list, create, grow, complete and delete."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._topics = broker.topics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                NAMESPACE + "/partitioned",
                self.list_partitioned,
                Action.GET_TOPICS,
                SYSTEM_TOO,
                answer=list[str],
                errors=(HTTPStatus.TOO_MANY_REQUESTS,),
            ),
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
        )

    async def list_partitioned(self, request: Request) -> Response:
        """Return the full names of partitioned topics, without `-partition-N`."""
        namespace = namespace_of(request)
        await require_namespace(self._broker, namespace, NOT_THERE)
        prefix = request.path["domain"] + "://"

        async def names() -> list[str]:
            found = await self._topics.partitioned.names(namespace)
            return [name for name in found if name.startswith(prefix)]

        return await list_response(self._broker, f"{namespace}/partitioned", names)

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
        refuse_partition_name(name)
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
        except CountLimitError as error:
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, str(error)) from None
        return NO_CONTENT

    def _check_partitions_limit(self, partitions_count: int, status: int) -> None:
        limit = self._topics.settings.max_partitions
        if partitions_count > limit:
            raise HttpError(status, f"Number of partitions should be less than or equal to {limit}")

    async def update_partitions(self, request: Request) -> Response:
        """Add partitions to a partitioned topic."""
        name = topic_of(request)
        wanted = 0 if _NEW_COUNT.is_null(request) else _NEW_COUNT.required(request)
        refuse_partition_name(name)
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
        refuse_partition_name(name)
        await require_namespace(self._broker, name.namespace_name)
        try:
            await self._topics.partitioned.create_missed(name)
        except TopicNotFoundError:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Topic {name} does not exist") from None
        return NO_CONTENT

    async def delete_partitioned(self, request: Request) -> Response:
        """Delete all partitions, then the partitioned topic itself."""
        name = topic_of(request)
        refuse_partition_name(name)
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
