"""Resource that publishes test messages, and sends dead letters to their topic again.

    POST /admin/console/topic/{domain}/{tenant}/{namespace}/{topic}/message
         body      {"value": JSON, encoded by the topic's schema; or "text", or "base64": bytes as
                   they are; "key", "properties", "eventTime", "deliverAfterSeconds"}
         answer    {"messageId"}
    POST …/{topic}/subscription/{subscription}/send-back
         body      {"limit": at most 1000, "to": a topic; by default the one that each names}
         answer    {"sent", "toTopics": {topic: number}, "skipped": why the next one could not go
                   back, "more": whether messages are left}

Both are done by a client within the process that has the caller's rights and no others, so that
quotas, rates, schemas and permissions count as for anybody. A dead letter keeps payload, key,
properties, event time and schema; the properties by which it became one are taken off. It is
acknowledged on the dead-letter topic once the broker has confirmed its copy, so a crash in between
sends it twice and never loses it. They go in their order, and only while nobody else consumes that
subscription; one that does not exist begins with the first dead letter.

Source: DeadLetterPolicy and RetryMessageUtil in Pulsar's Java client, which name the properties.
"""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from pulsar_py.admin.declared import Body, Long
from pulsar_py.admin.http_messages import (
    HttpError,
    Request,
    Response,
    UnreadableBodyError,
    json_response,
)
from pulsar_py.admin.resources.requests import topic_of
from pulsar_py.admin.resources.topic_access import require_namespace
from pulsar_py.admin.router import Route, post
from pulsar_py.admin.service_errors import status_of
from pulsar_py.common.errors import (
    ClientTimeoutError,
    InvalidTopicNameError,
    PulsarError,
    SchemaSerializationError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.console.answers import PublishedAnswer, SentBackAnswer
from pulsar_py.console.callers import Callers
from pulsar_py.console.topic_pages import SUBSCRIPTION, TOPIC, require_parts
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.peer import Peer

if TYPE_CHECKING:
    from pulsar_py.client.client import Client
    from pulsar_py.client.messages.message import Message
    from pulsar_py.client.producing.producer import Producer
    from pulsar_py.schema.schema_info import SchemaInfo

__all__ = ["NewClient", "Sending"]

NewClient = Callable[[Caller, Peer], "Client"]
"""Makes a client within the process, with the rights of a caller."""

MAX_LETTERS: Final = 1000
"""Of one call."""
MAX_TOPICS: Final = 50
"""Topics that one call sends dead letters back to."""

_DEFAULT_LETTERS: Final = 100
_WAIT_MILLIS: Final = 1000
"""How long the next dead letter is waited for, before there is none."""
_OF_DEAD_LETTERS: Final = frozenset(
    {
        "REAL_TOPIC",
        "REAL_SUBSCRIPTION",
        "ORIGIN_MESSAGE_ID",
        "ORIGIN_MESSAGE_IDY_TIME",
        "RECONSUMETIMES",
        "DELAY_TIME",
    }
)
_ORIGIN: Final = "REAL_TOPIC"


class MessageBody(Struct, frozen=True, rename="camel"):
    """A message to publish: its value, encoded by the topic's schema, or its bytes."""

    value: Any = None  # Any: whatever the schema takes
    text: str | None = None
    base64: str | None = None
    key: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    event_time: Long | None = None
    deliver_after_seconds: Long | None = None


class LettersBody(Struct, frozen=True):
    """Which dead letters go back, and where to; by default to the topic that each names."""

    limit: Long = _DEFAULT_LETTERS
    to: str | None = None


_MESSAGE: Final = Body(MessageBody, "message")
_LETTERS: Final = Body(LettersBody, "letters")


class Sending:
    """Publishes for callers."""

    def __init__(self, broker: BrokerService, callers: Callers, new_client: NewClient) -> None:
        self._broker = broker
        self._callers = callers
        self._new_client = new_client

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        return (
            post(
                TOPIC + "/message", self.message, Action.PRODUCE, _MESSAGE, answer=PublishedAnswer
            ),
            post(
                SUBSCRIPTION + "/send-back",
                self.send_back,
                Action.CONSUME,
                _LETTERS,
                answer=SentBackAnswer,
            ),
        )

    def _client(self, request: Request) -> Client:
        return self._new_client(self._callers.caller_of(request), request.peer)

    # --- a message -----------------------------------------------------------------------------

    async def message(self, request: Request) -> Response:
        """Publish one message."""
        name, given = topic_of(request), _MESSAGE.of(request) or MessageBody()
        await require_namespace(self._broker, name.namespace_name)
        delay = given.deliver_after_seconds
        payload, info = await self._payload(name, given)
        client = self._client(request)
        try:
            producer = await client.create_producer(str(name), schema=_as_they_are(info))
            message_id = await producer.send(
                payload,
                given.properties or None,
                partition_key=given.key,
                event_timestamp=given.event_time,
                deliver_after=timedelta(seconds=delay) if delay else None,
            )
        except PulsarError as error:
            raise _refusal(error) from None
        finally:
            await client.close()
        return json_response({"messageId": str(message_id)})

    async def _payload(
        self, name: TopicName, given: MessageBody
    ) -> tuple[bytes, SchemaInfo | None]:
        """The bytes to publish, and the schema that they were encoded by.

        Raises:
            HttpError: 400, the value does not fit the schema.
            UnreadableBodyError: No value, text or base64.
        """
        if given.text is not None:
            return given.text.encode(), None
        if given.base64 is not None:
            try:
                return base64.b64decode(given.base64, validate=True), None
            except binascii.Error:
                raise UnreadableBodyError("base64: expected bytes in Base64") from None
        if given.value is None:
            raise UnreadableBodyError("expected a value, a text or base64")
        from pulsar_py.schema.auto_schemas import schema_of  # noqa: PLC0415 - at first use

        info = await self._info(name, None)
        if info is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "the topic has no schema: send a text or bytes")
        try:
            return schema_of(info).encode(given.value), info
        except SchemaSerializationError as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None

    async def _info(self, name: TopicName, version: bytes | None) -> SchemaInfo | None:
        """A version of a topic's schema, the newest for None; None if there is none."""
        from pulsar_py.schema.schema_info import SchemaInfo  # noqa: PLC0415 - at first use

        schemas = self._broker.schemas
        if version is None:
            stored = await schemas.latest(name.schema_id)
        else:
            stored = await schemas.get(name.schema_id, version)
        return None if stored is None else SchemaInfo.from_wire(stored.definition.to_wire())

    # --- dead letters --------------------------------------------------------------------------

    async def send_back(self, request: Request) -> Response:
        """Send some of a subscription's backlog to the topics that the messages name."""
        name, given = topic_of(request), _LETTERS.of(request) or LettersBody()
        limit, to = given.limit, given.to
        if not 1 <= limit <= MAX_LETTERS:
            raise HttpError(HTTPStatus.BAD_REQUEST, f"limit: expected 1 to {MAX_LETTERS}")
        if to is not None and _topic(to) == name:
            raise HttpError(HTTPStatus.BAD_REQUEST, "to: the dead letters are in that topic")
        await require_parts(self._broker, name)
        client = self._client(request)
        try:
            return json_response(await self._send_back(client, request, name, limit, to))
        except PulsarError as error:
            raise _refusal(error) from None
        finally:
            await client.close()

    async def _send_back(
        self, client: Client, request: Request, name: TopicName, limit: int, to: str | None
    ) -> dict[str, Any]:  # Any: JSON
        from pulsar_py.client.shared.enums import InitialPosition  # noqa: PLC0415 - at first use

        consumer = await client.subscribe(
            str(name),
            request.path["subscription"],
            initial_position=InitialPosition.Earliest,
            receiver_queue_size=min(limit, _DEFAULT_LETTERS),
            ack_receipt_enabled=True,
        )
        producers: dict[str, Producer[Any]] = {}  # Any: each message has its schema
        sent: Counter[str] = Counter()
        skipped = None
        more = True
        while sent.total() < limit:
            try:
                letter = await consumer.receive(timeout_millis=_WAIT_MILLIS)
            except ClientTimeoutError:
                more = False
                break
            target = to or letter.properties().get(_ORIGIN)
            skipped = _obstacle(target, name, producers)
            if target is None or skipped is not None:
                break
            if target not in producers:
                producers[target] = await client.create_producer(target)
            await self._copy(letter, name, producers[target])
            await consumer.acknowledge(letter)
            sent[target] += 1
        return {"sent": sent.total(), "toTopics": dict(sent), "skipped": skipped, "more": more}

    async def _copy(
        self, letter: Message[Any], name: TopicName, producer: Producer[Any]
    ) -> None:  # Any: bytes of whatever schema
        version = letter.schema_version()
        info = None if version is None else await self._info(name, version)
        properties = {
            key: value for key, value in letter.properties().items() if key not in _OF_DEAD_LETTERS
        }
        key: str | bytes | None = None
        if letter.has_key():
            is_bytes = letter.has_base64_encoded_key()
            key = letter.key_bytes() if is_bytes else letter.partition_key()
        options: dict[str, Any] = {} if info is None else {"schema": _as_they_are(info)}
        await producer.send(
            None if letter.has_null_value() else letter.data(),
            properties or None,
            partition_key=key,
            ordering_key=letter.ordering_key_bytes() if letter.has_ordering_key() else None,
            event_timestamp=letter.event_timestamp() or None,
            **options,
        )


