"""Puts a producer's messages into batches, and sends batches when they are due (edge).

A batch goes out when it is full, when its first message has waited for the publish delay, when it
is flushed, and before a message that goes out alone: a delayed one, one larger than a batch may be,
or a possible duplicate. So entries go out in the order of their messages, and sequence ids in the
order of entries. Without batching every message goes out alone; those that have nothing but a
payload are gathered until the connection writes, and encoded together (a run). `batch_container`
decides when a batch is full. Two modules rest on when one is due: the turns of `message_router`
last some publish delays, and `spark/writing/partition_sender.py`, for exactly once, sends batches
by flushing alone.

Source: ProducerImpl in Pulsar's Java client: serializeAndSendMessage, batchMessageAndSend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import repeat
from typing import Final

from pulsar_py.client.producing.batch_container import (
    Batch,
    BatchContainer,
    Container,
    KeyBasedBatchContainer,
)
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.outbox import Outbox
from pulsar_py.client.producing.pending_messages import PendingEntry
from pulsar_py.client.producing.producer_config import ProducerConfig
from pulsar_py.client.producing.send_result import PlainSends, SendResult
from pulsar_py.client.producing.sequence_ids import SequenceIds
from pulsar_py.client.shared.enums import BatchingType
from pulsar_py.client.shared.statistics import ProducerCounters
from pulsar_py.common.loops.clock import Clock

__all__ = ["Batcher", "plain_message"]

_ENTRY_OVERHEAD_BYTES: Final = 1024
_MESSAGE_OVERHEAD_BYTES: Final = 40
_RUN_LIMIT: Final = 64
"""Messages that are encoded together, without batching: they have one publish time."""


def plain_message(payload: bytes) -> OutgoingMessage:
    """A message that has nothing but a payload."""
    message = OutgoingMessage(payload)
    message.payload = payload
    return message


def _container(config: ProducerConfig) -> Container | None:
    if not config.batching_enabled:
        return None
    is_by_key = config.batching_type is BatchingType.KeyBased
    kind = KeyBasedBatchContainer if is_by_key else BatchContainer
    return kind(config.batching_max_messages, config.batching_max_allowed_size_in_bytes)


class Batcher:
    """Passes one producer's messages to its outbox, in batches. Owned by its TopicProducer."""

    def __init__(
        self,
        config: ProducerConfig,
        outbox: Outbox,
        *,
        clock: Clock,
        sequences: SequenceIds,
        counters: ProducerCounters,
        partition_index: int,
    ) -> None:
        """Entries go to `outbox`, numbered by `sequences` and counted by `counters`."""
        self._outbox = outbox
        self._clock = clock
        self._sequences = sequences
        self._counters = counters
        self._partition_index = partition_index
        self._container = _container(config)
        self._delay_seconds = config.batching_max_publish_delay_ms / 1000
        # The publish delay of the oldest batch. It is not cancelled when that batch goes out:
        # `_on_timer` finds it gone, and sets the timer again for the next one.
        self._timer: asyncio.TimerHandle | None = None
        self._is_flush_due = False  # at the end of this step of the loop
        # Without batching: the messages of this step of the loop that were not posted yet, entries
        # and payloads, and when the first came.
        self._run: list[PendingEntry] = []
        self._run_payloads: list[bytes] = []
        self._run_begun_at = 0.0

    def fit(self, max_message_size: int) -> None:
        """Limit batches so that they fit `max_message_size` with the metadata of their messages."""
        container = self._container
        if container is not None:
            overhead = _ENTRY_OVERHEAD_BYTES + _MESSAGE_OVERHEAD_BYTES * container.messages_limit
            room = max(max_message_size - overhead, max_message_size // 2)
            container.bytes_limit = min(container.bytes_limit, room)

    def post_plain(self, payload: bytes, size: int) -> SendResult:
        """Post a message that has nothing but a payload; `size` bytes were reserved for it."""
        # Hot path: produce in `make bench-client`.
        container = self._container
        if container is None:
            entry = None if self._run else self.post_alone(payload, size, in_loop=True)
            return self._add_to_run(payload, size) if entry is None else SendResult(entry)
        result = container.add_plain(payload, size)
        if result is None:
            return self.post(plain_message(payload), size)
        if container.is_full:
            self.send_batches()
        return result

    def _add_to_run(self, payload: bytes, size: int) -> SendResult:
        # Hot path: produce unbatched in `make bench-client`.
        outbox, run = self._outbox, self._run
        fits = size <= outbox.max_message_size - _ENTRY_OVERHEAD_BYTES
        if not fits or not (run or outbox.is_plain):
            return self.post(plain_message(payload), size)
        if not run:
            self._run_begun_at = self._clock.monotonic_seconds()
            outbox.before_flush(self._send_run)
        entry = PendingEntry(self._run_begun_at, self._partition_index, size)
        run.append(entry)
        self._run_payloads.append(payload)
        if len(run) >= _RUN_LIMIT:
            self._send_run()
        return SendResult(entry)

    def post_alone(self, payload: bytes, size: int, *, in_loop: bool) -> PendingEntry | None:
        """As `post_plain`, of a message that comes alone, as far as can be known; see `Outbox`."""
        # Hot path: latency in `make bench-client`.
        outbox, counters = self._outbox, self._counters
        if (
            self._container is not None
            or self._run
            or size > outbox.max_message_size - _ENTRY_OVERHEAD_BYTES
        ):
            return None
        entry = outbox.post_alone(
            payload, size, self._sequences, self._partition_index, in_loop=in_loop
        )
        if entry is not None:
            counters.messages_sent += 1
            counters.bytes_sent += size
        return entry

    def takes_run(self, largest_size: int) -> bool:
        """Whether `post_plain_run` may be called with messages of that size and below."""
        outbox = self._outbox
        return self._container is not None or (
            outbox.is_plain and largest_size <= outbox.max_message_size - _ENTRY_OVERHEAD_BYTES
        )

    def post_plain_run(self, payloads: Sequence[bytes], ends: Sequence[int]) -> list[PlainSends]:
        """Post messages that have nothing but a payload, as `post_plain`; see `takes_run`.

        `ends` has the bytes of all messages up to and with each.
        """
        # Hot path: produce in `make bench-client`, blocking.
        if self._container is not None:
            return self._batch_run(self._container, payloads, ends)
        self._send_run()
        now, partition_index = self._clock.monotonic_seconds(), self._partition_index
        entries = [PendingEntry(now, partition_index, len(each)) for each in payloads]
        self._post_run(entries, payloads)
        return list(zip(entries, repeat(-1), repeat(1)))

    def _batch_run(
        self, container: Container, payloads: Sequence[bytes], ends: Sequence[int]
    ) -> list[PlainSends]:
        # Hot path: produce in `make bench-client`, blocking.
        sends: list[PlainSends] = []
        done = 0
        while done < len(payloads):
            joined = container.add_plain_run(payloads, ends, done)
            if joined is not None:
                if container.is_full:
                    self.send_batches()
            else:  # no batch is open that it fits: this one begins the next
                payload = payloads[done]
                joined = self.post_plain(payload, len(payload))._parts  # noqa: SLF001 - for its other half
            sends.append(joined)
            done += joined[2]
        return sends

    def _send_run(self) -> None:
        # Hot path: produce unbatched in `make bench-client`.
        entries, payloads = self._run, self._run_payloads
        if not entries:
            return
        self._run, self._run_payloads = [], []
        self._post_run(entries, payloads)

    def _post_run(self, entries: Sequence[PendingEntry], payloads: Sequence[bytes]) -> None:
        count = len(entries)
        self._counters.messages_sent += count
        self._counters.bytes_sent += sum(map(len, payloads))
        self._outbox.post_plain_run(
            entries, payloads, self._sequences.give_run(count), self._clock.wall_time_millis()
        )

    def _post_bytes(self, entry: PendingEntry, payload: bytes) -> None:
        # Hot path: produce unbatched in `make bench-client`.
        outbox, size = self._outbox, len(payload)
        if not outbox.is_plain or size + _ENTRY_OVERHEAD_BYTES > outbox.max_message_size:
            self._post_alone(entry, plain_message(payload))
            return
        counters = self._counters
        counters.messages_sent += 1
        counters.bytes_sent += size
        publish_time = self._clock.wall_time_millis()
        outbox.post_plain(entry, payload, self._sequences.give_run(1), publish_time)

    def post(self, message: OutgoingMessage, size: int) -> SendResult:
        """Post any message; `size` bytes were reserved for it."""
        container = self._container
        own_id = message.sequence_id
        if (
            container is None
            or message.deliver_at_time is not None
            or size > container.bytes_limit
            or self._sequences.is_possible_duplicate(own_id)
        ):
            self.send_batches()
            entry = PendingEntry(self._clock.monotonic_seconds(), self._partition_index, size)
            self._post_alone(entry, message)
            return SendResult(entry)
        if own_id is not None:
            self._sequences.reserve(own_id)
        if not container.fits(message, size):
            self.send_batches()
        now = self._clock.monotonic_seconds()
        result = container.add(message, size, now, self._partition_index)
        if container.is_full:
            self.send_batches()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._delay_seconds, self._on_timer)
        return result

    def _post_alone(self, entry: PendingEntry, message: OutgoingMessage) -> None:
        self._counters.messages_sent += 1
        self._counters.bytes_sent += len(message.payload)
        draft = self._outbox.encoder.draft(
            message, self._sequences.give(message.sequence_id), self._clock.wall_time_millis()
        )
        self._outbox.post_draft(entry, draft)

    def send_batches(self) -> None:
        """Send all batches, full or not, and the messages that go out alone."""
        self._send_run()
        if self._container is not None and self._container.messages_count:
            for batch in self._container.take():
                self._send_batch(batch)

    def _send_batch(self, batch: Batch) -> None:
        # Hot path: produce in `make bench-client`.
        messages, entry = batch.messages, batch.entry
        count = entry.messages_count = len(messages)
        entry.bytes_count = batch.bytes_count
        if count == 1:  # in plain layout, as Pulsar's Java client sends it
            first = messages[0]
            if isinstance(first, bytes):
                self._post_bytes(entry, first)
            else:
                self._post_alone(entry, first)
            return
        self._counters.messages_sent += count
        self._counters.bytes_sent += batch.bytes_count
        publish_time = self._clock.wall_time_millis()
        if self._outbox.is_plain and not batch.has_own_ids:
            sequence_id = self._sequences.give_run(count)
            self._outbox.post_batch(entry, batch, sequence_id, publish_time)
            return
        ids = [
            self._sequences.give(None if isinstance(each, bytes) else each.sequence_id)
            for each in messages
        ]
        draft = self._outbox.encoder.draft_batch(batch, ids, publish_time)
        self._outbox.post_draft(entry, draft)

    def _on_timer(self) -> None:
        self._timer = None
        container = self._container
        if container is None or not container.messages_count:
            return
        delay = container.begun_at + self._delay_seconds - self._clock.monotonic_seconds()
        if delay <= 0:
            self.send_batches()
        else:
            self._timer = self._clock.call_later(delay, self._on_timer)

    def flush_soon(self) -> None:
        """Send all batches at the end of this step of the loop."""
        if self._container is not None and not self._is_flush_due:
            self._is_flush_due = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._is_flush_due = False
        self.send_batches()

    def close(self) -> list[PendingEntry]:
        """Stop the timers; returns the entries of messages that were never sent."""
        if self._timer is not None:
            self._timer.cancel()
        run, self._run, self._run_payloads = self._run, [], []
        batches = [] if self._container is None else self._container.take()
        for batch in batches:
            batch.entry.messages_count = len(batch.messages)
            batch.entry.bytes_count = batch.bytes_count
        return run + [batch.entry for batch in batches]
