"""REST resource that reads stored messages as they are: of a backlog, by id, by place, by time.

An entry is answered as `message_headers` describes; clients split batches themselves. Its content
type is that of JSON although the body is bytes, as Apache Pulsar's is.

Source: PersistentTopicsBase.internalPeekNthMessageAsync, internalGetMessageById,
internalExamineMessageAsync, internalGetMessageIdByTimestampAsync in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from pulsar_py.admin.declared import Number, PathNumber, Text
from pulsar_py.admin.http_messages import (
    JSON,
    HttpError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.json_values import LONG_BITS
from pulsar_py.admin.messages.message_headers import message_headers, plain_payload
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import (
    MESSAGE_ID,
    SUBSCRIPTION,
    TIMESTAMP,
    subscription_not_found,
)
from pulsar_py.admin.resources.topic_access import refuse_partitioned, require_topic
from pulsar_py.admin.resources.topics import TOPIC, message_id_json
from pulsar_py.admin.router import Route, get, put
from pulsar_py.common.errors import EntryNotFoundError, LedgerNotFoundError, PayloadError
from pulsar_py.common.names import TopicName
from pulsar_py.common.position import LATEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.payload import parse_broker_entry_metadata, split_entry

NOWHERE: Final = Position(-1, -1)
"""Stands for the beginning of a topic in answers."""


_NUMBER: Final = PathNumber("number")
_LEDGER: Final = PathNumber("ledger", LONG_BITS)
_ENTRY: Final = PathNumber("entry", LONG_BITS)
_INITIAL: Final = Text("initialPosition")
_NTH: Final = Number("messagePosition")
_INDEX: Final = Number("index", LONG_BITS)
_UNREADABLE: Final = (HTTPStatus.UNPROCESSABLE_ENTITY,)


class StoredMessages:
    """Reads messages and finds their ids."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                SUBSCRIPTION + "/position/{number}",
                self.peek,
                Action.PEEK_SUBSCRIPTION,
                _NUMBER,
                errors=_UNREADABLE,
            ),
            get(
                TOPIC + "/ledger/{ledger}/entry/{entry}",
                self.by_id,
                Action.PEEK_MESSAGES,
                _LEDGER,
                _ENTRY,
                errors=_UNREADABLE,
            ),
            get(
                TOPIC + "/examinemessage",
                self.examine,
                Action.PEEK_MESSAGES,
                _INITIAL,
                _NTH,
                errors=_UNREADABLE,
            ),
            get(
                TOPIC + "/messageid/{timestamp}",
                self.id_by_time,
                Action.PEEK_MESSAGES,
                TIMESTAMP,
                answer="MessageIdAnswer",
            ),
            get(
                TOPIC + "/getMessageIdByIndex",
                self.id_by_index,
                Action.PEEK_MESSAGES,
                _INDEX,
                answer="MessageIdAnswer",
            ),
            put(
                TOPIC + "/backlogSize", self.backlog_size, Action.GET_STATS, MESSAGE_ID, answer=int
            ),
        )

    # --- messages ------------------------------------------------------------------------------

    async def peek(self, request: Request) -> Response:
        """Return the n-th entry, from 1, that a subscription has not acknowledged."""
        number = _NUMBER.of(request)
        name, wanted = topic_of(request), request.path["subscription"]
        topic = await self._topic(name, "Peek messages on")
        if number < 1:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED, f"position {number}: expected 1 or more"
            )
        subscription = topic.subscriptions.get(wanted)
        if not isinstance(subscription, PersistentSubscription):
            raise subscription_not_found(name, wanted, is_partitioned=False)
        position = await subscription.cursor.unacknowledged_at(number)
        if position is None:
            raise HttpError(HTTPStatus.NOT_FOUND, "Message not found")
        return await self._answer(topic, position)

    async def by_id(self, request: Request) -> Response:
        """Return the entry at a position."""
        position = Position(
            _LEDGER.of(request),
            _ENTRY.of(request),
        )
        topic = await self._topic(topic_of(request), "GetMessageById on")
        return await self._answer(topic, position)

    async def examine(self, request: Request) -> Response:
        """Return the n-th entry from the topic's first one on, or back from its last one."""
        given = _NTH.of(request)
        number = 1 if given is None else max(1, given)
        topic = await self._topic(topic_of(request), "Examine messages on", _ON_PARTITION)
        ledger = topic.ledger
        if not ledger.entries_count:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                "Could not examine messages due to the total message is zero",
            )
        if _INITIAL.of(request) == "earliest":
            index = min(number, ledger.entries_count)
        else:
            index = ledger.entries_count - number + 1
        if index < 1:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                f"message {number} from the latest: the topic has {ledger.entries_count}",
            )
        before = ledger.previous_position(ledger.first_position)
        return await self._answer(topic, ledger.ledgers.position_after_entries(before, index))

    async def _answer(self, topic: PersistentTopic, position: Position) -> Response:
        data = bytes((await read_entry(topic, position)).data)
        try:
            parts = split_entry(data)
        except PayloadError as error:
            raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, f"{position}: {error}") from None
        limit = self._broker.config.maxMessageSize
        is_uncommitted = (
            parts.metadata.HasField("txnid_most_bits") and position > topic.max_read_position()
        )
        return Response(
            body=plain_payload(parts.metadata, parts.payload, max_bytes=limit),
            content_type=JSON,
            headers=message_headers(
                position, parts, size_bytes=len(data), is_uncommitted=is_uncommitted
            ),
        )

    # --- ids -----------------------------------------------------------------------------------

    async def id_by_time(self, request: Request) -> Response:
        """Return the id of the first message that was published at a time or later.

        If there is none, it is that of the next one to come, as in Apache Pulsar.
        """
        timestamp = TIMESTAMP.of(request)
        name = topic_of(request)
        topic = await self._topic(name, "Get message ID by timestamp on")
        found = await topic.find_by_publish_time(timestamp)
        return json_response(message_id_json(found, name.partition_index))

    async def id_by_index(self, request: Request) -> Response:
        """Return the id of the entry that holds the message with an index in the topic.

        Without an index, or with an empty one, it is 0.
        """
        index = (_INDEX.of(request) if _INDEX.text(request) else None) or 0
        if not (
            self._broker.config.brokerEntryMetadataInterceptors
            or await self._has_index(topic_of(request))
        ):
            text = "GetMessageIDByIndex is not allowed when broker entry metadata is disabled"
            raise HttpError(HTTPStatus.PRECONDITION_FAILED, text)
        name = topic_of(request)
        if await self._broker.topics.partitioned.count(name):
            text = "GetMessageIDByIndex is not allowed on partitioned-topic"
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, text)
        if index < 0:
            raise HttpError(HTTPStatus.NOT_FOUND, f"Invalid message index: {index}")
        topic = await self._topic(name, "Get messageId by index on")
        last = topic.ledger.last_confirmed_entry
        if not topic.ledger.contains(last):
            raise HttpError(HTTPStatus.NOT_FOUND, f"No messages found in topic {name}")
        if _index_of(await read_entry(topic, last)) is None:
            raise HttpError(
                HTTPStatus.PRECONDITION_FAILED,
                "entries have no index: the setting brokerEntryMetadataInterceptors adds it",
            )
        before = await topic.ledger.find_newest(lambda entry: (_index_of(entry) or 0) < index)
        first = topic.ledger.first_position
        found = first if before is None else topic.ledger.next_valid_position(before)
        if not topic.ledger.contains(found):
            raise HttpError(HTTPStatus.NOT_FOUND, f"Message not found for index {index}")
        return json_response(message_id_json(found, name.partition_index))

    async def _has_index(self, name: TopicName) -> bool:
        """Whether a loaded topic's last entry has an index, from the time when they were added."""
        topic = self._broker.topics.loaded(name)
        if not isinstance(topic, PersistentTopic):
            return False
        last = topic.ledger.last_confirmed_entry
        return topic.ledger.contains(last) and _index_of(await read_entry(topic, last)) is not None

    async def backlog_size(self, request: Request) -> Response:
        """Return the estimated bytes stored after a position, for its latest form all of them."""
        given = MESSAGE_ID.required(request, "the body is missing: expected a message id")
        position = Position(given.ledger_id, given.entry_id)
        topic = await self._topic(topic_of(request), "Get backlog size on")
        start = NOWHERE if position == LATEST else position
        return json_response(topic.ledger.ledgers.size_after(start))

    async def _topic(self, name: TopicName, what: str, hint: str = "") -> PersistentTopic:
        """A persistent topic without partitions, or one partition.

        Raises:
            HttpError: 404 if there is none, 405 for one of another kind.
        """
        await refuse_partitioned(self._broker, name, what, hint=hint)
        topic = await require_topic(self._broker, name)
        if not isinstance(topic, PersistentTopic):
            raise HttpError(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{what} a non-persistent topic is not allowed"
            )
        return topic


_ON_PARTITION: Final = ", please try examine message on specific topic partition"


async def read_entry(topic: PersistentTopic, position: Position) -> Entry:
    """One entry of a topic.

    Raises:
        HttpError: 404 if there is none.
    """
    try:
        if topic.ledger.contains(position):
            return await topic.examine(position)
    except (EntryNotFoundError, LedgerNotFoundError):
        pass  # it was trimmed meanwhile
    raise HttpError(HTTPStatus.NOT_FOUND, "Message id not found")


def _index_of(entry: Entry) -> int | None:
    """The index in the topic of an entry's last message."""
    try:
        stamp = parse_broker_entry_metadata(entry.data)
    except PayloadError:
        return None
    return stamp.index if stamp is not None and stamp.HasField("index") else None
