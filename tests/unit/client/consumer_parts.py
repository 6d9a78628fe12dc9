"""A consumer of a scripted broker, in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pulsar_py.client.client import Client
from pulsar_py.client.consuming.consumer import Consumer
from pulsar_py.client.consuming.consumer_config import ConsumerConfig
from pulsar_py.client.messages.message import EntryKey
from pulsar_py.common.errors import ClientError
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandAck
from pulsar_py.testing.sealing import unsealed
from pulsar_py.wire import commands
from tests.scripted_broker import BrokerEnd, ScriptedBroker, simulated_client
from tests.unit.client.entries import TOPIC, single

T = TypeVar("T")


async def open_consumer(
    client: Client, *, start: MessageId | None = None, **options: Any
) -> Consumer:
    return await Consumer.open(
        client.context, TOPIC, "s", ConsumerConfig(**options), start_message_id=start
    )


def new_client(broker: ScriptedBroker, **options: Any) -> Client:
    return simulated_client(broker, **{"operation_timeout_seconds": 5, **options})


def spawn(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    return asyncio.get_running_loop().create_task(work)


def in_thread(work: Callable[[], Coroutine[Any, Any, object]]) -> BaseException | None:
    """Run `work` on an event loop of another thread, to its end; what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except ClientError as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="worker")
    with unsealed():
        thread.start()
        thread.join()
    return raised[0] if raised else None


def deliver(
    broker: ScriptedBroker, key: EntryKey, data: bytes | None = None, **fields: Any
) -> None:
    """Push one MESSAGE to the newest registration."""
    command = BaseCommand(type=BaseCommand.MESSAGE)
    command.message.consumer_id = broker.of(BaseCommand.SUBSCRIBE)[-1].subscribe.consumer_id
    command.message.message_id.ledgerId, command.message.message_id.entryId = key
    for name, value in fields.items():
        if name == "ack_set":
            command.message.ack_set.extend(value)
        else:
            setattr(command.message, name, value)
    entry = single(b"%d:%d" % key) if data is None else data
    body = command.SerializeToString()
    size = len(body)
    total = 4 + size + len(entry)
    broker.end.push(total.to_bytes(4, "big") + size.to_bytes(4, "big") + body + entry)


def acks(broker: ScriptedBroker) -> list[CommandAck]:
    return [command.ack for command in broker.of(BaseCommand.ACK)]


def acked_entries(broker: ScriptedBroker) -> list[list[int]]:
    """The entry ids of each ACK."""
    return [[each.entryId for each in ack.message_id] for ack in acks(broker)]


def permits(broker: ScriptedBroker) -> list[int]:
    return [command.flow.messagePermits for command in broker.of(BaseCommand.FLOW)]


def redeliveries(broker: ScriptedBroker) -> list[list[int]]:
    kind = BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES
    return [
        [each.entryId for each in command.redeliverUnacknowledgedMessages.message_ids]
        for command in broker.of(kind)
    ]


def confirm_acks(broker: ScriptedBroker) -> None:
    """Answer ACKs that want a receipt."""

    def answer(end: BrokerEnd, command: BaseCommand) -> bytes | None:
        ack = command.ack
        if not ack.HasField("request_id"):
            return None
        return commands.ack_response(ack.consumer_id, ack.request_id)

    broker.script[BaseCommand.ACK] = answer
