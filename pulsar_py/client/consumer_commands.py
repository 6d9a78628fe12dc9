"""What a consumer sends: SUBSCRIBE, ACK and REDELIVER, from plain values. Pure.

Commands with a single field or two are in `wire.client_commands`; here stand those that a consumer
fills from its options and trackers.

Source: Commands in Pulsar's common module; section 11 of `spec/wire.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from pulsar_py.client.ack_grouping import PendingAcks
from pulsar_py.client.consumer_config import ConsumerConfig
from pulsar_py.client.enums import ConsumerType
from pulsar_py.client.message import EntryKey
from pulsar_py.common.ack_set import from_index_on, to_words
from pulsar_py.common.message_id import MessageId, to_unsigned
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    CommandSubscribe,
    KeyValue,
    MessageIdData,
    Schema,
)
from pulsar_py.wire import client_commands

__all__ = ["acks", "redeliver", "seek_id", "subscribe", "validation_ack"]

MAX_REDELIVER_IDS: Final = 1000
"""Ids in one REDELIVER (ConsumerImpl's limit)."""


def subscribe(
    config: ConsumerConfig,
    *,
    topic: str,
    subscription_name: str,
    consumer_name: str,
    consumer_id: int,
    request_id: int,
    consumer_epoch: int,
    start_message_id: MessageId | None,
    schema: Schema | None,
    is_reconnecting: bool = False,
) -> bytes:
    """SUBSCRIBE; what only a non-durable or a new subscription uses is left out for others."""
    command = CommandSubscribe(
        topic=topic,
        subscription=subscription_name,
        subType=int(config.consumer_type),  # type: ignore[arg-type] # the numbers are the same
        consumer_id=consumer_id,
        request_id=request_id,
        consumer_name=consumer_name,
        priority_level=config.priority_level,
        durable=config.is_durable,
        read_compacted=config.is_read_compacted,
        initialPosition=int(config.initial_position),  # type: ignore[arg-type] # the same
        replicate_subscription_state=config.replicate_subscription_state_enabled or None,
        force_topic_creation=config.force_topic_creation,
        consumer_epoch=consumer_epoch,
        metadata=_pairs(config.properties),
        subscription_properties=_pairs(config.subscription_properties),
        schema=schema,
    )
    if start_message_id is not None and not config.is_durable:
        command.start_message_id.CopyFrom(_start_data(start_message_id))
    if config.start_message_rollback_duration_seconds and not is_reconnecting:
        command.start_message_rollback_duration_sec = config.start_message_rollback_duration_seconds
    if config.key_shared_policy is not None:
        command.keySharedMeta.CopyFrom(config.key_shared_policy.to_meta())
    elif config.consumer_type is ConsumerType.KeyShared:
        command.keySharedMeta.SetInParent()
        command.keySharedMeta.keySharedMode = 0  # type: ignore[assignment] # AUTO_SPLIT
    return client_commands.subscribe(command)


def _pairs(values: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value) for key, value in values.items()]


def _start_data(message_id: MessageId) -> MessageIdData:
    """Where the broker begins: with the entry; of a chunked message, with its first chunk."""
    first = message_id.first_chunk or message_id
    data = MessageIdData(ledgerId=to_unsigned(first.ledger_id), entryId=to_unsigned(first.entry_id))
    if first.batch_index >= 0:
        data.batch_index = first.batch_index
    return data


def seek_id(message_id: MessageId) -> MessageIdData:
    """What SEEK carries: the entry, and of a batch the messages from the index on."""
    first = message_id.first_chunk or message_id
    data = MessageIdData(ledgerId=to_unsigned(first.ledger_id), entryId=to_unsigned(first.entry_id))
    if first.batch_index > 0 and first.batch_size > first.batch_index:
        data.ack_set.extend(from_index_on(first.batch_index, first.batch_size))
    return data


def acks(consumer_id: int, pending: PendingAcks, request_ids: Iterator[int] | None) -> list[bytes]:
    """The ACKs of one flush, at most two; each takes a request id if receipts are wanted."""
    frames: list[CommandAck] = []
    if pending.cumulative is not None:
        (ledger_id, entry_id), bits = pending.cumulative
        command = CommandAck(consumer_id=consumer_id, ack_type=CommandAck.Cumulative)
        command.message_id.add(
            ledgerId=to_unsigned(ledger_id), entryId=to_unsigned(entry_id), ack_set=to_words(bits)
        )
        frames.append(command)
    if pending.individual:
        command = CommandAck(consumer_id=consumer_id, ack_type=CommandAck.Individual)
        add = command.message_id.add
        for (ledger_id, entry_id), bits in pending.individual.items():
            data = add()
            data.ledgerId = to_unsigned(ledger_id)
            data.entryId = to_unsigned(entry_id)
            if bits:
                data.ack_set.extend(to_words(bits))
        frames.append(command)
    if request_ids is not None:
        for command, request_id in zip(frames, request_ids, strict=False):
            command.request_id = request_id
    return [client_commands.ack(command) for command in frames]


def validation_ack(
    consumer_id: int, key: EntryKey, error: CommandAck.ValidationError.ValueType
) -> bytes:
    """Acknowledge an entry that can't be used, and say why."""
    command = CommandAck(
        consumer_id=consumer_id, ack_type=CommandAck.Individual, validation_error=error
    )
    command.message_id.add(ledgerId=to_unsigned(key[0]), entryId=to_unsigned(key[1]))
    return client_commands.ack(command)


def redeliver(
    consumer_id: int, entries: Sequence[EntryKey], *, consumer_epoch: int | None = None
) -> list[bytes]:
    """REDELIVER for those entries, none: for all that is unacknowledged."""
    if not entries:
        return [
            client_commands.redeliver_unacknowledged(consumer_id, (), consumer_epoch=consumer_epoch)
        ]
    ids = iter(entries)
    frames = []
    while some := list(islice(ids, MAX_REDELIVER_IDS)):
        data = [
            MessageIdData(ledgerId=to_unsigned(ledger_id), entryId=to_unsigned(entry_id))
            for ledger_id, entry_id in some
        ]
        frames.append(
            client_commands.redeliver_unacknowledged(
                consumer_id, data, consumer_epoch=consumer_epoch
            )
        )
    return frames
