"""Builds ACK and REDELIVER_UNACKNOWLEDGED_MESSAGES from what the trackers collected (pure).

Source: Commands in Pulsar's common module; CommandAck in PulsarApi.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from pulsar_py.client.acknowledging.ack_grouping import AckGroup
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.common.ack_set import to_words
from pulsar_py.common.message_id import to_unsigned
from pulsar_py.proto.PulsarApi_pb2 import (
    CommandAck,
    MessageIdData,
)
from pulsar_py.wire import client_commands

__all__ = ["acks", "redeliver", "validation_ack"]

MAX_REDELIVER_IDS: Final = 1000
"""Most ids in one REDELIVER_UNACKNOWLEDGED_MESSAGES, as in Java's ConsumerImpl."""


def acks(consumer_id: int, pending: AckGroup, request_ids: Iterator[int] | None) -> list[bytes]:
    """The ACK commands of one flush: at most one cumulative and one individual.

    With `request_ids` each takes one, and the broker answers it (a receipt).
    """
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
    """The ACK that acknowledges an entry that can't be used, with the reason for the broker."""
    command = CommandAck(
        consumer_id=consumer_id, ack_type=CommandAck.Individual, validation_error=error
    )
    command.message_id.add(ledgerId=to_unsigned(key[0]), entryId=to_unsigned(key[1]))
    return client_commands.ack(command)


def redeliver(
    consumer_id: int, entries: Sequence[EntryKey], *, consumer_epoch: int | None = None
) -> list[bytes]:
    """The REDELIVER_UNACKNOWLEDGED_MESSAGES commands for these entries.

    Without entries there is one command, which asks for all that is unacknowledged.
    """
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
