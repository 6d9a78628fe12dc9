"""REST resource of topics' subscriptions: list, create, delete, skip, expire, reset.

For a partitioned topic an operation applies to all partitions, unless the request names a position.

Source: PersistentTopicsBase in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final, Literal, cast

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Flag, Int, Long, PathNumber
from pulsar_py.admin.http_messages import (
    NO_CONTENT,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
)
from pulsar_py.admin.json_values import (
    LONG_BITS,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import (
    for_each_partition,
    refuse_partitioned,
    require_namespace,
    require_owned,
    require_topic,
)
from pulsar_py.admin.resources.topic_stats_json import Json, standstill_json
from pulsar_py.admin.resources.topics import FORCE, TOPIC
from pulsar_py.admin.router import Route, delete, get, post, put
from pulsar_py.common.errors import NotAllowedError, TopicNotFoundError
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.names import COMPACTION_SUBSCRIPTION, TopicName
from pulsar_py.common.network.http_client import HttpResponse
from pulsar_py.common.position import EARLIEST, LATEST, Position
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import (
    PersistentSubscription,
    Subscription,
)
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.server.topics.topic import Topic
from pulsar_py.server.upkeep.topic_upkeep import may_have_expired

SUBSCRIPTION: Final = TOPIC + "/subscription/{subscription}"


class MessagePosition(Struct, frozen=True, rename="camel"):
    """A body that names an entry, as MessageId or ResetCursorData."""

    ledger_id: Long = 0
    entry_id: Long = 0
    partition_index: Int = -1
    batch_index: Int = -1
    excluded: bool = False
    properties: dict[str, str] = field(default_factory=dict)


MESSAGE_ID: Final = Body(MessagePosition, "message id")
POSITION: Final = Body(
    cast(
        "type[MessagePosition | str]",
        Literal["latest", "earliest"] | MessagePosition,
    ),
    "position",
)
TIMESTAMP: Final = PathNumber("timestamp", LONG_BITS)
_REPLICATED: Final = Flag("replicated")
_COUNT: Final = PathNumber("count")
_SECONDS: Final = PathNumber("seconds")
_CAUGHT_UP: Final = "subscription almost catch up"


class ResetCursorData(Struct, frozen=True):
    """The target of a cursor: the entry at a position, or the one after it (`is_excluded`)."""

    position: Position
    is_excluded: bool
    properties: dict[str, str]
    partition_index: int = -1


def read_reset_cursor(request: Request) -> ResetCursorData | None:
    """The body as `"latest"`, `"earliest"` or ResetCursorData; None for an empty body.

    Raises:
        UnreadableBodyError: It is something else.
    """
    value = POSITION.of(request)
    if value is None:
        return None
    if isinstance(value, str):
        places = {"latest": LATEST, "earliest": EARLIEST}
        return ResetCursorData(places[value], is_excluded=False, properties={})
    return ResetCursorData(
        Position(value.ledger_id, value.entry_id),
        is_excluded=value.excluded,
        properties=value.properties,
        partition_index=value.partition_index,
    )


class Subscriptions:
    """Operations on the subscriptions of a topic."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker
        self._topics = broker.topics

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(TOPIC + "/subscriptions", self.names, Action.GET_SUBSCRIPTIONS, answer=list[str]),
            put(SUBSCRIPTION, self.create, Action.SUBSCRIBE, POSITION, _REPLICATED),
            delete(SUBSCRIPTION, self.delete, Action.UNSUBSCRIBE, FORCE),
            post(SUBSCRIPTION + "/skip_all", self.skip_all, Action.SKIP),
            # Not of Apache Pulsar: dispatch stops until it is resumed, also over restarts.
            put(SUBSCRIPTION + "/pause", self.pause, Action.SKIP),
            delete(SUBSCRIPTION + "/pause", self.resume, Action.SKIP),
            # Not of Apache Pulsar: why nothing is sent or acknowledged.
            get(
                SUBSCRIPTION + "/standstill",
                self.standstill,
                Action.GET_STATS,
                answer="list[Standstill]",
            ),
            post(SUBSCRIPTION + "/skip/{count}", self.skip, Action.SKIP, _COUNT),
            post(
                SUBSCRIPTION + "/expireMessages/{seconds}",
                self.expire,
                Action.EXPIRE_MESSAGES,
                _SECONDS,
            ),
            post(
                SUBSCRIPTION + "/expireMessages",
                self.expire_to_position,
                Action.EXPIRE_MESSAGES,
                POSITION,
            ),
            post(
                TOPIC + "/all_subscription/expireMessages/{seconds}",
                self.expire_all,
                Action.EXPIRE_MESSAGES,
                _SECONDS,
            ),
            post(
                SUBSCRIPTION + "/resetcursor/{timestamp}",
                self.reset_to_time,
                Action.RESET_CURSOR,
                TIMESTAMP,
            ),
            post(
                SUBSCRIPTION + "/resetcursor", self.reset_to_position, Action.RESET_CURSOR, POSITION
            ),
        )

    async def names(self, request: Request) -> Response:
        """Return the names of all durable or connected subscriptions of all partitions."""
        name = topic_of(request)
        found: set[str] = set()

        async def add(part: TopicName) -> None:
            found.update((await require_topic(self._broker, part)).subscriptions)

        await require_namespace(self._broker, name.namespace_name)
        await for_each_partition(
            self._broker, name, add, on_answer=lambda _, answer: found.update(answer.json())
        )
        return json_response(sorted(found))

    async def create(self, request: Request) -> Response:
        """Create a durable subscription at a position, by default the end; and the topic, too."""
        name = topic_of(request)
        start = read_reset_cursor(request)
        subscription = request.path["subscription"]
        if not name.is_persistent:
            raise HttpError(
                HTTPStatus.BAD_REQUEST,
                "Create subscription on non-persistent topic can only be done through client",
            )
        await require_namespace(self._broker, name.namespace_name)
        topics: list[Topic] = []
        created_elsewhere: list[TopicName] = []

        async def collect(part: TopicName) -> None:
            topics.append(await self._load_or_create(part))

        await for_each_partition(
            self._broker,
            name,
            collect,
            on_answer=lambda part, _: created_elsewhere.append(part),
            tolerated=(HTTPStatus.CONFLICT,),
        )
        missing = [topic for topic in topics if subscription not in topic.subscriptions]
        if not missing and not created_elsewhere:
            raise HttpError(HTTPStatus.CONFLICT, "Subscription already exists for topic")
        for topic in missing:
            created = await self._create_on(topic, subscription, start)
            if _REPLICATED.of(request) and isinstance(created, PersistentSubscription):
                created.set_replicated(is_replicated=True)
        return NO_CONTENT

    async def _load_or_create(self, name: TopicName) -> Topic:
        await require_owned(self._broker, name)
        try:
            return await self._topics.get_or_load(name, create_if_missing=True)
        except (TopicNotFoundError, NotAllowedError):
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, "Topic does not exist and cannot be auto-created"
            ) from None

    async def _create_on(
        self, topic: Topic, name: str, start: ResetCursorData | None
    ) -> Subscription:
        starts_at_earliest = start is not None and start.position == EARLIEST
        subscription = await topic.create_subscription(
            name,
            starts_at_earliest=starts_at_earliest,
            properties=start.properties if start is not None else {},
        )
        if start is not None and start.position not in {EARLIEST, LATEST}:
            await subscription.reset_to_position(start.position, None)
        return subscription

    async def delete(self, request: Request) -> Response:
        """Delete a subscription; connected consumers prevent it unless `force` is set."""
        name = topic_of(request)
        subscription = request.path["subscription"]
        is_forced = FORCE.of(request)
        is_partitioned = bool(await self._topics.partitioned.count(name))
        found = 0

        async def act(part: TopicName) -> None:
            nonlocal found
            topic = await require_topic(self._broker, part)
            if subscription not in topic.subscriptions:
                return
            found += 1
            await topic.delete_subscription(subscription, force=is_forced or not part.is_persistent)

        def count(part: TopicName, answer: HttpResponse) -> None:  # noqa: ARG001 - it did it
            nonlocal found
            found += 1

        await for_each_partition(
            self._broker, name, act, on_answer=count, tolerated=(HTTPStatus.NOT_FOUND,)
        )
        if not found:
            raise subscription_not_found(name, subscription, is_partitioned=is_partitioned)
        return NO_CONTENT

    # --- moving cursors ------------------------------------------------------------------------

    async def skip_all(self, request: Request) -> Response:
        """Acknowledge the whole backlog of a subscription."""

        async def act(subscription: PersistentSubscription) -> None:
            await subscription.clear_backlog()

        await self._for_each(request, "Skip messages", act)
        return NO_CONTENT

    async def pause(self, request: Request) -> Response:
        """Send no more messages of a subscription to its consumers, also after a restart."""

        async def act(subscription: PersistentSubscription) -> None:
            await subscription.pause_dispatch()

        await self._for_each(request, "Pause dispatch", act)
        return NO_CONTENT

    async def resume(self, request: Request) -> Response:
        """Send the messages of a subscription to its consumers again."""

        async def act(subscription: PersistentSubscription) -> None:
            await subscription.resume_dispatch()

        await self._for_each(request, "Resume dispatch", act)
        return NO_CONTENT

    async def standstill(self, request: Request) -> Response:
        """Return the reasons why a subscription does not move, of each partition."""
        found: list[Json] = []
        name = topic_of(request)

        async def add(part: TopicName) -> None:
            subscription = await self._persistent(part, request.path["subscription"], "Standstill")
            found.append(standstill_json(part, subscription))

        await for_each_partition(
            self._broker, name, add, on_answer=lambda _, answer: found.extend(answer.json())
        )
        return json_response(found)

    async def skip(self, request: Request) -> Response:
        """Acknowledge a number of entries of a subscription's backlog."""
        name = topic_of(request)
        count = _COUNT.of(request)
        await refuse_partitioned(self._broker, name, "Skip messages on")
        subscription = await self._persistent(name, request.path["subscription"], "Skip messages")
        if count > 0:
            await subscription.skip_messages(count)
        return NO_CONTENT

    async def expire(self, request: Request) -> Response:
        """Acknowledge messages that were published longer ago than a number of seconds."""
        seconds = _SECONDS.of(request)

        async def act(part: TopicName) -> None:
            name = request.path["subscription"]
            subscription = await self._persistent(part, name, "Expire messages")
            topic = await require_topic(self._broker, part)
            may_have = seconds >= 0 and (
                not isinstance(topic, PersistentTopic)
                or await may_have_expired(topic, subscription, seconds)
            )
            if not may_have:
                raise _nothing_to_expire("timestamp", subscription, _CAUGHT_UP)
            await _expire_older_than(subscription, seconds)

        await for_each_partition(self._broker, topic_of(request), act)
        return NO_CONTENT

    async def expire_to_position(self, request: Request) -> Response:
        """Acknowledge all entries up to a position, included."""
        name = topic_of(request)
        target = read_reset_cursor(request)
        if await self._topics.partitioned.count(name):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Expire message at position is not supported for partitioned-topic",
            )
        if target is None:
            raise UnreadableBodyError("a position is required")
        if target.partition_index != name.partition_index:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"the position is of partition {target.partition_index}, the topic is "
                f"{name.partition_index}",
            )
        topic = await require_topic(self._broker, name)
        subscription = await self._persistent(name, request.path["subscription"], "Expire messages")
        is_known = (
            not isinstance(topic, PersistentTopic)
            or target.position == LATEST
            or target.position <= topic.ledger.last_confirmed_entry
        )
        if not is_known:
            raise _nothing_to_expire("position", subscription, "invalid message position provided")
        if await subscription.expire_up_to(_after_if_excluded(topic, target)):
            await subscription.write_cursor()
        return NO_CONTENT

    async def expire_all(self, request: Request) -> Response:
        """Acknowledge messages older than a number of seconds on every subscription."""
        seconds = _SECONDS.of(request)
        name = topic_of(request)

        async def act(part: TopicName) -> None:
            topic = await require_topic(self._broker, part)
            subscriptions = [
                each
                for each in topic.subscriptions.values()
                # What a compaction has not read yet is not its backlog.
                if isinstance(each, PersistentSubscription) and each.name != COMPACTION_SUBSCRIPTION
            ]
            if subscriptions and not any(each.stats().backlog_entries for each in subscriptions):
                raise _nothing_to_expire("timestamp", subscriptions[0], _CAUGHT_UP)
            # One that refuses now, because it is being reset, keeps none of the others.
            await each_result(lambda each: _expire_older_than(each, seconds), subscriptions)

        if not name.is_persistent:
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Expire messages for all subscriptions on a non-persistent topic is not allowed",
            )
        await for_each_partition(self._broker, name, act)
        return NO_CONTENT

    async def reset_to_time(self, request: Request) -> Response:
        """Move to the first entry published at a time or later; consumers reconnect."""
        timestamp = TIMESTAMP.of(request)
        name = topic_of(request)

        async def act(part: TopicName) -> None:
            subscription = await self._subscription(part, request.path["subscription"])
            if part.is_persistent:
                await subscription.reset_to_time(timestamp)

        await for_each_partition(self._broker, name, act)
        return NO_CONTENT

    async def reset_to_position(self, request: Request) -> Response:
        """Move to a position; consumers reconnect."""
        name = topic_of(request)
        target = read_reset_cursor(request)
        if await self._topics.partitioned.count(name):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "Reset-cursor at position is not allowed for partitioned-topic",
            )
        topic = await require_topic(self._broker, name)
        subscription = await self._subscription(name, request.path["subscription"])
        if target is None:
            raise UnreadableBodyError("a position is required")
        await subscription.reset_to_position(_after_if_excluded(topic, target), None)
        return NO_CONTENT

    # --- finding subscriptions -----------------------------------------------------------------

    async def _for_each(
        self,
        request: Request,
        what: str,
        act: Callable[[PersistentSubscription], Awaitable[None]],
    ) -> None:
        """Call `act` for the path's subscription, for a partitioned topic on each partition."""
        name = topic_of(request)

        async def act_on(part: TopicName) -> None:
            await act(await self._persistent(part, request.path["subscription"], what))

        await for_each_partition(self._broker, name, act_on)

    async def _subscription(self, name: TopicName, subscription: str) -> Subscription:
        topic = await require_topic(self._broker, name)
        found = topic.subscriptions.get(subscription)
        if found is None:
            raise subscription_not_found(name, subscription, is_partitioned=False)
        return found

    async def _persistent(
        self, name: TopicName, subscription: str, what: str
    ) -> PersistentSubscription:
        found = await self._subscription(name, subscription)
        if not isinstance(found, PersistentSubscription):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                f"{what} on a non-persistent topic is not allowed",
            )
        return found


