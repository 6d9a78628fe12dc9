"""Follows topics for `pulsar-py tail`: start, conditions on messages, and end (edge).

The subscription is non-durable and its own, so nothing is acknowledged for anybody and nothing is
left behind. The client reconnects by itself and goes on after the last message that it handed out.
To begin some messages before the end, the admin API is asked for the entry so many before the last;
what comes from there is held back until the end is reached, and the last ones are shown in order of
their publish times.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from pulsar_py.admin_client import AdminError, AdminSettings, AsyncAdminClient, subscriptions
from pulsar_py.admin_client.settings import answer_of_error
from pulsar_py.cli.watching.shown_messages import ShownMessage, shown
from pulsar_py.client import Client, CryptoKeyReader
from pulsar_py.client.many_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_py.client.messages.message import Message
from pulsar_py.client.reading.catch_up import CatchUp
from pulsar_py.client.shared.enums import (
    ConsumerCryptoFailureAction,
    InitialPosition,
    SubscriptionMode,
)
from pulsar_py.client.subscribe import subscribe
from pulsar_py.common.conditions import Condition
from pulsar_py.common.errors import ClientTimeoutError, ConfigurationError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.message_id import EARLIEST_MESSAGE_ID, MessageId
from pulsar_py.common.names import TopicName
from pulsar_py.pipeline.settings.texts import parse_time
from pulsar_py.schema.auto_schemas import AutoConsumeSchema

__all__ = ["TailRequest", "parse_message_id", "request_of", "tail"]

Message_ = Message[Any]  # Any: of whatever schema
Consumer = MultiTopicsConsumer[Any]

_QUIET_MILLIS: Final = 500
"""How long nothing comes before it is asked whether there is more."""
_NO_SUCH_ENTRY: Final = 412
"""The status for a topic with fewer entries than were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRequest:
    """One call of the command."""

    topics: Sequence[str]
    pattern: re.Pattern[str] | None = None
    since_millis: int | None = None
    """Only messages that were published then or later, milliseconds since 1970."""
    start: MessageId | None = None
    """Begin with this message; of one topic or partition."""
    last_count: int | None = None
    """Begin with so many messages before the end, of all topics together."""
    keys: frozenset[str] = frozenset()
    properties: Sequence[tuple[str, str | None]] = ()
    """Names, and values unless any will do."""
    conditions: Sequence[Condition] = ()
    limit: int | None = None
    """End after so many messages were shown."""
    follows: bool = True
    """Whether to wait for messages beyond those that are there now."""
    key_file: str | None = None
    """PEM file of the private key that encrypted messages are decrypted with."""


def request_of(topics: Sequence[str], options: Mapping[str, Any]) -> TailRequest:  # Any: click's
    """The request that the command's arguments and options make.

    Raises:
        ConfigurationError: One of them can't be read.
    """
    since, start = options["since"], options["start"]
    if start is not None and (options["pattern"] or len(topics) != 1):
        raise ConfigurationError("--from is a message of one topic: give just that one")
    try:
        pattern = re.compile(options["pattern"]) if options["pattern"] else None
    except re.error as error:
        raise ConfigurationError(f"--pattern {options['pattern']!r}: {error}") from None
    properties = (each.partition("=") for each in options["properties"])
    return TailRequest(
        topics=topics,
        pattern=pattern,
        since_millis=None if since is None else parse_time(since, SystemClock().wall_time_millis()),
        start=None if start is None else parse_message_id(start),
        last_count=options["last"],
        keys=frozenset(options["keys"]),
        properties=[(name, value if equals else None) for name, equals, value in properties],
        conditions=[Condition.parse(each) for each in options["conditions"]],
        limit=options["limit"],
        follows=not options["no_follow"],
        key_file=None if options["key_file"] is None else str(options["key_file"]),
    )


def parse_message_id(text: str) -> MessageId:
    """The id in `ledger:entry`, `ledger:entry:partition` or `ledger:entry:partition:index`.

    Raises:
        ConfigurationError: It is something else.
    """
    found = re.fullmatch(r"(\d{1,18}):(\d{1,18})(?::(-?\d{1,9}))?(?::(-?\d{1,9}))?", text)
    if found is None:
        raise ConfigurationError(f"--from {text!r}: expected ledger:entry, such as 12:0")
    ledger_id, entry_id, partition, index = found.groups(default="-1")
    return MessageId(
        int(ledger_id), int(entry_id), partition_index=int(partition), batch_index=int(index)
    )


async def tail(
    request: TailRequest,
    client: Client,
    admin: AdminSettings,
    *,
    show: Callable[[ShownMessage], None],
    complain: Callable[[str], None],
    on_read: Callable[[float], None] | None = None,
    clock: Clock | None = None,
) -> int:
    """Show messages until there are enough, or none is left and nothing is to be followed.

    Args:
        request: What is asked for.
        client: A client of the cluster, which is left open.
        admin: Where the admin API is; asked only for `last_count`.
        show: Called with each message that is wanted.
        complain: Called with a line about each entry that can't be decoded.
        on_read: Called with 1 for each message that was looked at, for a bar.
        clock: For tests in virtual time.

    Returns:
        How many messages were shown.

    Raises:
        ServiceError, ClientError: A topic does not exist, or the cluster can't be reached.
    """
    consumer = await _open(request, client, complain, clock or SystemClock())
    try:
        await _go_to_start(request, consumer, admin)
        return await _Run(request, consumer, show, on_read or (lambda _: None)).run()
    finally:
        await consumer.close()


