"""A scripted broker for producers: confirms what it is told to, and reads entries back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSend, FeatureFlags
from pulsar_py.wire import commands
from pulsar_py.wire.batch import split_batch
from pulsar_py.wire.payload import EntryParts, split_entry
from tests.scripted_broker import Answer, BrokerEnd, ScriptedBroker

TOPIC = "persistent://public/default/t"


class Sent(NamedTuple):
    """One SEND as it arrived."""

    send: CommandSend
    entry: EntryParts

    @property
    def payloads(self) -> list[bytes]:
        metadata, payload = self.entry.metadata, self.entry.payload
        if metadata.HasField("num_messages_in_batch"):
            return [each.payload for each in split_batch(payload, metadata.num_messages_in_batch)]
        return [payload]


def sent(broker: ScriptedBroker) -> list[Sent]:
    """All that arrived, again and again where it was sent again."""
    sends = [command.send for command in broker.of(BaseCommand.SEND)]
    return [
        Sent(send, split_entry(entry)) for send, entry in zip(sends, broker.entries, strict=True)
    ]


def payloads(broker: ScriptedBroker) -> list[list[bytes]]:
    return [each.payloads for each in sent(broker)]


def receipt(send: CommandSend, entry_id: int, *, ledger_id: int = 3) -> bytes:
    return commands.SendReceiptEncoder().encode(
        send.producer_id,
        send.sequence_id,
        ledger_id,
        entry_id,
        send.highest_sequence_id if send.HasField("highest_sequence_id") else None,
    )


def confirming() -> Answer:
    """Confirm every SEND at once; entry ids count up."""
    entry_ids = iter(range(10**9))

    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        return receipt(command.send, next(entry_ids))

    return answer


def connected_with(max_message_size: int) -> Answer:
    def answer(end: BrokerEnd, command: BaseCommand) -> bytes:
        return commands.connected("test", 21, max_message_size, FeatureFlags())

    return answer


def in_turn(*answers: Answer) -> Answer:
    """One answer after the other; the last one stays."""
    left = list(answers)

    def answer(end: BrokerEnd, command: BaseCommand) -> Iterable[bytes] | bytes | None:
        return (left.pop(0) if len(left) > 1 else left[0])(end, command)

    return answer
