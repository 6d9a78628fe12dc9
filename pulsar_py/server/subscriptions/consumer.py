"""`Consumer`: one consumer id of one connection, on one subscription.

It counts permits and unacknowledged messages, builds MESSAGE frames, and calls its subscription for
the client's FLOW, ACK and REDELIVER. On Shared and Key_Shared subscriptions of persistent topics
each entry that it was sent is pending until it is acknowledged.

Source: Consumer in Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from pulsar_py.common.ack_set import MAX_WORDS, to_bits
from pulsar_py.common.buffer import Buffer, EntryBytes
from pulsar_py.common.errors import NotAllowedError, RemoteProtocolError
from pulsar_py.common.position import LedgerPositions, Position
from pulsar_py.managed_ledger.cursors.waiting_receipts import OnDurable
from pulsar_py.managed_ledger.log.entry import Entry
from pulsar_py.managed_ledger.log.entry_run import EntryRun
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandRedeliverUnacknowledgedMessages,
    MessageIdData,
)
from pulsar_py.server.dispatch.client_connection import ClientConnection
from pulsar_py.server.dispatch.filtering import summary_of
from pulsar_py.server.dispatch.pending_acks import PendingAcks, PositionKey
from pulsar_py.server.dispatch.permits import ConsumerPermits
from pulsar_py.server.dispatch.redelivery import RedeliveryController
from pulsar_py.server.dispatch.selectors import HashRange
from pulsar_py.server.dispatch.subscribe_request import SubscribeRequest
from pulsar_py.server.subscriptions.subscription import Subscription
from pulsar_py.server.subscriptions.subscription_stats import ConsumerStats
from pulsar_py.wire import commands
from pulsar_py.wire.commands import MessageEncoder
from pulsar_py.wire.entry_summary import PLAIN, EntrySummary
from pulsar_py.wire.payload import (
    strip_broker_entry_metadata,
    strip_checksum,
)
from pulsar_py.wire.versions import Feature, allows

logger = logging.getLogger(__name__)

MAX_FLOW_PERMITS: Final = 2**31 - 1
_AVERAGE_WEIGHT: Final = 0.9
_CUMULATIVE: Final = CommandAck.Cumulative  # to ask protobuf for it takes 1 us

MAX_ACK_PROPERTIES: Final = 1_000
"""The most properties of a cumulative ACK; they are written with the position each time."""
MAX_ACK_PROPERTIES_BYTES: Final = 128 * 1024
"""The most characters of those properties' names together."""


def check_ack_set(words: Sequence[int]) -> None:
    """Check the length of a client's ack set.

    Raises:
        NotAllowedError: It has more than `MAX_WORDS` words.
    """
    if len(words) > MAX_WORDS:
        raise NotAllowedError(f"ack set of {len(words)} words, allowed are {MAX_WORDS}")


