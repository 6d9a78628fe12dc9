"""`Producer`: one producer id of one connection, on one topic.

It checks SENDs as far as that depends on the producer alone, and passes each entry to the topic's
`append`, which reports outcomes for many entries at a time. Receipts have the order of the SENDs.
So has the refusal of a message: clients look at the oldest message that has no answer. Until the
receipts before it are sent, later SENDs are held, as many as those that wait for a rate.

    WAITING ──ready──> READY ──leave──> CLOSED        the client closed it
       │                 ├───────────> DISCONNECTED   the broker said CLOSE_PRODUCER: SENDs dropped
       └──────fenced─────┴───────────> FENCED         a SEND closes the connection

Invariant: every SEND that was counted as in flight is subtracted once, even after the producer
left.

Source: Producer in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum, auto
from itertools import repeat
from typing import Final, Protocol

from msgspec import Struct, field

from pulsar_py.common.errors import (
    ChecksumError,
    ManagedLedgerClosedError,
    ManagedLedgerTerminatedError,
    NotAllowedError,
    PersistenceError,
    PulsarError,
    ServiceError,
    ServiceMetadataError,
    TopicTerminatedError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.server.publishing.producer_stats import ProducerStats
from pulsar_py.server.publishing.requests import ProducerGrant, ProducerRequest
from pulsar_py.wire import commands
from pulsar_py.wire.commands import SendReceiptEncoder
from pulsar_py.wire.payload import ChecksumStatus, has_no_wrong_checksum, verify_checksum

# Kinds of SENDs: the last item of the context.
MESSAGE: Final = 0
CHUNK: Final = 1
MARKER: Final = 2
CHUNK_PART: Final = 3  # a chunk that is not its message's last one

_SEND_ERRORS = (ChecksumError, NotAllowedError, ServiceMetadataError, TopicTerminatedError)

_FINAL_ERRORS = (NotAllowedError, ServiceMetadataError)
"""Errors of a message that the topic would refuse each time."""

CPP_CLIENT: Final = "Pulsar-CPP-v"
"""How `client_version` begins for clients on the C++ library."""

_WRONG = ChecksumStatus.WRONG

Append = Callable[[bytes, "PublishContext"], None]

AppendRun = Callable[[list[bytes], Sequence["PublishContext"]], int]
"""Appends the first entries of a run, and returns how many."""

Send = tuple[int, int | None, int, bool, bool, bytes]
"""The arguments of `Producer.publish`: sequence id, highest one, messages, whether it is a chunk,
whether a marker, headers and payload."""

# Producer, sequence id, highest one, size, messages, kind. Hot path: each entry has one, and a
# plain tuple costs less than an object.
PublishContext = tuple["Producer", int, int | None, int, int, int]


class ProducerContext(Struct, frozen=True, kw_only=True):
    """The parts that the producers of one broker share.

    Attributes:
        tasks: Owns background work of topics and their producers; closed by the broker.
        new_producer_name: Returns a name that no producer of the cluster ever had.
        receipts: Builds SEND_RECEIPT frames in one reused message.
    """

    clock: Clock
    tasks: TaskOwner
    new_producer_name: Callable[[], Awaitable[str]]
    receipts: SendReceiptEncoder


class ProducerTopic(Protocol):
    """The part of a topic that a producer uses."""

    @property
    def name(self) -> TopicName:
        """The topic's name."""

    @property
    def context(self) -> ProducerContext:
        """The parts that all producers share."""

    def remove_producer(self, producer: Producer) -> None:
        """Called by a producer that leaves."""


class ProducerState(Enum):
    """The state of a producer."""

    WAITING = auto()
    READY = auto()
    CLOSED = auto()
    DISCONNECTED = auto()
    FENCED = auto()


class _Behind(Struct):
    """A refusal that waits for the receipts before it, and the SENDs that came after it."""

    refusal: tuple[int, int | None, PulsarError]
    sends: deque[Send] = field(default_factory=deque)