def _after_if_excluded(topic: Topic, target: ResetCursorData) -> Position:
    if target.is_excluded and isinstance(topic, PersistentTopic):
        return topic.ledger.next_valid_position(target.position)
    return target.position


def subscription_not_found(
    name: TopicName, subscription: str, *, is_partitioned: bool
) -> HttpError:
    """The 404 for a subscription that no partition has."""
    if is_partitioned:
        return HttpError(HTTPStatus.NOT_FOUND, "Subscription not found")
    return HttpError(
        HTTPStatus.NOT_FOUND, f"Subscription {subscription} not found for topic {name}"
    )


async def subscription_on_partitions(
    broker: BrokerService, request: Request
) -> tuple[list[tuple[TopicName, Subscription]], list[HttpResponse]]:
    """The subscription of a request on the topic, or on each partition that has it.

    Other brokers, which serve some partitions, do there what the request asks; their answers come
    second.

    Raises:
        HttpError: 404, no partition has it.
        OtherBrokerError: Another broker refused for another reason, or could not be reached.
    """
    name, wanted = topic_of(request), request.path["subscription"]
    is_partitioned = bool(await broker.topics.partitioned.count(name))
    found: list[tuple[TopicName, Subscription]] = []
    answers: list[HttpResponse] = []

    async def collect(part: TopicName) -> None:
        subscription = (await require_topic(broker, part)).subscriptions.get(wanted)
        if subscription is not None:
            found.append((part, subscription))

    await for_each_partition(
        broker,
        name,
        collect,
        on_answer=lambda _, answer: answers.append(answer),
        tolerated=(HTTPStatus.NOT_FOUND,),
    )
    if not found and not answers:
        raise subscription_not_found(name, wanted, is_partitioned=is_partitioned)
    return found, answers


async def _expire_older_than(subscription: PersistentSubscription, seconds: int) -> None:
    """Acknowledge messages older than so many seconds, durably."""
    if await subscription.expire_older_than(seconds):
        await subscription.write_cursor()


def _nothing_to_expire(by: str, subscription: Subscription, reason: str) -> HttpError:
    return HttpError(
        HTTPStatus.CONFLICT,
        f"Expire message by {by} not issued on topic {subscription.topic_name} for subscription "
        f"{subscription.name} due to ongoing message expiration not finished or {reason}.",
    )
