"""Reads the entries of a piece through a broker, in runs of messages (edge).

`BrokerEntrySource` reads a piece with one non-durable consumer, started at the piece's first entry.
After a reconnect the client goes on behind the messages that it has handed out, so that each is
read once. Reading ends with the entry before the piece's end; an entry that was deleted or has no
message for a reader (a marker, a batch that compaction emptied) is skipped. Where no message comes
for `pollTimeoutMs` and the broker reports some, entries are missing.

The last entries of a piece may have no message for a reader. For entries that it received and
dropped, the client knows that; entries that the broker did not dispatch count as acknowledged
there. So if no message comes, all received entries are acknowledged in this subscription, and the
broker is asked for its mark-delete position.

An entry that came and can't be used (a wrong checksum, sizes that contradict each other, no key to
decrypt it) is an error, as a value that can't be decoded is, unless `undecodable` drops those.

A chunked message belongs to the piece that has its last chunk. Where its first chunk lies before
the piece, the ledger is read again from farther and farther back, then the topic from the message's
publish time, which all its chunks share, and then from before that, because publish times need not
ascend; each time at most `LOOK_BACK_MESSAGES` messages are read.

Unread messages are bounded in bytes: the receiver queue, which counts messages, is adapted to their
average size, and the consumer is opened anew when messages turn out much larger.

Source: PulsarSourceRDD of the JVM connector for time-outs.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from pulsar_py.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.messages.message import EntryKey, EntryMetadata, Message
from pulsar_py.client.receiving.chunk_assembly import ChunkListener
from pulsar_py.client.receiving.incoming_queue import ProblemListener
from pulsar_py.client.receiving.received_batch import ReceivedBatch
from pulsar_py.client.shared.enums import ConsumerCryptoFailureAction, SubscriptionMode
from pulsar_py.common.errors import ClientTimeoutError, SchemaSerializationError
from pulsar_py.common.message_id import MessageId
from pulsar_py.common.position import EARLIEST, Position
from pulsar_py.spark.planning.pieces import Piece

logger = logging.getLogger(__name__)

Run: TypeAlias = Sequence[Message]
"""Messages that follow each other: a list of them, or all of a large batch as `ReceivedBatch`."""

RUN_BYTES: Final = 1 << 20
"""About how many payload bytes one run of messages has."""
RUN_MESSAGES: Final = 4000
LOOK_BACK_MESSAGES: Final = 20_000
"""The most messages that may lie between the first and the last chunk of a message."""
_LOOK_BACK_FACTOR: Final = 8
_LOOK_BACK_SLACKS_MILLIS: Final = (0, 100, 1000, 10_000, 60_000)
_LOOK_BACK_QUEUE: Final = 8
_WAIT_MILLIS: Final = 1000
"""Time limit of one receive; between two of them the piece's end is checked."""


class SegmentSource(Protocol):
    """A source of the messages of a piece."""

    def read(self, piece: Piece) -> AsyncIterator[Run]:
        """All messages of the piece's entries, in order, in runs."""