class Producer:
    """Serves the SENDs of one producer id; made by `Topic.add_producer`, owned by its topic."""

    __slots__ = (
        "_append",
        "_append_run",
        "_behind",
        "_closed",
        "_rates",
        "_refuses",
        "bytes_in_count",
        "chunks_count",
        "connected_since_millis",
        "connection",
        "dropped_count",
        "in_flight",
        "is_chunked",
        "messages_in_count",
        "name",
        "pending_count",
        "producer_id",
        "request",
        "state",
        "topic",
    )

    def __init__(
        self,
        topic: ProducerTopic,
        request: ProducerRequest,
        name: str,
        append: Append,
        *,
        now_millis: int,
    ) -> None:
        self.topic = topic
        self.request = request
        self.name = name
        self.connection = request.connection
        self.producer_id = request.producer_id
        self.in_flight = request.in_flight
        self.state = ProducerState.WAITING
        self.connected_since_millis = now_millis
        self.messages_in_count = 0
        self.bytes_in_count = 0
        self.chunks_count = 0
        self.dropped_count = 0  # non-persistent topics: publishes beyond the connection's limit
        self.is_chunked = False
        self.pending_count = 0  # entries passed to the topic and not answered yet
        self._append = append
        self._append_run: AppendRun | None = None  # None: entries go one by one
        self._refuses = True  # whether `publish` takes the slow way out
        self._behind: _Behind | None = None  # set while a refusal waits for receipts
        self._closed: asyncio.Future[None] | None = None  # set when `close` has no more to wait for
        # The last rates, and the counts they started from.
        self._rates = (0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)

    @property
    def epoch(self) -> int:
        """The client's count of its reconnections."""
        return self.request.epoch

    @property
    def is_closed(self) -> bool:
        """Whether it left its topic."""
        return self.state not in (ProducerState.READY, ProducerState.WAITING)

    def publish(  # noqa: PLR0917 - hot path: positional
        self,
        sequence_id: int,
        highest_sequence_id: int | None,
        messages_count: int,
        is_chunk: bool,  # noqa: FBT001
        is_marker: bool,  # noqa: FBT001
        headers_and_payload: bytes,
    ) -> None:
        """Serve one SEND; any answer (SEND_RECEIPT, SEND_ERROR) is sent by the connection.

        Never raises. Receipts come in order.
        """
        # Hot path: publish-1k
        if self._refuses:
            self._refuse(
                (
                    sequence_id,
                    highest_sequence_id,
                    messages_count,
                    is_chunk,
                    is_marker,
                    headers_and_payload,
                )
            )
            return
        size = len(headers_and_payload)
        if highest_sequence_id is not None and sequence_id > highest_sequence_id:
            highest_sequence_id = None
        if verify_checksum(headers_and_payload) is _WRONG:
            self.send_error(
                sequence_id, highest_sequence_id, ChecksumError("Checksum failed on the broker")
            )
            return
        in_flight = self.in_flight
        in_flight.entries_count += 1
        buffer = in_flight.buffer
        buffer.bytes_count += size
        if in_flight.entries_count >= in_flight.max_entries or buffer.bytes_count >= buffer.limit:
            in_flight.on_limit()
        self.pending_count += 1
        self.messages_in_count += messages_count if messages_count > 0 else 1
        self.bytes_in_count += size
        kind = MESSAGE
        if is_chunk:
            kind = CHUNK
            self.chunks_count += 1
            self.is_chunked = True
        elif is_marker:
            kind = MARKER
        try:
            self._append(
                headers_and_payload,
                (self, sequence_id, highest_sequence_id, size, messages_count, kind),
            )
        except PulsarError as error:
            self.count_out(1, size)
            if self.pending_count and isinstance(error, _FINAL_ERRORS):
                self._behind = _Behind((sequence_id, highest_sequence_id, error))
                self._refuses = True
            else:
                self.send_publish_error(sequence_id, highest_sequence_id, error)

    def publish_run(self, sends: Sequence[Send]) -> None:
        """Serve SENDs that came one behind the other, as `publish` does each of them."""
        # Hot path: publish-1k. One call for all SENDs of a read, where nothing is special.
        if len(sends) == 1:
            self.publish(*sends[0])
            return
        append_run = self._append_run
        taken_count = 0
        if append_run is not None and not self._refuses:
            datas = [send[5] for send in sends]
            if has_no_wrong_checksum(datas):
                taken_count = self._publish_run(append_run, datas, sends)
        for send in sends[taken_count:] if taken_count else sends:
            self.publish(*send)

    def publish_plain(self, sequence_ids: Sequence[int], datas: list[bytes]) -> None:
        """Serve SENDs of single messages that have nothing but ids, as `publish` does each."""
        # Hot path: publish-1k. One call for most SENDs of a read.
        append_run = self._append_run
        taken_count = 0
        if append_run is not None and not self._refuses and has_no_wrong_checksum(datas):
            lengths = list(map(len, datas))
            contexts: list[PublishContext] = list(
                zip(
                    repeat(self), sequence_ids, repeat(None), lengths, repeat(1), repeat(MESSAGE),
                    strict=False,
                )
            )  # fmt: skip
            taken_count = append_run(datas, contexts)
            if taken_count:
                self._count_in(taken_count, sum(lengths[:taken_count]), taken_count)
        if taken_count < len(datas):
            rest = zip(sequence_ids[taken_count:], datas[taken_count:], strict=True)
            for sequence_id, data in rest:
                self.publish(sequence_id, None, 1, False, False, data)

    def _publish_run(self, append_run: AppendRun, datas: list[bytes], sends: Sequence[Send]) -> int:
        """Append the first SENDs of a run and count them; returns how many."""
        contexts: list[PublishContext] = []
        add = contexts.append
        for sequence_id, highest, messages_count, is_chunk, is_marker, data in sends:
            if highest is not None and sequence_id > highest:
                highest = None  # noqa: PLW2901 - as `publish` takes it
            kind = (CHUNK if is_chunk else MARKER) if is_chunk or is_marker else MESSAGE
            add((self, sequence_id, highest, len(data), messages_count, kind))
        taken_count = append_run(datas, contexts)
        if not taken_count:
            return 0
        if taken_count < len(contexts):
            del contexts[taken_count:]
        size = messages_count = chunks_count = 0
        for _, _, _, entry_bytes, count, kind in contexts:
            size += entry_bytes
            messages_count += count if count > 0 else 1
            chunks_count += kind == CHUNK
        if chunks_count:
            self.chunks_count += chunks_count
            self.is_chunked = True
        self._count_in(taken_count, size, messages_count)
        return taken_count

    def _count_in(self, entries_count: int, size_bytes: int, messages_count: int) -> None:
        """Count entries that the topic took."""
        self.pending_count += entries_count
        self.messages_in_count += messages_count
        self.bytes_in_count += size_bytes
        in_flight = self.in_flight
        in_flight.entries_count += entries_count
        buffer = in_flight.buffer
        buffer.bytes_count += size_bytes
        if in_flight.entries_count >= in_flight.max_entries or buffer.bytes_count >= buffer.limit:
            in_flight.on_limit()

    def set_append(self, append: Append, append_run: AppendRun | None = None) -> None:
        """Use other functions to append entries, after the topic's settings changed."""
        self._append = append
        self._append_run = append_run

    def count_out(self, entries_count: int, size_bytes: int) -> None:
        """Subtract publishes that were answered, or never will be, from those in flight."""
        self.pending_count -= entries_count
        assert self.pending_count >= 0, self.name
        self.in_flight.finished(entries_count, size_bytes)
        if self.pending_count == 0:
            if self._behind is not None:
                asyncio.get_running_loop().call_soon(self._go_on)
            if self._closed is not None and not self._closed.done():
                self._closed.set_result(None)

    def send_receipt(
        self, sequence_id: int, highest_sequence_id: int | None, ledger_id: int, entry_id: int
    ) -> None:
        """Answer one SEND; groups go through `Topic.on_appended` instead."""
        encode = self.topic.context.receipts.encode
        self.connection.send(
            encode(self.producer_id, sequence_id, ledger_id, entry_id, highest_sequence_id)
        )

    def send_publish_error(
        self, sequence_id: int, highest_sequence_id: int | None, error: PulsarError
    ) -> None:
        """Answer a SEND that could not be stored; nothing is sent after CLOSE_PRODUCER."""
        # No answer is needed: once it has reconnected, the client resends all unanswered messages.
        if self.state is ProducerState.DISCONNECTED or isinstance(error, ManagedLedgerClosedError):
            return
        answer = _as_send_error(error)
        if isinstance(answer, _FINAL_ERRORS) and self._takes_refusals_as_outages:
            answer = ChecksumError(str(answer))
        self.send_error(sequence_id, highest_sequence_id, answer)

    @property
    def _takes_refusals_as_outages(self) -> bool:
        """Whether the client sends a refused message again for ever, whatever the error says.

        The C++ library, and with it the official Python and Node.js clients, closes its connection
        at a SEND_ERROR and sends the message again on the next one, where its timeout starts anew:
        the message never ends, and none after it is sent. Only at ChecksumError it gives the
        message up, and goes on with the next.
        """
        return self.connection.client_version.startswith(CPP_CLIENT)

    def send_error(
        self, sequence_id: int, highest_sequence_id: int | None, error: ServiceError
    ) -> None:
        """Send SEND_ERROR, with the highest sequence id of the batch."""
        highest = sequence_id if highest_sequence_id is None else highest_sequence_id
        self.connection.send(
            commands.send_error(self.producer_id, max(sequence_id, highest), error.code, str(error))
        )

    def _refuse(self, send: Send) -> None:
        if self._behind is not None:
            size = len(send[5])
            self._behind.sends.append(send)
            self.in_flight.started(size)
            self.in_flight.hold(size)
        elif self.state in (ProducerState.FENCED, ProducerState.WAITING):
            # Closing makes the client send PRODUCER again, whose answer says that it is fenced.
            self.connection.close()
        elif self.state is ProducerState.CLOSED:
            self.send_error(send[0], send[1], PersistenceError("Producer is closed"))

    def _go_on(self) -> None:
        """Refuse the message that waited for receipts, and publish what came behind it."""
        behind = self._behind
        if behind is None:
            return
        self._behind = None
        self._refuses = False
        self.send_publish_error(*behind.refusal)
        sizes: list[int] = []
        while behind.sends and not self._refuses:
            send = behind.sends.popleft()
            sizes.append(len(send[5]))
            self.publish(*send)
        rest = behind.sends
        if self._behind is not None:  # one more was refused, and the rest waits for it
            self._behind.sends = rest
        elif rest:
            sizes.extend(len(send[5]) for send in rest)
        self._release(sizes)

    def _release(self, sizes: Iterable[int]) -> None:
        """Count SENDs no longer as held; those that were published count anew."""
        for size in sizes:
            self.in_flight.release(size)
            self.in_flight.finished(1, size)

    def become_ready(self) -> None:
        """Accept SENDs from now on."""
        assert self.state is ProducerState.WAITING
        self.state = ProducerState.READY
        self._refuses = False

    def tell_ready(self, answer: ProducerGrant | ServiceError) -> None:
        """Report the outcome of waiting for exclusive access to the connection."""
        if self.request.on_ready is not None:
            self.request.on_ready(answer)

    async def close(self) -> None:
        """Leave the topic after all publishes are answered; for the client's CLOSE_PRODUCER."""
        self._leave(ProducerState.CLOSED)
        if self.pending_count and self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
        if self._closed is not None:
            await asyncio.shield(self._closed)
        self.topic.remove_producer(self)

    def on_connection_lost(self) -> None:
        """Leave the topic at once, and answer no more publishes."""
        self._leave(ProducerState.CLOSED)
        self.topic.remove_producer(self)

    def disconnect(self) -> None:
        """Leave the topic on the broker's side: send CLOSE_PRODUCER, and drop late SENDs."""
        if self.is_closed:
            return
        self._leave(ProducerState.DISCONNECTED)
        self.connection.producer_closed_by_broker(self.producer_id)
        self.topic.remove_producer(self)

    def replace(self) -> None:
        """Leave the topic without CLOSE_PRODUCER: the client reconnected with a higher epoch."""
        self._leave(ProducerState.DISCONNECTED)
        self.topic.remove_producer(self)

    def fence(self) -> None:
        """Leave the topic because another one became exclusive; the next SEND is refused."""
        self._leave(ProducerState.FENCED)

    def _leave(self, state: ProducerState) -> None:
        if not self.is_closed:
            self.state = state
            self._refuses = True
            behind, self._behind = self._behind, None
            if behind is not None:
                self._release(len(send[5]) for send in behind.sends)

    def roll_rates(self, seconds: float) -> None:
        """Start a new window of rates; the last one was this long."""
        *_, messages, size, chunks, dropped = self._rates
        self._rates = (
            (self.messages_in_count - messages) / seconds,
            (self.bytes_in_count - size) / seconds,
            (self.chunks_count - chunks) / seconds,
            (self.dropped_count - dropped) / seconds,
            self.messages_in_count,
            self.bytes_in_count,
            self.chunks_count,
            self.dropped_count,
        )

    @property
    def in_rates(self) -> tuple[float, float]:
        """Messages and bytes a second over the last window."""
        return self._rates[0], self._rates[1]

    def stats(self) -> ProducerStats:
        """A snapshot for REST and metrics."""
        message_rate, bytes_rate, chunk_rate, dropped_rate, *_ = self._rates
        return ProducerStats(
            producer_id=self.producer_id,
            producer_name=self.name,
            access_mode=self.request.access_mode,
            address=self.connection.remote_address,
            client_version=self.connection.client_version,
            connected_since_millis=self.connected_since_millis,
            metadata=self.request.metadata,
            message_in_rate=message_rate,
            bytes_in_rate=bytes_rate,
            chunked_rate=chunk_rate,
            average_message_bytes=bytes_rate / message_rate if message_rate else 0.0,
            messages_in_count=self.messages_in_count,
            bytes_in_count=self.bytes_in_count,
            dropped_count=self.dropped_count,
            dropped_rate=dropped_rate,
            supports_partial_producer=self.request.supports_partial_producer,
        )

    def __repr__(self) -> str:
        return f"Producer({self.name!r}, {self.producer_id}, {self.state.name})"


def _as_send_error(error: PulsarError) -> ServiceError:
    """The error with a code that clients know in SEND_ERROR; others become PersistenceError.

    With that one clients reconnect and send the message again.
    """
    if isinstance(error, ManagedLedgerTerminatedError):
        return TopicTerminatedError(str(error))
    if isinstance(error, _SEND_ERRORS):
        return error
    return PersistenceError(str(error))
