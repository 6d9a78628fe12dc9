"""REST resource that shows messages decoded by their schema; an addition to Pulsar's API.

    GET …/{topic}/messages                            from the beginning, an id or a time on
    GET …/{topic}/subscription/{subscription}/messages    of a backlog

    query       limit         messages that are answered, 1 to 1000; 10
                messageId     `ledger:entry`: begin with that entry or the next one there is;
                              `ledger:entry:partition:index` with that message of its batch
                timestamp     begin with what was published then or later, milliseconds since 1970
                key           only messages with this key
                property      only messages with this property, `name` or `name=value`
                text          only messages whose value contains this: a text, else the value's JSON
                where         only messages whose value this condition holds for: `amount>10`,
                              `customer.country=SE`, as `pulsar-py tail --where` has them; may be
                              repeated; bytes without a schema count as the JSON that they are
    answer      {"messages": […], "next": a messageId unless this is the end, "scannedEntries": n}

Batches are split, payloads decompressed and decoded by the schema that each message names. `next`
is where to go on; a scan for few among many ends after some entries or bytes, and is gone on with
in the same way. What can't be read (encrypted, damaged, of another schema) is there all the same,
with `error` and its bytes. Nothing is acknowledged.

    message     messageId, topic, publishTime, eventTime, key, orderingKey, properties,
                producerName, sequenceId, schemaVersion, schemaType, sizeBytes, deliverAtTime,
                replicatedFrom, chunk {id, count}, encryptionKeys, isNull, marker,
                value, or error and payload

Fields that a message lacks are left out; times are ISO 8601.

Third-party packages it may import: msgspec.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pulsar_py.admin.declared import Number, Text, Texts
from pulsar_py.admin.http_messages import (
    MAX_JSON_BODY_BYTES,
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
)
from pulsar_py.admin.json_text import EncodedJson
from pulsar_py.admin.json_values import LONG_BITS, read_int
from pulsar_py.admin.messages.backlog_analysis import backlog_entries, entries_from
from pulsar_py.admin.messages.message_headers import iso_date, plain_payload
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.subscriptions import SUBSCRIPTION, subscription_not_found
from pulsar_py.admin.resources.topic_access import refuse_partitioned, require_topic
from pulsar_py.admin.resources.topics import TOPIC
from pulsar_py.admin.router import Route, get
from pulsar_py.common.conditions import Condition
from pulsar_py.common.errors import ConfigurationError, PayloadError, SchemaSerializationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.linear_patterns import linear_pattern
from pulsar_py.common.loops.work import Turns
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.proto.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.wire.batch import each_in_batch
from pulsar_py.wire.entry_summary import decode_partition_key
from pulsar_py.wire.payload import split_entry

if TYPE_CHECKING:
    from pulsar_py.schema.schema import Decoder

Json = dict[str, Any]  # Any: JSON
Fields = MessageMetadata | SingleMessageMetadata

MAX_MESSAGES: Final = 1000
"""Of one answer."""
MAX_SCANNED_ENTRIES: Final = 20_000
MAX_SCANNED_BYTES: Final = 64 * 1024 * 1024
"""Of one request; where it ends, the next one begins."""
MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Of the payloads in one answer; one that is larger alone is answered alone."""

MAX_CONDITION_CHARACTERS: Final = 1000

_DEFAULT_MESSAGES: Final = 10
_PARTITION_AND_INDEX: Final = 2
_UNITS_A_MESSAGE: Final = 10
"""Of `Turns`: what decoding a message costs, compared with reading a name."""


_LIMIT: Final = Number("limit")
_MESSAGE_ID: Final = Text("messageId")
_TIMESTAMP: Final = Number("timestamp", LONG_BITS)
_PROPERTY: Final = Text("property")
_KEY: Final = Text("key")
_TEXT: Final = Text("text")
_WHERE: Final = Texts("where")
_QUERY: Final = (_LIMIT, _MESSAGE_ID, _TIMESTAMP, _PROPERTY, _KEY, _TEXT, _WHERE)