class QueueSize:
    """Computes the size of the receiver queue from a limit in bytes (pure)."""

    MINIMUM: Final = 2
    MAXIMUM: Final = 8000
    PROBE: Final = 4
    """The queue size before the first message, while the size of messages is not known."""

    def __init__(self, limit_bytes: int, limit_messages: int | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._maximum = min(self.MAXIMUM, limit_messages or self.MAXIMUM)
        self.messages_count = min(self.PROBE, self._maximum)
        # The queue size that the current consumer was opened with.
        self.opened_count = 0

    def opened(self) -> int:
        """The queue size for a consumer that is opened now."""
        self.opened_count = self.messages_count
        return self.messages_count

    def observe(self, messages: Run) -> bool:
        """Learn from received messages; returns whether `messages_count` changed."""
        average = max(run_bytes(messages) // len(messages), 1)
        wanted = min(max(self._limit_bytes // average, self.MINIMUM), self._maximum)
        is_far = wanted * 2 < self.messages_count or (
            self.messages_count == self.PROBE and wanted > self.messages_count * 2
        )
        if is_far:
            self.messages_count = wanted
        return is_far


class TornMessage(NamedTuple):
    """A chunked message that ends in a piece and begins before what was read."""

    key: EntryKey
    """The entry of its last chunk."""
    uuid: str
    publish_millis: int
    chunks_count: int

    def starts(self) -> Iterator[Position | int]:
        """The places from which to look for its first chunk: positions, then publish times (ms)."""
        ledger_id, entry_id = self.key
        distance = self.chunks_count * 2
        while distance < min(entry_id, LOOK_BACK_MESSAGES):
            yield Position(ledger_id, entry_id - distance)
            distance *= _LOOK_BACK_FACTOR
        yield Position(ledger_id, max(entry_id - LOOK_BACK_MESSAGES, 0))
        for slack in _LOOK_BACK_SLACKS_MILLIS:
            yield max(self.publish_millis - slack, 1)


class ChunksOfPiece:
    """Collects the chunked messages of a piece whose beginning did not come (pure).

    Invariant: each is taken out once, however often its last chunk comes.
    """

    def __init__(self, end: Position) -> None:
        self._end = end
        self._taken: set[EntryKey] = set()
        self._torn: list[TornMessage] = []

    def on_chunk(
        self,
        key: EntryKey,
        metadata: EntryMetadata,
        is_begun: bool,  # noqa: FBT001 - a ChunkListener
    ) -> None:
        """Note a chunk that came."""
        is_last = metadata.chunk_id + 1 == metadata.num_chunks_from_msg
        if is_last and not is_begun and key < self._end and key not in self._taken:
            self._taken.add(key)
            count = metadata.num_chunks_from_msg
            self._torn.append(TornMessage(key, metadata.uuid, metadata.publish_time, count))

    def take_torn(self) -> list[TornMessage]:
        """The messages found since the last call, in order."""
        torn, self._torn = self._torn, []
        return torn


class ProblemsOfPiece:
    """Collects the entries of a piece that came and can't be used (pure).

    Invariant: each counts once, however often it comes.
    """

    def __init__(self, piece: Piece) -> None:
        self._piece = piece
        self._keys: set[EntryKey] = set()
        # Why the first of them can't be used; None while there is none.
        self.first_text: str | None = None

    def on_problem(self, key: EntryKey, text: str) -> None:  # a ProblemListener
        """Note an entry that can't be used."""
        if self._piece.start <= key < self._piece.end:
            self._keys.add(key)
            self.first_text = self.first_text or text

    @property
    def entries_count(self) -> int:
        """The number of such entries."""
        return len(self._keys)


class BrokerEntrySource:
    """Reads pieces through brokers."""

    def __init__(
        self,
        client: Client,
        *,
        poll_timeout_millis: int,
        fail_on_data_loss: bool,
        drops_unusable: bool = False,
        is_compacted: bool = False,
        subscription_prefix: str = "spark-pulsar",
        consumer_name: str | None = None,
        queue_bytes: int = 4 << 20,
        queue_messages: int | None = None,
        crypto_key_reader: Any = None,  # Any: as ConsumerConfig has it
    ) -> None:
        """No consumer is opened yet.

        Args:
            client: Shared; stays open.
            poll_timeout_millis: How long to wait for a message that should be there.
            fail_on_data_loss: Whether missing entries raise an error; else they are logged.
            drops_unusable: Whether entries that can't be used are skipped with a warning; else they
                raise an error.
            is_compacted: Read only the newest message of each key, where the broker has it.
            subscription_prefix: The beginning of the subscription's name in broker statistics.
            consumer_name: The name of the consumer there; None: the broker chooses.
            queue_bytes: How many bytes may wait unread.
            queue_messages: How many messages may wait unread; None: as many as are useful.
            crypto_key_reader: For encrypted messages.
        """
        self._client = client
        self._poll_timeout_millis = poll_timeout_millis
        self._fail_on_data_loss = fail_on_data_loss
        self._drops_unusable = drops_unusable
        self._is_compacted = is_compacted
        self._subscription_prefix = subscription_prefix
        self._consumer_name = consumer_name
        self._queue_bytes = queue_bytes
        self._queue_messages = queue_messages
        self._crypto_key_reader = crypto_key_reader

    async def read(self, piece: Piece) -> AsyncGenerator[Run, None]:
        """All messages of the piece's entries, in order, in runs.

        Raises:
            ClientTimeoutError: Messages are missing, and `failOnDataLoss` is true; the text has
                topic and positions.
            SchemaSerializationError: An entry can't be used, and is not dropped; the text has topic
                and entry.
            ServiceError, ClientError: The topic can't be read.
        """
        problems = ProblemsOfPiece(piece)
        async with aclosing(self._read(piece, problems)) as runs:
            async for run in runs:
                yield run
        if problems.first_text is not None:
            logger.warning(
                "entries can't be used",
                extra={
                    "topic": piece.topic,
                    "dropped": problems.entries_count,
                    "detail": problems.first_text,
                },
            )

    def _check(self, problems: ProblemsOfPiece) -> None:
        if problems.first_text is not None and not self._drops_unusable:
            raise SchemaSerializationError(
                f"{problems.first_text}; undecodable=drop skips such entries"
            )

    async def _read(self, piece: Piece, problems: ProblemsOfPiece) -> AsyncGenerator[Run, None]:
        # Hot path: batch read in `make bench-spark`.
        size = QueueSize(self._queue_bytes, self._queue_messages)
        position = piece.start
        chunks = ChunksOfPiece(piece.end)
        while position < piece.end:
            async with self._consumer(
                piece.topic, position, size.opened(), chunks.on_chunk, problems.on_problem
            ) as consumer:
                is_left = False
                while position < piece.end and not is_left:
                    messages = await self._next_run(consumer, piece, position)
                    # Before any await: a reconnect empties the queue, and moves `passed_key` back.
                    passed = consumer.passed_key
                    self._check(problems)
                    within = _before(messages, piece.end)
                    # A message in chunks belongs where its last chunk is.
                    for torn in chunks.take_torn():
                        found = await self._look_back(piece.topic, torn)
                        within = sorted([*within, *found], key=_key_of)
                    if within:
                        yield within
                    last = last_of(messages)
                    if last is None or last.entry.key >= piece.end:
                        return
                    position = Position(last.entry.key[0], last.entry.key[1] + 1)
                    # A run may end within a batch, whose rest this consumer still has.
                    if passed < last.entry.key:
                        position = Position(*last.entry.key)
                    elif size.observe(messages):
                        # The broker still has the permits of the larger queue, which can't be
                        # taken back: open another consumer.
                        is_left = size.messages_count < size.opened_count
                        if not is_left:
                            consumer.resize_receiver_queue(size.opened())

    async def _next_run(self, consumer: Consumer, piece: Piece, position: Position) -> Run:
        """The next messages; empty if there are no more before the piece's end.

        Raises as `read`.
        """
        waited_millis = 0
        last_key = (piece.end.ledger_id, piece.end.entry_id - 1)
        while True:
            run = await _take_run(consumer, last_key)
            passed = consumer.passed_key
            if run or passed >= last_key:
                return run
            waited_millis += _WAIT_MILLIS
            next_position = max(position, Position(passed[0], passed[1] + 1))
            if not await self._is_more_to_come(consumer, piece, next_position):
                return ()
            if waited_millis >= self._poll_timeout_millis:
                self._report_loss(
                    f"{piece.topic}: no message for {waited_millis} ms at {position}, entries"
                    f" before {piece.end} are missing"
                )
                return ()

    def _report_loss(self, text: str) -> None:
        if self._fail_on_data_loss:
            raise ClientTimeoutError(f"{text}; failOnDataLoss=false reads on without them")
        logger.warning("entries are missing", extra={"detail": text})

    async def _look_back(self, topic: str, torn: TornMessage) -> Sequence[Message]:
        """The message whose last chunk is known; empty if its first chunks can't be found."""
        for start in torn.starts():
            found = await self._look_from(topic, torn, start)
            if found:
                return found
        self._report_loss(
            f"{topic}: the first chunks of message {torn.uuid}, which ends at"
            f" {Position(*torn.key)}, were deleted, or are more than {LOOK_BACK_MESSAGES} messages"
            " back"
        )
        return ()

    async def _look_from(
        self, topic: str, torn: TornMessage, start: Position | int
    ) -> Sequence[Message]:
        """The message whose last chunk is known; empty if it begins before `start`."""
        seen_count = waited_millis = 0
        position = start if isinstance(start, Position) else EARLIEST
        async with self._consumer(
            topic, position, _LOOK_BACK_QUEUE, _leave_alone, None
        ) as consumer:
            if isinstance(start, int):
                await consumer.seek(start)
            while seen_count < LOOK_BACK_MESSAGES and waited_millis < self._poll_timeout_millis:
                messages = await _take_run(consumer, torn.key)
                found = [message for message in messages if message.entry.key == torn.key]
                if found:
                    return found
                if consumer.passed_key >= torn.key:
                    break
                waited_millis += 0 if messages else _WAIT_MILLIS
                seen_count += len(messages)
        return ()

    async def _is_more_to_come(self, consumer: Consumer, piece: Piece, position: Position) -> bool:
        """Whether the topic has a message between `position` and the piece's end."""
        if (passed := consumer.passed_key) > EARLIEST:
            await consumer.acknowledge_cumulative(MessageId(*passed))
        last, acknowledged = await consumer.ends()
        last = min(last, Position(piece.end.ledger_id, piece.end.entry_id - 1))
        after = Position(acknowledged.ledger_id, acknowledged.entry_id + 1)
        return max(position, after) <= last

    @asynccontextmanager
    async def _consumer(
        self,
        topic: str,
        start: Position,
        queue_messages: int,
        on_chunk: ChunkListener,
        on_problem: ProblemListener | None,
    ) -> AsyncIterator[Consumer]:
        config = ConsumerConfig(
            subscription_mode=SubscriptionMode.NonDurable,
            start_message_id_inclusive=True,
            force_topic_creation=False,
            consumer_name=self._consumer_name,
            receiver_queue_size=queue_messages,
            is_read_compacted=self._is_compacted,
            crypto_key_reader=self._crypto_key_reader,
            # Told to `on_problem`; with FAIL they would use up the permits, and nothing more come.
            crypto_failure_action=ConsumerCryptoFailureAction.DISCARD,
            # No chunked message may be given up: the limits are off.
            max_pending_chunked_message=0,
            expire_time_of_incomplete_chunked_message_ms=0,
            chunk_listener=on_chunk,
            problem_listener=on_problem,
            # At once, since `_is_more_to_come` asks for their effect right after.
            ack_grouping_time_ms=0,
            keeps_batches=True,
        )
        context = self._client.context
        name = f"{self._subscription_prefix}-{context.random.getrandbits(48):012x}"
        begin = MessageId(*max(start, EARLIEST))
        consumer = await Consumer.open(context, topic, name, config, start_message_id=begin)
        try:
            yield consumer
        finally:
            await consumer.close()


def _leave_alone(*_: object) -> None:
    """A ChunkListener that does nothing: if there is one, chunks without a start come only once."""


async def _take_run(consumer: Consumer, until: EntryKey | None = None) -> Run:
    """The next messages, up to the size of a run.

    Empty if no message came for a while, or the entry `until` was passed.
    """
    return await consumer.receive_run(
        _WAIT_MILLIS, messages_limit=RUN_MESSAGES, bytes_limit=RUN_BYTES, until=until
    )


def run_bytes(messages: Run) -> int:
    """The payload bytes of a run."""
    if isinstance(messages, ReceivedBatch):
        return messages.size()
    return sum(message.size() for message in messages)


def last_of(messages: Run) -> Message | None:
    """The last message of a run; None of an empty one."""
    if isinstance(messages, ReceivedBatch):
        return messages.last
    return messages[-1] if messages else None


def _before(messages: Run, end: Position) -> Run:
    """The messages of entries before `end`."""
    last = last_of(messages)
    if last is None or last.entry.key < end:
        return messages
    if isinstance(messages, ReceivedBatch):
        return ()
    return [message for message in messages if message.entry.key < end]


def _key_of(message: Message) -> EntryKey:
    return message.entry.key
