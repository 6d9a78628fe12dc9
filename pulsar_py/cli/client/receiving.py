"""`pulsar-py client consume|read`: prints messages as pulsar-client does, or as JSON (edge).

Source: AbstractCmdConsume in Pulsar's client tools.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.cli.admin.output import java_text
from pulsar_py.cli.admin.values import position
from pulsar_py.cli.client.producing import wait_for_turn
from pulsar_py.client.messages.message import Message
from pulsar_py.client.security.crypto_keys import CryptoKeyReader
from pulsar_py.client.shared.enums import (
    ConsumerCryptoFailureAction,
    ConsumerType,
    InitialPosition,
    SubscriptionMode,
)
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.common.message_id import MessageId
from pulsar_py.schema import AutoConsumeSchema, BytesSchema, KeyValue, StringSchema

if TYPE_CHECKING:
    from pulsar_py.cli.connecting.connection import Connection

_SCHEMAS: Final = {
    "bytes": BytesSchema,
    "string": StringSchema,
    "auto_consume": AutoConsumeSchema,
}
_TYPES: Final = {
    "Exclusive": ConsumerType.Exclusive,
    "Shared": ConsumerType.Shared,
    "Failover": ConsumerType.Failover,
    "Key_Shared": ConsumerType.KeyShared,
}
_MODES: Final = {
    "Durable": SubscriptionMode.Durable,
    "NonDurable": SubscriptionMode.NonDurable,
}


async def consume(
    where: Connection,
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    clock: Clock | None = None,
) -> None:
    """Consume, print and acknowledge.

    Raises:
        PulsarError: It could not be done.
    """
    topic = re.compile(given["topic"]) if given["regex"] else given["topic"]
    async with where.client(**options) as client:
        consumer = await client.subscribe(
            topic,
            given["subscription_name"],
            consumer_type=_TYPES[given["subscription_type"]],
            subscription_mode=_MODES[given["subscription_mode"]],
            initial_position=InitialPosition[given["subscription_position"]],
            replicate_subscription_state_enabled=given["replicated"],
            **_common(given),
        )

        async def next_message() -> Message[Any] | None:
            while True:
                message: Message[Any] = await consumer.receive()
                await consumer.acknowledge(message)
                if message.publish_timestamp() > given["end_timestamp"]:
                    return None
                if message.publish_timestamp() >= given["start_timestamp"]:
                    return message

        await _print_all(next_message, given, "consumed", clock or SystemClock())


async def read(
    where: Connection,
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    clock: Clock | None = None,
) -> None:
    """Read and print.

    Raises:
        PulsarError: It could not be done.
        ValueError: The text given for the first message is no message id.
    """
    ledger_id, entry_id = position(given["start_message_id"])
    start = {"earliest": MessageId.earliest, "latest": MessageId.latest}.get(
        given["start_message_id"]
    ) or MessageId(ledger_id=ledger_id, entry_id=entry_id)
    async with where.client(**options) as client:
        reader = await client.create_reader(
            given["topic"],
            start,
            start_message_id_inclusive=given["start_message_id_inclusive"],
            **_common(given),
        )

        async def next_message() -> Message[Any] | None:
            message: Message[Any] = await reader.read_next()
            return message

        await _print_all(next_message, given, "read", clock or SystemClock())


def _common(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of consumers and readers; what is 0 or not given is left to the client."""
    key = given["encryption_key_value"]
    found = {
        "schema": _SCHEMAS[given["schema_type"]](),
        "receiver_queue_size": given["queue_size"] or None,
        "max_pending_chunked_message": given["max_chunked_msg"] or None,
        "auto_ack_oldest_chunked_message_on_queue_full": given["auto_ack_chunk_q_full"] or None,
        "crypto_key_reader": CryptoKeyReader("", key.removeprefix("file://")) if key else None,
        "crypto_failure_action": ConsumerCryptoFailureAction[given["crypto_failure_action"]],
    }
    return {name: each for name, each in found.items() if each is not None}


async def _print_all(
    next_message: Callable[[], Awaitable[Message[Any] | None]],
    given: Mapping[str, Any],
    done: str,
    clock: Clock,
) -> None:
    """Print until there were as many as wanted, and how many there were in the end."""
    count, start = 0, clock.monotonic_seconds()
    try:
        while given["num_messages"] == 0 or count < given["num_messages"]:
            await wait_for_turn(clock, start, count, given["rate"])
            message = await next_message()
            if message is None:
                return
            count += 1
            if not given["hide_content"]:
                sys.stdout.write(printed(message, given))
                sys.stdout.flush()
    finally:
        if given["output"] == "text":
            sys.stdout.write(f"{count} messages successfully {done}\n")


def printed(message: Message[Any], given: Mapping[str, Any]) -> str:
    """A message in pulsar-client's form, or as one line of JSON."""
    if given["output"] == "json":
        return json.dumps(_as_json(message, given), ensure_ascii=False, default=str) + "\n"
    properties = ",".join(f"{name}={value}" for name, value in message.properties().items())
    parts = [
        f"publishTime:[{message.publish_timestamp()}], eventTime:[{message.event_timestamp()}]",
        f"key:[{java_text(message.key())}], properties:[{properties}]",
        f"content:{_content(message, given)}",
    ]
    if given["print_metadata"]:
        parts.append(_metadata(message))
    return f"----- got message -----\n{', '.join(parts)}\n"


def _content(message: Message[Any], given: Mapping[str, Any]) -> str:
    if given["is_hex"]:
        return message.data().hex()
    if given["schema_type"] == "auto_consume":
        return java_text(_plain(message.value()))
    return message.data().decode(errors="replace")


def _as_json(message: Message[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    value: Any = _content(message, given)
    if given["schema_type"] == "auto_consume" and not given["is_hex"]:
        value = _plain(message.value())
    return {
        "topic": message.topic_name(),
        "messageId": _message_id(message),
        "publishTime": message.publish_timestamp(),
        "eventTime": message.event_timestamp(),
        "key": message.key(),
        "properties": message.properties(),
        "content": value,
    }


def _metadata(message: Message[Any]) -> str:
    event = datetime.fromtimestamp(message.event_timestamp() / 1000, UTC)
    return ", ".join(
        (
            f"event-time:{event.isoformat().replace('+00:00', 'Z')}",
            f"message-id:{_message_id(message)}",
            f"producer-name:{message.producer_name()}",
            f"sequence-id:{message.sequence_id()}",
            f"replicated-from:{java_text(message.replicated_from())}",
            f"redelivery-count:{message.redelivery_count()}",
            f"ordering-key:{message.ordering_key()}",
            f"schema-version:{(message.schema_version() or b'').hex()}",
        )
    )


def _message_id(message: Message[Any]) -> str:
    found = message.message_id()
    shown = f"{found.ledger_id}:{found.entry_id}:{found.partition_index}"
    return shown if found.batch_index < 0 else f"{shown}:{found.batch_index}"


def _plain(value: Any) -> Any:  # Any: what schemas make
    """A value that JSON can have: records as objects, bytes in base 64 unless they are text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, KeyValue):
        return {"key": _plain(value.key), "value": _plain(value.value)}
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