async def _open(
    request: TailRequest, client: Client, complain: Callable[[str], None], clock: Clock
) -> Consumer:
    is_at_end = request.since_millis is None
    rollback = 0
    if request.since_millis is not None:
        age_millis = clock.wall_time_millis() - request.since_millis
        rollback = max(-(-age_millis // 1000), 1)
    name = f"tail-{Random().getrandbits(40):010x}"  # noqa: S311 - no secret
    found = await subscribe(
        client.context,
        request.pattern or list(request.topics),
        name,
        schema=AutoConsumeSchema(),
        subscription_mode=SubscriptionMode.NonDurable,
        initial_position=InitialPosition.Latest if is_at_end else InitialPosition.Earliest,
        start_message_rollback_duration_seconds=rollback,
        start_message_id_inclusive=True,
        start_paused=True,
        force_topic_creation=False,
        crypto_key_reader=_key_reader(request.key_file),
        crypto_failure_action=ConsumerCryptoFailureAction.CONSUME,
        problem_listener=lambda entry, why: complain(f"entry {entry[0]}:{entry[1]}: {why}"),
    )
    assert isinstance(found, MultiTopicsConsumer)  # of a list, or of a pattern
    return found


def _key_reader(path: str | None) -> CryptoKeyReader | None:
    return None if path is None else CryptoKeyReader(private_key_path=path)


async def _go_to_start(request: TailRequest, consumer: Consumer, admin: AdminSettings) -> None:
    if request.start is not None:
        await consumer.seek(request.start)
    elif request.last_count:
        starts = await _starts(consumer.topics(), request.last_count, admin)
        await consumer.seek(lambda topic: starts.get(str(TopicName.parse(topic))))


async def _starts(topics: Sequence[str], count: int, admin: AdminSettings) -> dict[str, MessageId]:
    """The entry so many before the end, of each persistent topic; the first if there are fewer."""
    found: dict[str, MessageId] = {}
    async with AsyncAdminClient(admin) as calls:
        for topic in topics:
            if TopicName.parse(topic).is_persistent:
                found[str(TopicName.parse(topic))] = await _entry_before_end(calls, topic, count)
    return found


async def _entry_before_end(calls: AsyncAdminClient, topic: str, count: int) -> MessageId:
    try:
        reply = await calls.call(subscriptions.examine(topic, number=count))
    except AdminError as error:
        answer = answer_of_error(error)
        if answer is None or answer[0] != _NO_SUCH_ENTRY:
            raise
        return EARLIEST_MESSAGE_ID
    ledger_id, _, entry_id = reply.headers["x-pulsar-message-id"].partition(":")
    return MessageId(int(ledger_id), int(entry_id))


class _Run:
    """One run: what has been shown, and what is held back until the end is reached."""

    def __init__(
        self,
        request: TailRequest,
        consumer: Consumer,
        show: Callable[[ShownMessage], None],
        on_read: Callable[[float], None],
    ) -> None:
        self._on_read = on_read
        self._request = request
        self._consumer = consumer
        self._show = show
        self._shown_count = 0
        self._held: deque[ShownMessage] | None = None
        if request.last_count:
            self._held = deque(maxlen=request.last_count)

    async def run(self) -> int:
        """Read until the request is fulfilled."""
        read: dict[str, MessageId] = {}
        last = [
            each
            for each in await self._last_ids()
            if self._request.last_count != 0 and self._begins_before_end
        ]
        missing = CatchUp(last, read)
        self._consumer.resume()
        while not missing.is_done and not self._is_enough:
            message = await self._receive_if_any()
            if message is None:
                break
            self._handle(message)
            missing.on_read(message.topic_name(), message.message_id())
        self._release()
        while self._request.follows and not self._is_enough:
            self._handle(await self._consumer.receive())
        return self._shown_count

    @property
    def _begins_before_end(self) -> bool:
        request = self._request
        return bool(
            request.last_count or request.start is not None or request.since_millis is not None
        )

    @property
    def _is_enough(self) -> bool:
        return self._request.limit is not None and self._shown_count >= self._request.limit

    async def _last_ids(self) -> list[Any]:  # Any: ids that know their topic
        persistent = [each for each in self._consumer.topics() if _is_persistent(each)]
        if not persistent or not self._begins_before_end:
            return []
        found = await self._consumer.get_last_message_ids()
        return [each for each in found if _is_persistent(each.topic_name)]

    async def _receive_if_any(self) -> Message_ | None:
        """The next message; None if the end named is not there any more (it was deleted)."""
        while True:
            try:
                return await self._consumer.receive(_QUIET_MILLIS)
            except ClientTimeoutError:
                if not await self._consumer.has_message_available():
                    return None

    def _handle(self, message: Message_) -> None:
        self._on_read(1)
        if not self._is_wanted(message):
            return
        found = shown(message)
        conditions = self._request.conditions
        if conditions and found.error is not None:
            return
        value = _as_json(found.value) if conditions else None
        if not all(each.holds(value) for each in conditions):
            return
        if self._held is not None:
            self._held.append(found)
        else:
            self._emit(found)

    def _is_wanted(self, message: Message_) -> bool:
        request = self._request
        if request.since_millis is not None and message.publish_timestamp() < request.since_millis:
            return False
        if request.keys and message.key() not in request.keys:
            return False
        properties = message.properties() if request.properties else {}
        return all(
            name in properties and value in {None, properties[name]}
            for name, value in request.properties
        )

    def _release(self) -> None:
        """Show what was held back; what comes from now on is shown at once."""
        held, self._held = self._held, None
        for each in sorted(held or (), key=lambda found: found.fields["publishTime"]):
            if not self._is_enough:
                self._emit(each)

    def _emit(self, found: ShownMessage) -> None:
        self._shown_count += 1
        self._show(found)


def _as_json(value: Any) -> Any:  # Any: JSON
    """What a text says in JSON, as bytes without a schema do; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def _is_persistent(topic: str) -> bool:
    return TopicName.parse(topic).is_persistent