class Query(Struct, frozen=True, kw_only=True):
    """The parameters of one request."""

    limit: int
    start: Position | None
    start_index: int  # in the batch at `start`
    timestamp: int | None
    key: str | None
    property_name: str | None
    property_value: str | None
    text: str | None
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, request: Request) -> Query:
        """Read the search from the request's query.

        Raises:
            HttpError: 400, a parameter is not what it has to be.
        """
        limit = _number(request, _LIMIT)
        limit = _DEFAULT_MESSAGES if limit is None else limit
        if not 1 <= limit <= MAX_MESSAGES:
            raise _bad(f"limit {limit}: expected 1 to {MAX_MESSAGES}")
        start, start_index = _place(_MESSAGE_ID.of(request))
        timestamp = _number(request, _TIMESTAMP)
        if start is not None and timestamp is not None:
            raise _bad("messageId and timestamp exclude each other; give one")
        name, equals, value = (_PROPERTY.of(request) or "").partition("=")
        return cls(
            limit=limit,
            start=start,
            start_index=start_index,
            timestamp=timestamp,
            key=_KEY.of(request),
            property_name=name or None,
            property_value=value if equals else None,
            text=_TEXT.of(request) or None,
            conditions=tuple(map(_condition, filter(None, _WHERE.of(request)))),
        )

    def wants(self, key: str | None, properties: dict[str, str]) -> bool:
        """Whether a message with these may be wanted; its text is looked at later."""
        if self.key is not None and key != self.key:
            return False
        if self.property_name is None:
            return True
        value = properties.get(self.property_name)
        return value is not None and self.property_value in {None, value}


def _condition(text: str) -> Condition:
    if len(text) > MAX_CONDITION_CHARACTERS:
        raise _bad(f"where: more than {MAX_CONDITION_CHARACTERS} characters")
    try:
        return Condition.parse(text, compiler=linear_pattern, what="where")
    except ConfigurationError as error:
        raise _bad(str(error)) from None


def _bad(reason: str) -> HttpError:
    return HttpError(HTTPStatus.BAD_REQUEST, reason)


def _number(request: Request, parameter: Number) -> int | None:
    text = parameter.text(request) or None
    try:
        return read_int(text, parameter.name, bits=parameter.bits)
    except UnreadableBodyError as error:
        raise _bad(str(error)) from None


def _place(text: str | None) -> tuple[Position | None, int]:
    """The entry of a message id, and the index in its batch."""
    if not text:
        return None, 0
    try:
        ledger_id, entry_id, *rest = map(int, text.split(":"))
    except ValueError:
        rest, ledger_id, entry_id = [], -2, -2
    if len(rest) > _PARTITION_AND_INDEX or not all(
        -1 <= each < 1 << 63 for each in (ledger_id, entry_id, *rest)
    ):
        raise _bad(f"messageId {text!r}: expected ledger:entry, such as 12:0")
    index = rest[1] if len(rest) == _PARTITION_AND_INDEX else 0
    return Position(ledger_id, entry_id), max(index, 0)


class ReadableMessages:
    """Shows messages of topics and of backlogs."""

    def __init__(self, broker: BrokerService) -> None:
        self._broker = broker

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            get(
                TOPIC + "/messages",
                self.of_topic,
                Action.PEEK_MESSAGES,
                *_QUERY,
                answer="ReadableMessagesAnswer",
            ),
            get(
                SUBSCRIPTION + "/messages",
                self.of_subscription,
                Action.PEEK_SUBSCRIPTION,
                *_QUERY,
                answer="ReadableMessagesAnswer",
            ),
        )

    async def of_topic(self, request: Request) -> Response:
        """Return messages of a topic, in order."""
        query = Query.of(request)
        topic = await self._topic(request)
        start = await self._start(topic, query)
        return await self._answer(topic, query, entries_from(topic, start))

    async def of_subscription(self, request: Request) -> Response:
        """Return messages that a subscription has not acknowledged, in order."""
        query = Query.of(request)
        topic = await self._topic(request)
        wanted = request.path["subscription"]
        subscription = topic.subscriptions.get(wanted)
        if not isinstance(subscription, PersistentSubscription):
            raise subscription_not_found(topic_of(request), wanted, is_partitioned=False)
        start = await self._start(topic, query)
        return await self._answer(topic, query, backlog_entries(topic, subscription, start))

    async def _topic(self, request: Request) -> PersistentTopic:
        name = topic_of(request)
        await refuse_partitioned(
            self._broker, name, "Messages of", hint=", please ask for those of each partition"
        )
        topic = await require_topic(self._broker, name)
        if not isinstance(topic, PersistentTopic):
            text = "a non-persistent topic keeps no messages"
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, text)
        return topic

    async def _start(self, topic: PersistentTopic, query: Query) -> Position:
        if query.timestamp is not None:
            return await topic.find_by_publish_time(query.timestamp)
        return EARLIEST if query.start is None else query.start

    async def _answer(
        self, topic: PersistentTopic, query: Query, entries: AsyncGenerator[Entry, None]
    ) -> Response:
        scan = _Scan(topic, query, _Decoders(self._broker, topic), self._broker.config)
        async with aclosing(entries):
            async for entry in entries:
                if scan.next is None and scan.is_full:
                    scan.end_before(entry.position)
                if scan.next is not None:
                    break
                await scan.add(entry)
        return json_response(scan.json())


