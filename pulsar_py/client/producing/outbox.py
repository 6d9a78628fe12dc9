"""Encodes and sends a producer's messages, and sends them again after a reconnect (edge).

    post_plain(_run), post_batch -------------------------> pending --write--> connection
    post_draft --> [unready: codec thread, fresh key] -->   |  ^--on_send_receipt--> done
                                                            └── again, in order, on `attach`

The outbox holds all entries that the broker has not confirmed. Most are encoded at once. A draft
that has to wait (its large payload is compressed in a thread, or a data key is to be renewed) goes
to `unready`, and everything behind it too, so that order holds; one task empties it. What always
holds: an entry ends exactly once, by receipt, refusal, time-out or the end of the producer, and
only then its permits and memory are given back; entries are written in the order in which they were
posted, on each connection again.

Source: ProducerImpl in Pulsar's Java client: processOpSendMsg, resendMessages, failPendingMessages.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pulsar_py.client.producing.batch_container import Batch
from pulsar_py.client.producing.chunking import chunk_size, cut
from pulsar_py.client.producing.entry_encoder import Draft, EntryEncoder
from pulsar_py.client.producing.pending_messages import (
    Buffers,
    ChunkedSend,
    PendingEntry,
    PendingMessages,
)
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.sequence_ids import SequenceIds
from pulsar_py.client.security.encrypted_elsewhere import PassingEncryptor, WrappedKeys
from pulsar_py.client.security.message_crypto import MessageEncryptor
from pulsar_py.client.shared.enums import CompressionType
from pulsar_py.common.errors import (
    ClientError,
    ClientTimeoutError,
    MessageTooBigError,
    PulsarError,
)
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.proto import PulsarApi_pb2 as proto
from pulsar_py.wire.compression import compress
from pulsar_py.wire.framing import DEFAULT_MAX_MESSAGE_SIZE

if TYPE_CHECKING:
    from pulsar_py.client.brokers.client_cnx import ClientCnx

__all__ = ["Outbox"]

logger = logging.getLogger(__name__)

_THREAD_BYTES: Final[dict[CompressionType, int]] = {
    CompressionType.LZ4: 1024 * 1024,
    CompressionType.SNAPPY: 1024 * 1024,
    CompressionType.ZSTD: 512 * 1024,
    CompressionType.ZLib: 32 * 1024,
}
"""Payloads of at least so many bytes are compressed in a thread: it takes about a millisecond, more
than handing it to the thread."""


class Outbox:
    """One producer's entries without receipt. Owned by its TopicProducer."""

    def __init__(
        self,
        config: ProducerConfig,
        encoder: EntryEncoder,
        *,
        topic: str,
        clock: Clock,
        tasks: TaskOwner,
        on_done: Callable[[Sequence[PendingEntry], bool], None],
        on_stored: Callable[[PendingEntry], None],
    ) -> None:
        """Nothing is sent before `attach`.

        Args:
            config: The producer's options.
            encoder: Makes the frames.
            topic: Full name of the topic or partition.
            clock: For time limits and publish times.
            tasks: Large payloads are compressed there.
            on_done: Gets entries just before their results are set, and whether they are stored.
            on_stored: As `on_done`, of one that is stored, and comes alone.
        """
        self._config = config
        self.encoder = encoder
        self._topic = topic
        self._clock = clock
        self._tasks = tasks
        self._on_done = on_done
        self._on_stored = on_stored
        # The entry whose receipt a thread has handled last, or was interrupted in that.
        self._expected: PendingEntry | None = None
        self.encryptor: MessageEncryptor | PassingEncryptor | None = None
        if isinstance(config.crypto_key_reader, WrappedKeys):
            self.encryptor = PassingEncryptor(config.crypto_key_reader)
        elif config.crypto_key_reader is not None:
            self.encryptor = MessageEncryptor(
                config.encryption_keys,
                config.crypto_key_reader,
                failure_action=config.crypto_failure_action,
            )
        self._can_chunk = config.chunking_enabled and topic.startswith("persistent:")
        # Whether payloads go out as they are: not compressed, encrypted or cut by an option.
        self._has_short_way = (
            config.compression_type is CompressionType.NONE
            and self.encryptor is None
            and not (self._can_chunk and config.chunk_max_message_size > 0)
        )
        # The newest connection's limit for metadata and payload.
        self.max_message_size = DEFAULT_MAX_MESSAGE_SIZE
        # Payloads above this are refused at once: no encoding makes them fit.
        self.largest_payload: float = math.inf
        # The connection on which the producer is registered; None while it is not.
        self._cnx: ClientCnx | None = None
        self._pending = PendingMessages()
        # Drafts that wait for their turn to be encoded, and everything behind them.
        self._unready: deque[tuple[PendingEntry, Draft]] = deque()
        # The task that empties `_unready`; None while that is empty.
        self._encoding: asyncio.Task[None] | None = None
        # Entries that got receipts since the last `settle`.
        self._confirmed: list[PendingEntry] = []
        self._timeout_seconds = config.send_timeout_millis / 1000
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_plain(self) -> bool:
        """Whether a payload can be posted as it is, and without waiting for entries before it."""
        return self._has_short_way and not self._unready

    @property
    def outstanding(self) -> list[PendingEntry]:
        """All entries that have not ended, oldest first."""
        return [*self._pending, *(entry for entry, _ in self._unready)]

    # --- sending -------------------------------------------------------------------------------

    def post_plain(
        self, entry: PendingEntry, payload: bytes, sequence_id: int, publish_time: int
    ) -> None:
        """Post a message that has nothing but a payload; only while `is_plain`."""
        # Hot path: produce unbatched in `make bench-client`.
        entry.sequence_id = entry.highest_sequence_id = sequence_id
        self._post(entry, self.encoder.encode_plain(payload, sequence_id, publish_time))

    def post_plain_run(
        self,
        entries: Sequence[PendingEntry],
        payloads: Sequence[bytes],
        first_sequence_id: int,
        publish_time: int,
    ) -> None:
        """Post messages as `post_plain`, whose sequence ids are in a row."""
        # Hot path: produce unbatched in `make bench-client`.
        frames = self.encoder.encode_plain_run(payloads, first_sequence_id, publish_time)
        out: list[bytes | memoryview] = []
        for sequence_id, (entry, buffers) in enumerate(
            zip(entries, frames, strict=True), first_sequence_id
        ):
            entry.sequence_id = entry.highest_sequence_id = sequence_id
            entry.buffers = buffers
            out += buffers
        self._pending.extend(entries)
        if self._cnx is not None:
            self._cnx.write(out)
        if self._timer is None:
            self._set_timer()

    def post_alone(
        self,
        payload: bytes,
        size: int,
        sequences: SequenceIds,
        partition_index: int,
        *,
        in_loop: bool,
    ) -> PendingEntry | None:
        """Post a message that has nothing but a payload, and write it at once.

        Returns None, and has done nothing, where it would not be the next that is written.

        Args:
            payload: The message.
            size: Bytes of the payload, which were reserved for it.
            sequences: Gives its sequence id.
            partition_index: -1 for a topic without partitions.
            in_loop: False for a thread that has the loop's turn: where something has to be asked of
                the loop, such as a timer, it returns None, too.
        """
        # Hot path: latency in `make bench-client`.
        cnx, clock = self._cnx, self._clock
        if cnx is None or not self._has_short_way or self._unready:
            return None
        if in_loop:
            if not cnx.writes_through:
                return None
        elif (self._timer is None and self._timeout_seconds) or not cnx.writes_alone:
            return None
        entry = PendingEntry(clock.monotonic_seconds(), partition_index, size)
        entry.sequence_id = entry.highest_sequence_id = sequence_id = sequences.give_run(1)
        publish_time = clock.wall_time_millis()
        entry.buffers = buffers = self.encoder.encode_plain(payload, sequence_id, publish_time)
        self._pending.append(entry)
        if not in_loop:
            cnx.write_alone(buffers)
            return entry
        cnx.write_through(buffers)
        if self._timer is None:
            self._set_timer()
        return entry

    def before_flush(self, prepare: Callable[[], None]) -> None:
        """Call `prepare`, which may post, before what was posted in this tick goes out."""
        if self._cnx is not None:
            self._cnx.before_flush(prepare)
        else:
            asyncio.get_running_loop().call_soon(prepare)

    def post_batch(
        self, entry: PendingEntry, batch: Batch, first_sequence_id: int, publish_time: int
    ) -> None:
        """Post a batch of messages without ids of their own; only while `is_plain`."""
        entry.sequence_id = first_sequence_id
        entry.highest_sequence_id = first_sequence_id + len(batch.messages) - 1
        entry.batch_size = len(batch.messages)
        self._post(entry, self.encoder.encode_batch(batch, first_sequence_id, publish_time))

    def _post(self, entry: PendingEntry, buffers: Buffers) -> None:
        entry.buffers = buffers
        self._pending.append(entry)
        if self._cnx is not None:
            self._cnx.write_through(buffers)
        if self._timer is None:
            self._set_timer()

    def post_draft(self, entry: PendingEntry, draft: Draft) -> None:
        """Post any entry; it may be encoded later."""
        entry.sequence_id = draft.sequence_id
        entry.highest_sequence_id = draft.highest_sequence_id
        entry.batch_size = draft.messages_count
        if self._unready or self._has_to_wait(draft):
            self._unready.append((entry, draft))
            if self._encoding is None:
                self._encoding = self._tasks.spawn(self._encode_unready(), "encode")
            if self._timer is None:
                self._set_timer()
            return
        try:
            self._finish(entry, draft, self._compress(draft))
        except PulsarError as error:
            self.end([entry], error)

    def _has_to_wait(self, draft: Draft) -> bool:
        if self.encryptor is not None and self.encryptor.rotation_due(
            self._clock.monotonic_seconds()
        ):
            return True
        return self._compresses_in_thread(draft)

    def _compresses_in_thread(self, draft: Draft) -> bool:
        threshold = _THREAD_BYTES.get(self._config.compression_type)
        return threshold is not None and len(draft.body) >= threshold

    async def _encode_unready(self) -> None:
        try:
            while self._unready:
                entry, draft = self._unready[0]
                body: bytes | None = None
                try:
                    body = await self._encode(draft)
                except Exception as error:  # noqa: BLE001 - codecs and key readers may raise anything
                    self._take_unready(entry, error)
                else:
                    if self._is_first_unready(entry):
                        self._unready.popleft()
                        self._finish_or_fail(entry, draft, body)
        finally:
            self._encoding = None

    def _is_first_unready(self, entry: PendingEntry) -> bool:
        """Whether an entry is still in the queue: it may have ended while it was encoded."""
        return bool(self._unready) and self._unready[0][0] is entry

    def _take_unready(self, entry: PendingEntry, error: Exception) -> None:
        if self._is_first_unready(entry):
            self._unready.popleft()
            self.end([entry], error)

    async def _encode(self, draft: Draft) -> bytes:
        now = self._clock.monotonic_seconds()
        if self.encryptor is not None and self.encryptor.rotation_due(now):
            await self.encryptor.rotate(now)
        if self._compresses_in_thread(draft):
            return await asyncio.to_thread(self._compress, draft)
        return self._compress(draft)

    def _compress(self, draft: Draft) -> bytes:
        kind = self._config.compression_type
        body = draft.body
        if kind is CompressionType.NONE or len(body) <= self._config.compress_min_msg_body_size:
            return body
        metadata = draft.metadata
        metadata.compression = proto.CompressionType.ValueType(kind.value)
        metadata.uncompressed_size = len(body)
        return compress(metadata.compression, body)

    def _finish_or_fail(self, entry: PendingEntry, draft: Draft, body: bytes) -> None:
        try:
            self._finish(entry, draft, body)
        except PulsarError as error:
            self.end([entry], error)

    def _finish(self, entry: PendingEntry, draft: Draft, body: bytes) -> None:
        """Encrypt an entry, cut it into chunks if need be, and send it.

        Raises:
            MessageTooBigError, CryptoError: Nothing was sent.
        """
        size = draft.metadata.ByteSize() + len(body)
        if size <= self.max_message_size and (
            not self._can_chunk or not 0 < self._config.chunk_max_message_size < len(body)
        ):
            self._post(entry, self._frame(draft, body))
        elif self._can_chunk and not draft.messages_count:
            self._post_chunks(entry, draft, body)
        else:
            raise MessageTooBigError(
                f"{self._topic}: {size} bytes of metadata and payload, the broker's limit is "
                f"{self.max_message_size}"
            )

    def _frame(self, draft: Draft, body: bytes) -> Buffers:
        if self.encryptor is not None:
            body = self.encryptor.encrypt(draft.metadata, body)
        return self.encoder.frame(draft, draft.metadata, body)

    def _post_chunks(self, entry: PendingEntry, draft: Draft, body: bytes) -> None:
        limit = chunk_size(
            draft.metadata.ByteSize(),
            max_message_size=self.max_message_size,
            chunk_max_message_size=self._config.chunk_max_message_size,
        )
        # All frames are made before the first is sent: an error in between must not leave a part of
        # the message at the broker.
        frames = []
        for metadata, chunk in cut(draft.metadata, body, limit):
            payload = chunk
            if self.encryptor is not None:
                payload = self.encryptor.encrypt(metadata, chunk)
            frames.append(self.encoder.frame(draft, metadata, payload, is_chunk=True))
        shared = ChunkedSend()
        for index, buffers in enumerate(frames):
            is_last = index == len(frames) - 1
            part = entry if is_last else PendingEntry(entry.created_at, entry.partition_index)
            part.sequence_id = part.highest_sequence_id = draft.sequence_id
            part.chunked = shared
            part.is_last_chunk = is_last
            if not is_last:
                part.messages_count = 0
            self._post(part, buffers)

    # --- the connection ------------------------------------------------------------------------

    def attach(self, cnx: ClientCnx) -> None:
        """The producer is registered on `cnx`: send all entries without receipt, in order."""
        self._cnx = cnx
        self.max_message_size = cnx.max_message_size
        # With compression or chunks a larger payload may fit; that shows when it is encoded.
        if self._config.compression_type is CompressionType.NONE and not self._can_chunk:
            self.largest_payload = cnx.max_message_size
        for entry in self._pending:
            cnx.write(entry.buffers)

    def interrupted(self, sequence_id: int) -> bool:
        """A thread was, in `post_alone`; returns whether the entry of that id has been posted.

        Nobody knows whether it was written, then: the connection is given up, so that all is sent
        again, in order, on the next one.
        """
        newest = self._pending.newest
        if newest is None or newest.sequence_id != sequence_id:
            return False
        if self._cnx is not None:
            self._cnx.give_up("a thread was interrupted while it wrote")
            self._cnx = None
        return True

    def detach(self) -> None:
        """The registration is lost: keep entries until the next `attach`."""
        self._cnx = None
        entry, self._expected = self._expected, None
        if entry is None or entry is self._pending.oldest:
            return
        # Its thread was interrupted, as far as it did not come to its end.
        if entry.is_done:
            entry.tell_again()
        elif entry.buffers:
            self._pending.put_back(entry)
        else:
            entry.stored(entry.ledger_id, entry.entry_id)

    def on_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """The broker stored an entry; `settle` ends it.

        Raises:
            RemoteProtocolError: The receipt is for an entry that was not sent yet.
        """
        # Hot path: produce in `make bench-client`.
        if ledger_id < 0:  # the receipt of a duplicate names no position
            self._confirmed += self._pending.take_duplicate(sequence_id)
            return
        entry = self._pending.take_confirmed(sequence_id, highest_sequence_id)
        if entry is not None:
            entry.ledger_id = ledger_id
            entry.entry_id = entry_id
            self._confirmed.append(entry)

    def on_lone_receipt(
        self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int
    ) -> None:
        """As `on_receipt` and `settle`, of a receipt that comes by itself and names a position."""
        # Hot path: latency in `make bench-client`.
        assert ledger_id >= 0, "a duplicate is for `on_receipt`"
        assert not self._confirmed, "what was received before is settled"
        entry = self._pending.take_confirmed(sequence_id, highest_sequence_id)
        if entry is not None:
            self._on_stored(entry)
            entry.stored(ledger_id, entry_id)

    def expects_receipt(
        self, sequence_id: int, highest_sequence_id: int, *, calls_back: bool
    ) -> bool:
        """Whether a receipt is that of the oldest entry; and calls nobody, unless it may."""
        # Hot path: latency in `make bench-client`, blocking.
        entry = self._expected = self._pending.oldest
        return (
            entry is not None
            and entry.sequence_id == sequence_id
            and (highest_sequence_id <= 0 or entry.highest_sequence_id == highest_sequence_id)
            and (calls_back or not entry.is_observed)
        )

    def on_receipts(self, sequence_id: int, ledger_id: int, entry_id: int, count: int) -> int:
        """The broker stored `count` entries in a row; returns for how many this could be noted.

        Those are the entries that wait next, and no batches. The rest is for `on_receipt`.
        """
        # Hot path: produce unbatched in `make bench-client`.
        entries = self._pending.take_confirmed_run(sequence_id, count)
        for position, entry in enumerate(entries, entry_id):
            entry.ledger_id = ledger_id
            entry.entry_id = position
        self._confirmed += entries
        return len(entries)

    def settle(self) -> None:
        """Set the results of all entries that were confirmed since the last call."""
        if not self._confirmed:
            return
        confirmed, self._confirmed = self._confirmed, []
        # First the permits and the memory, so that callers which go on now find room.
        self._on_done(confirmed, True)
        for entry in confirmed:
            entry.stored(entry.ledger_id, entry.entry_id)

    # --- failing -------------------------------------------------------------------------------

    def refuse(self, sequence_id: int, error: Exception) -> None:
        """The broker refused that entry for good."""
        self.end(self._pending.take_refused(sequence_id), error)

    def find(self, sequence_id: int) -> PendingEntry | None:
        """The entry of that sequence id; None if it has ended."""
        return self._pending.find(sequence_id)

    def fail_all(self, error: Exception) -> None:
        """End all entries without receipt with this error."""
        self.settle()  # entries whose receipts came in this read are stored
        unready = [entry for entry, _ in self._unready]
        self._unready.clear()
        self.end(self._pending.take_all() + unready, error)

    def end(self, entries: Sequence[PendingEntry], error: Exception) -> None:
        """Fail entries, which were taken out of the queues; the broker may have stored them."""
        if not entries:
            return
        self._on_done(entries, False)
        is_asked_for = True
        for entry in entries:
            entry.fail(error)
            is_asked_for = is_asked_for and (entry.is_asked_for or not entry.messages_count)
        if not is_asked_for:
            count = sum(each.messages_count for each in entries)
            logger.warning(
                "%s: %d messages failed, and their results were not awaited: %s",
                self._topic,
                count,
                error,
                extra={"topic": self._topic, "messages": count, "error": str(error)},
            )

    def _set_timer(self) -> None:
        oldest = self._oldest()
        if not self._timeout_seconds or oldest is None:
            return
        due = oldest.created_at + self._timeout_seconds
        delay = max(due - self._clock.monotonic_seconds(), 0.001)
        self._timer = self._clock.call_later(delay, self._on_timer)

    def _oldest(self) -> PendingEntry | None:
        if self._pending.oldest is not None:
            return self._pending.oldest
        return self._unready[0][0] if self._unready else None

    def _on_timer(self) -> None:
        self._timer = None
        until = self._clock.monotonic_seconds() - self._timeout_seconds
        expired = self._pending.take_expired(until)
        while self._unready and self._unready[0][0].created_at <= until:
            expired.append(self._unready.popleft()[0])
        if expired:
            self.end(expired, self._timeout_error(expired))
        self._set_timer()

    def _timeout_error(self, expired: Sequence[PendingEntry]) -> ClientError:
        where = "not connected" if self._cnx is None else f"at {self._cnx.remote_address}"
        return ClientTimeoutError(
            f"{self._topic}: no receipt of sequence id {expired[0].sequence_id} within "
            f"{self._timeout_seconds:g} s, {where}"
        )

    def close(self) -> None:
        """Stop the timer; all entries have ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