class Consumer:
    """A consumer, from SUBSCRIBE until its connection or the broker closes it.

    Made by the topic for a `SubscribeRequest`, added with `Subscription.add_consumer`, and only
    then given to the connection.
    """

    needs_commands = False
    """Whether it has to be given every ACK as the command that it is."""

    def __init__(self, request: SubscribeRequest, subscription: Subscription) -> None:
        self.request = request
        self.consumer_id: int = request.consumer_id
        self.name: str = request.consumer_name
        self.priority_level: int = request.priority_level
        self.connection: ClientConnection = request.connection
        self.subscription = subscription
        self._clock = subscription.clock
        meta = request.key_shared
        self.requested_ranges: Sequence[HashRange] = (
            meta.hash_ranges if meta is not None and meta.is_sticky else ()
        )
        self.reads_compacted = request.read_compacted
        self.is_closed = False
        has_single_active = request.subscription_type.has_single_active_consumer
        self._tracks_pending = subscription.is_persistent and not has_single_active
        self.permits = ConsumerPermits(
            max_unacked_messages=(
                subscription.settings.max_unacked_messages_per_consumer
                if self._tracks_pending and subscription.is_durable
                else 0
            )
        )
        self.pending_acks = PendingAcks()
        self.ack_receipts: OnDurable | None = None  # answers its client; made when it first asks
        # Only Exclusive and Failover send messages with the consumer's epoch.
        self._consumer_epoch = request.consumer_epoch if has_single_active else -1
        self.average_messages_per_entry: float = 1.0
        self._encoder = MessageEncoder(request.consumer_id, subscription.partition_index)
        version = request.connection.protocol_version
        self._strips_checksum = not allows(version, Feature.CHECKSUM_IN_MESSAGE)
        self._takes_batches = allows(version, Feature.BATCHES)
        self._was_told_of_end = False  # Since its last FLOW.
        self._has_warned = False  # An invalid acknowledgement is logged once.
        self.connected_since_millis = self._clock.wall_time_millis()
        self._first_flow_millis = 0
        self._last_flow_millis = 0
        self._last_acked_millis = 0
        self._first_consumed_millis = 0
        self._last_consumed_millis = 0
        self.messages_out_count = 0
        self.bytes_out_count = 0
        self._acked_count = 0
        self._chunks_count = 0
        self._rates = _Rates()

    @property
    def pending_hash_counts(self) -> Mapping[int, int]:
        """The number of its unacknowledged entries by sticky hash (Key_Shared)."""
        return self.pending_acks.hash_counts

    def __str__(self) -> str:
        return (
            f"Consumer{{subscription={self.subscription}, consumerId={self.consumer_id}, "
            f"consumerName={self.name}, address={self.connection.remote_address}}}"
        )

    # Commands of the client.

    def flow(self, permits_count: int) -> None:
        """Serve FLOW.

        Raises:
            RemoteProtocolError: 0, or 2^31 and above (negative in Java): close the connection.
        """
        if not 0 < permits_count <= MAX_FLOW_PERMITS:
            raise RemoteProtocolError(
                f"FLOW of {permits_count} permits, expected 1 to {MAX_FLOW_PERMITS}"
            )
        self._last_flow_millis = self._clock.wall_time_millis()
        self._first_flow_millis = self._first_flow_millis or self._last_flow_millis
        self._was_told_of_end = False
        if self.permits.add(permits_count):
            self.subscription.on_flow(self)

    def acknowledge(self, command: CommandAck) -> bool:
        """Serve an ACK that is of no transaction.

        The caller then sends ACK_RESPONSE if the command has a request id.

        Returns False if an invalid id made it ignore the ids after it.

        Raises:
            ServiceError: For the ACK_RESPONSE. Nothing of the command was acknowledged.
        """
        # Hot path: acknowledge.
        self._last_acked_millis = self._clock.wall_time_millis()
        if command.HasField("validation_error"):
            self._log_validation_error(command)
        ids = command.message_id
        if command.ack_type == _CUMULATIVE:
            self._acknowledge_cumulative(command, ids)
            return True
        positions: list[Position] = []
        ack_sets: list[Sequence[int] | None] = []
        has_ack_sets = False
        for message_id in ids:
            positions.append(_position_of(message_id))
            words = message_id.ack_set
            if words:
                check_ack_set(words)
                has_ack_sets = True
                ack_sets.append(list(words))
            else:
                ack_sets.append(None)
        if positions:
            self._acked_count += len(positions)
            return self.subscription.acknowledge(
                self, positions, ack_sets if has_ack_sets else None
            )
        return True

    def acknowledge_whole(self, positions: LedgerPositions) -> bool:
        """Serve an individual ACK of whole entries; as `acknowledge`, if no `needs_commands`."""
        # Hot path: benchmarks/micro_acks.
        self._last_acked_millis = self._clock.wall_time_millis()
        self._acked_count += len(positions)
        return self.subscription.acknowledge(self, positions, None)

    def _acknowledge_cumulative(self, command: CommandAck, ids: Sequence[MessageIdData]) -> None:
        if len(ids) != 1 or not self.request.subscription_type.has_single_active_consumer:
            if not self._has_warned:
                self._has_warned = True
                logger.warning(
                    "cumulative acknowledgements ignored",
                    extra={"consumer": str(self), "ids": len(ids)},
                )
            return
        words = ids[0].ack_set
        check_ack_set(words)
        if len(command.properties) > MAX_ACK_PROPERTIES:
            raise NotAllowedError(
                f"ACK with {len(command.properties)} properties, allowed are {MAX_ACK_PROPERTIES}"
            )
        size_bytes = sum(len(pair.key) for pair in command.properties)
        if size_bytes > MAX_ACK_PROPERTIES_BYTES:
            raise NotAllowedError(
                f"ACK with properties' names of {size_bytes} characters, allowed are "
                f"{MAX_ACK_PROPERTIES_BYTES}"
            )
        self._acked_count += 1
        self.subscription.acknowledge_cumulative(
            _position_of(ids[0]),
            list(words) if words else None,
            {pair.key: pair.value for pair in command.properties},
        )

    def _log_validation_error(self, command: CommandAck) -> None:
        logger.warning(
            "client could not use messages and acknowledges them",
            extra={
                "consumer": str(self),
                "error": CommandAck.ValidationError.Name(command.validation_error),
                "ids": [str(_position_of(each)) for each in command.message_id[:10]],
            },
        )

    def redeliver(
        self,
        command: CommandRedeliverUnacknowledgedMessages,
        positions: Sequence[Position] | None = None,
    ) -> None:
        """Serve REDELIVER_UNACKNOWLEDGED_MESSAGES; there is no answer.

        `positions`, if given, replace the command's ids.
        """
        is_single = self.request.subscription_type.has_single_active_consumer
        if is_single and command.HasField("consumer_epoch"):
            self._consumer_epoch = max(self._consumer_epoch, command.consumer_epoch)
        if positions is None:
            positions = [_position_of(message_id) for message_id in command.message_ids]
        self.subscription.redeliver(self, positions or None)

    def leave(self) -> None:
        """Become closed; the caller removes it from its subscription."""
        self.is_closed = True

    def close(self) -> None:
        """Leave the subscription, after the client's CLOSE_CONSUMER or the connection's end.

        Its unacknowledged entries are redelivered to others. May be called again.
        """
        if not self.is_closed:
            self.leave()
            self.subscription.remove_consumer(self)

    def disconnect(self) -> None:
        """Leave the subscription on the broker's side; the client gets CLOSE_CONSUMER."""
        if not self.is_closed:
            self.leave()
            self.connection.consumer_closed_by_broker(self.consumer_id)
            self.subscription.remove_consumer(self)

    # Calls of the dispatcher.

    def send_messages(
        self,
        entries: Sequence[Entry],
        ack_sets: Mapping[PositionKey, Sequence[int]] | None,
        *,
        redelivery: RedeliveryController | None = None,
        sticky_hashes: Sequence[int] | None = None,
    ) -> int:
        """Send entries in one write and charge permits; returns the messages sent.

        With `redelivery` (Shared, Key_Shared) they become pending first, and carry its counts.
        `ack_sets` has the indexes left of batches acknowledged in part.
        """
        # Hot path: tailing consume.
        if not self._takes_batches and any(summary_of(entry).is_batch for entry in entries):
            return self._refuse_batches(entries, sticky_hashes)
        if redelivery is not None:
            self._remember(entries, ack_sets, sticky_hashes)
            if not redelivery.has_counts:
                redelivery = None
        is_rare = ack_sets is not None or redelivery is not None or self._consumer_epoch >= 0
        if is_rare or self._strips_checksum:
            buffers, messages_count, bytes_count = self._encode_rare(entries, ack_sets, redelivery)
        else:
            buffers, messages_count, bytes_count = self._encode_plain(entries)
        self.permits.take(messages_count)
        self._count_sent(len(entries), messages_count, bytes_count)
        self.connection.write(buffers)
        return messages_count

    def _remember(
        self,
        entries: Sequence[Entry],
        ack_sets: Mapping[PositionKey, Sequence[int]] | None,
        sticky_hashes: Sequence[int] | None,
    ) -> None:
        """Make entries pending."""
        # Hot path: tailing consume.
        add = self.pending_acks.add
        owed = 0
        for index, entry in enumerate(entries):
            key = (entry.ledger_id, entry.entry_id)
            count = _messages_of(entry, ack_sets)
            owed += add(key, count, 0 if sticky_hashes is None else sticky_hashes[index])
        self.permits.owe(owed)

    def _encode_plain(self, entries: Sequence[Entry]) -> tuple[list[Buffer], int, int]:
        """MESSAGE frames without ack sets, counts and epochs: buffers, messages, bytes."""
        if type(entries) is EntryRun and entries.summary is PLAIN:
            buffers, bytes_count = self._encoder.encode_neighbours(
                entries.ledger_id, entries.first_entry_id, entries.datas
            )
            return buffers, len(entries), bytes_count
        buffers, bytes_count = self._encoder.encode_run(
            entries,
            strips_broker_entry_metadata=not self.connection.supports_broker_entry_metadata,
        )
        messages_count = 0
        for entry in entries:
            summary: EntrySummary = entry.summary  # type: ignore[assignment]
            messages_count += summary.messages_count
            if not summary.is_plain and summary.is_chunk:
                self._chunks_count += 1
        return buffers, messages_count, bytes_count

    def _encode_rare(
        self,
        entries: Sequence[Entry],
        ack_sets: Mapping[PositionKey, Sequence[int]] | None,
        redelivery: RedeliveryController | None,
    ) -> tuple[list[Buffer], int, int]:
        """MESSAGE frames with ack sets, redelivery counts and epochs, or for old clients."""
        encode = self._encoder.encode
        epoch = self._consumer_epoch if self._consumer_epoch >= 0 else None
        buffers: list[Buffer] = []
        messages_count = 0
        bytes_count = 0
        for entry in entries:
            key = (entry.ledger_id, entry.entry_id)
            redelivered = 0 if redelivery is None else redelivery.redelivery_count(key)
            data = self._outgoing(entry.data)
            header = encode(
                entry.ledger_id,
                entry.entry_id,
                len(data),
                redelivery_count=redelivered,
                ack_set=None if ack_sets is None else ack_sets.get(key),
                consumer_epoch=epoch,
            )
            buffers += (header, data)
            messages_count += _messages_of(entry, ack_sets)
            bytes_count += len(data)
            self._chunks_count += summary_of(entry).is_chunk
        return buffers, messages_count, bytes_count

    def _outgoing(self, data: EntryBytes) -> EntryBytes:
        """An entry in the form that the client understands."""
        if self._strips_checksum:
            return strip_checksum(data)
        if self.connection.supports_broker_entry_metadata:
            return data
        return strip_broker_entry_metadata(data)

    def _refuse_batches(self, entries: Sequence[Entry], sticky_hashes: Sequence[int] | None) -> int:
        """Close a consumer whose client knows no batches (protocol version below 4).

        Other consumers get the entries; returns 0 messages sent.
        """
        if self._tracks_pending:
            hashes = sticky_hashes or [0] * len(entries)
            for entry, sticky_hash in zip(entries, hashes, strict=True):
                count = summary_of(entry).messages_count
                key = (entry.ledger_id, entry.entry_id)
                # Pending, so that closing redelivers them; not counted as unacknowledged.
                self.pending_acks.add(key, count, sticky_hash)
        logger.warning("consumer does not know batches", extra={"consumer": str(self)})
        self.disconnect()
        return 0

    def _count_sent(self, entries_count: int, messages_count: int, bytes_count: int) -> None:
        self.messages_out_count += messages_count
        self.bytes_out_count += bytes_count
        self._last_consumed_millis = now = self._clock.wall_time_millis()
        if not self._first_consumed_millis:
            self._first_consumed_millis = now
        if messages_count == entries_count and self.average_messages_per_entry == 1.0:
            return
        average = messages_count / entries_count
        if self.messages_out_count == messages_count:
            self.average_messages_per_entry = max(average, 1.0)
        else:
            moved = (
                _AVERAGE_WEIGHT * self.average_messages_per_entry + (1 - _AVERAGE_WEIGHT) * average
            )
            self.average_messages_per_entry = max(moved, 1.0)

    def notify_active_consumer_change(self, *, is_active: bool) -> None:
        """Send ACTIVE_CONSUMER_CHANGE, if the client knows it."""
        if allows(self.connection.protocol_version, Feature.ACTIVE_CONSUMER_CHANGE):
            self.connection.send(
                commands.active_consumer_change(self.consumer_id, is_active=is_active)
            )

    def reached_end_of_topic(self) -> None:
        """Send REACHED_END_OF_TOPIC, if the client knows it; once until its next FLOW."""
        if self._was_told_of_end:
            return
        self._was_told_of_end = True
        if allows(self.connection.protocol_version, Feature.END_OF_TOPIC):
            self.connection.send(commands.reached_end_of_topic(self.consumer_id))

    # Statistics.

    def roll_rates(self, elapsed_seconds: float) -> None:
        """Compute rates over the time since the last call."""
        self._rates.roll(
            elapsed_seconds,
            self.messages_out_count,
            self.bytes_out_count,
            self.permits.redelivered_messages,
            self._acked_count + self.permits.acknowledged_beyond_ids,
            self._chunks_count,
        )

    @property
    def out_rates(self) -> tuple[float, float]:
        """Messages and bytes a second over the last window."""
        return self._rates.values[0], self._rates.values[1]

    @property
    def last_flow_millis(self) -> int:
        """When it last sent FLOW; 0 for never."""
        return self._last_flow_millis

    def stats(self) -> ConsumerStats:
        """A snapshot for CONSUMER_STATS and REST."""
        hashes = self.subscription.hash_stats_of(self)
        rates = self._rates
        return ConsumerStats(
            consumer_id=self.consumer_id,
            consumer_name=self.name,
            address=self.connection.remote_address,
            client_version=self.connection.client_version,
            connected_since_millis=self.connected_since_millis,
            metadata=self.request.metadata,
            available_permits=self.permits.available,
            unacked_messages=self.permits.unacked_messages,
            is_blocked_on_unacked_messages=self.permits.is_blocked,
            average_messages_per_entry=round(self.average_messages_per_entry),
            messages_out_count=self.messages_out_count,
            bytes_out_count=self.bytes_out_count,
            message_out_rate=rates.values[0],
            bytes_out_rate=rates.values[1],
            redelivered_rate=rates.values[2],
            acked_rate=rates.values[3],
            chunked_rate=rates.values[4],
            last_acked_millis=self._last_acked_millis,
            first_consumed_millis=self._first_consumed_millis,
            last_consumed_millis=self._last_consumed_millis,
            first_flow_millis=self._first_flow_millis,
            last_flow_millis=self._last_flow_millis,
            key_hash_ranges=tuple(hashes.ranges),
            draining_hashes=hashes.draining,
            draining_hashes_cleared_total=hashes.cleared_total,
        )


def _messages_of(entry: Entry, ack_sets: Mapping[PositionKey, Sequence[int]] | None) -> int:
    """Permits that an entry costs."""
    if ack_sets is not None:
        words = ack_sets.get((entry.ledger_id, entry.entry_id))
        if words is not None:
            return to_bits(words).bit_count()
    return summary_of(entry).messages_count


class _Rates:
    """Per-second values of counters since the last roll."""

    __slots__ = ("_counters", "values")

    def __init__(self) -> None:
        self._counters: tuple[int, ...] = (0, 0, 0, 0, 0)
        self.values: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)

    def roll(self, elapsed_seconds: float, *counters: int) -> None:
        if elapsed_seconds > 0:
            self.values = tuple(
                (now - before) / elapsed_seconds
                for now, before in zip(counters, self._counters, strict=True)
            )
        self._counters = counters


def _position_of(message_id: MessageIdData) -> Position:
    """The entry's position; unsigned 64-bit ids of the protocol become signed ones."""
    ledger_id = message_id.ledgerId
    entry_id = message_id.entryId
    if ledger_id >> 63:
        ledger_id -= 1 << 64
    if entry_id >> 63:
        entry_id -= 1 << 64
    return Position(ledger_id, entry_id)