class _Decoders:
    """How the values of one topic are decoded, by the version of its schema that they name."""

    def __init__(self, broker: BrokerService, topic: PersistentTopic) -> None:
        self._schemas = broker.schemas
        self._schema_id = topic.name.schema_id
        self._known: dict[bytes, tuple[str, Decoder[Any]]] = {}  # Any: the topic's schemas decide

    async def of(self, version: bytes | None) -> tuple[str, Decoder[Any]]:
        """The schema's type, and a function of payload and key.

        Raises:
            SchemaSerializationError: The topic has no such version, or it can't be decoded with.
        """
        if version is None:
            return "BYTES", lambda data, _key: data
        if version not in self._known:
            self._known[version] = await self._load(version)
        return self._known[version]

    async def _load(self, version: bytes) -> tuple[str, Decoder[Any]]:
        # The coders of Avro and JSON are loaded when somebody reads messages.
        from pulsar_py.schema.auto_schemas import schema_of  # noqa: PLC0415 - at first use
        from pulsar_py.schema.schema_info import SchemaInfo  # noqa: PLC0415 - at first use

        try:
            stored = await self._schemas.get(self._schema_id, version)
        except ValueError:
            stored = None
        if stored is None:
            raise SchemaSerializationError(f"the topic has no version {version.hex()} of a schema")
        info = SchemaInfo.from_wire(stored.definition.to_wire())
        return info.type.name, schema_of(info).decoder_for(None)


@dataclass
class _Scan:
    """The messages found so far, and how many entries were looked at."""

    topic: PersistentTopic
    query: Query
    decoders: _Decoders
    config: Any  # Any: the broker's settings
    messages: list[Json] = field(default_factory=list)
    next: str | None = None  # where to go on, once this ends before the topic's end
    entries_count: int = 0
    scanned_bytes: int = 0
    answer_bytes: int = 0
    turns: Turns = field(default_factory=Turns)

    @property
    def is_full(self) -> bool:
        """Whether the next entry is to be left to the next request."""
        return (
            len(self.messages) >= self.query.limit
            or self.entries_count >= MAX_SCANNED_ENTRIES
            or self.scanned_bytes >= MAX_SCANNED_BYTES
            or self.answer_bytes >= MAX_ANSWER_BYTES
        )

    def json(self) -> Json:
        """The answer."""
        return {
            "messages": self.messages,
            "next": self.next,
            "scannedEntries": self.entries_count,
        }

    def end_before(self, position: Position, index: int | None = None) -> None:
        """Leave the rest, from a message on, to the next request."""
        if index is None:
            self.next = f"{position.ledger_id}:{position.entry_id}"
        else:
            self.next = self._id(position, index)

    async def add(self, entry: Entry) -> None:
        """Look at an entry: its messages are added that are wanted, as long as there is room."""
        data = bytes(entry.data)
        self.entries_count += 1
        self.scanned_bytes += len(data)
        await self.turns.take(_UNITS_A_MESSAGE)
        base = {"messageId": self._id(entry.position), "topic": str(self.topic.name)}
        try:
            parts = split_entry(data)
        except PayloadError as error:
            self._keep({**base, "error": str(error), "sizeBytes": len(data)}, data)
            return
        metadata = parts.metadata
        base |= _of_entry(metadata)
        try:
            payload = plain_payload(metadata, parts.payload, max_bytes=self.config.maxMessageSize)
        except HttpError as error:
            self._keep({**base, **_of_message(metadata), "error": error.reason}, parts.payload)
            return
        if metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys:
            await self._add_batch(entry.position, metadata, payload, base)
        else:
            await self._add(base, metadata, metadata, payload)

    async def _add_batch(
        self, position: Position, metadata: MessageMetadata, payload: bytes, base: Json
    ) -> None:
        first = self.query.start_index if position == self.query.start else 0
        try:
            for each in each_in_batch(payload, metadata.num_messages_in_batch):
                await self.turns.take(_UNITS_A_MESSAGE)
                if each.batch_index < first:
                    continue
                if self.is_full:
                    self.end_before(position, each.batch_index)
                    return
                own = {**base, "messageId": self._id(position, each.batch_index)}
                await self._add(own, metadata, each.metadata, each.payload)
        except PayloadError as error:
            self._keep({**base, "error": str(error)}, payload)

    async def _add(
        self, base: Json, metadata: MessageMetadata, fields: Fields, payload: bytes
    ) -> None:
        found = {**base, **_of_message(fields), "sizeBytes": len(payload)}
        if not self.query.wants(found.get("key"), found["properties"]):
            return
        shown, value = await self._value(metadata, fields, payload)
        found |= shown
        if self.query.conditions:
            looked_at = _as_json(value) if isinstance(value, str) else value
            if not all(each.holds(looked_at) for each in self.query.conditions):
                return
        if self.query.text is None or self.query.text in _text_of(found, value):
            self.messages.append(found)
        self.answer_bytes += len(payload)

    async def _value(
        self, metadata: MessageMetadata, fields: Fields, payload: bytes
    ) -> tuple[Json, Any]:  # Any: JSON, None where there is no value
        """What is shown of the value, and itself in the terms of JSON."""
        from pulsar_py.schema.plain_values import plain_bytes, plain_value  # noqa: PLC0415 - at first use

        raw: Json = {"payload": plain_bytes(payload)}
        if metadata.encryption_keys:
            return {"error": "encrypted; only who has a key can read it", **raw}, None
        if metadata.HasField("marker_type"):
            return raw, None
        if metadata.num_chunks_from_msg > 1:
            return {"error": "one chunk of a message; consumers put it together", **raw}, None
        version = metadata.schema_version if metadata.HasField("schema_version") else None
        key = None
        if fields.HasField("partition_key") and not fields.null_partition_key:
            key = decode_partition_key(
                fields.partition_key, is_base64=fields.partition_key_b64_encoded
            )
        try:
            kind, decode = await self.decoders.of(version)
            value = decode(None if fields.null_value else payload, key)
        except SchemaSerializationError as error:
            return {"error": str(error), **raw}, None
        plain = plain_value(value)
        # As text of its own: nulls within a value are told, those around it are left out.
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
        return {"schemaType": kind, "value": EncodedJson([text])}, plain

    def _keep(self, found: Json, payload: bytes) -> None:
        """Add what can't be read, unless something is looked for in it."""
        from pulsar_py.schema.plain_values import plain_bytes  # noqa: PLC0415 - at first use

        is_looked_for = self.query.text is not None or self.query.conditions
        if not is_looked_for and self.query.wants(found.get("key"), found.get("properties", {})):
            self.messages.append({**found, "payload": plain_bytes(payload)})
            self.answer_bytes += len(payload)

    def _id(self, position: Position, index: int | None = None) -> str:
        text = f"{position.ledger_id}:{position.entry_id}:{self.topic.name.partition_index}"
        return text if index is None else f"{text}:{index}"