def _as_they_are(info: SchemaInfo | None) -> Any:  # Any: a schema of bytes, or of none
    from pulsar_py.schema.encoded_schema import EncodedSchema  # noqa: PLC0415 - at first use

    return None if info is None else EncodedSchema(info)


def _topic(text: str) -> TopicName:
    try:
        return TopicName.parse(text)
    except InvalidTopicNameError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None


def _obstacle(target: str | None, name: TopicName, known: Iterable[str]) -> str | None:
    """Why a message can't go back, None if it can."""
    if target is None:
        return "a message does not say which topic it comes from: name one"
    try:
        found = TopicName.parse(target)
    except InvalidTopicNameError as error:
        return str(error)
    if found in (name, name.base):
        return "a message comes from this very topic"
    if target not in known and len(list(known)) >= MAX_TOPICS:
        return f"the messages come from more than {MAX_TOPICS} topics: call again"
    return None


def _refusal(error: PulsarError) -> HttpError:
    """What the in-process client met, as an answer: the broker's own faults are conflicts here."""
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        status = HTTPStatus.CONFLICT
    if status == HTTPStatus.UNAUTHORIZED:
        status = HTTPStatus.FORBIDDEN  # a 401 would sign the caller out
    return HttpError(status, str(error) or type(error).__name__)