def _as_json(text: str) -> Any:  # Any: JSON
    """What a text says in JSON; the text itself if that is nothing, or too long for one turn."""
    if len(text) > MAX_JSON_BODY_BYTES:
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text


_OF_ENTRY: Final[tuple[tuple[str, str, Callable[[Any], Any]], ...]] = (  # Any: fields of many types
    ("publish_time", "publishTime", iso_date),
    ("deliver_at_time", "deliverAtTime", iso_date),
    ("producer_name", "producerName", str),
    ("sequence_id", "sequenceId", int),
    ("replicated_from", "replicatedFrom", str),
    ("marker_type", "marker", int),
)
"""Fields of a whole entry that are shown if they are set: field, name, form."""


def _of_entry(metadata: MessageMetadata) -> Json:
    found: Json = {
        name: form(getattr(metadata, field_name))
        for field_name, name, form in _OF_ENTRY
        if metadata.HasField(field_name)  # type: ignore[arg-type] # a name of a field, from the table
    }
    if metadata.HasField("schema_version"):
        found["schemaVersion"] = int.from_bytes(metadata.schema_version, "big")
    if metadata.num_chunks_from_msg > 1:
        found["chunk"] = {"id": metadata.chunk_id, "count": metadata.num_chunks_from_msg}
    if metadata.encryption_keys:
        found["encryptionKeys"] = [each.key for each in metadata.encryption_keys]
    return found


def _of_message(fields: Fields) -> Json:
    found: Json = {"properties": {each.key: each.value for each in fields.properties}}
    if fields.HasField("partition_key") and not fields.null_partition_key:
        found["key"] = fields.partition_key
    if fields.HasField("ordering_key"):
        found["orderingKey"] = fields.ordering_key.decode(errors="replace")
    if fields.event_time:
        found["eventTime"] = iso_date(fields.event_time)
    if isinstance(fields, SingleMessageMetadata) and fields.HasField("sequence_id"):
        found["sequenceId"] = fields.sequence_id
    if fields.null_value:
        found["isNull"] = True
    return found


def _text_of(found: Json, plain: object) -> str:
    """What is searched: a text as it is, other values' JSON, or bytes that were not decoded."""
    value = found.get("value")
    if isinstance(value, EncodedJson):
        return plain if isinstance(plain, str) else "".join(value.pieces)
    payload = found.get("payload")
    return payload if isinstance(payload, str) else ""
