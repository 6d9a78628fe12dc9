"""What a type checker says of programs that use the client: read by it, and never run.

Where it has to object, `type: ignore` names the error; `--strict` reports those that are not needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_type

import pulsar_py
import pulsar_py.client
import pulsar_py.schema
from pulsar_py import AnyConsumer, Consumer, MultiTopicsConsumer, PatternConsumer

MISSPELT = (
    pulsar_py.Clinet,  # type: ignore[attr-defined]
    pulsar_py.client.Clinet,  # type: ignore[attr-defined]
    pulsar_py.schema.StringShema,  # type: ignore[attr-defined]
)
assert_type(pulsar_py.__version__, str)

PRODUCING: pulsar_py.ProducerOptions = {"batching_enabled": True}
CONSUMING: pulsar_py.ConsumerOptions = {"consumer_type": pulsar_py.ConsumerType.Shared}
READING: pulsar_py.ReaderOptions = {"start_message_id_inclusive": True}
CONNECTING: pulsar_py.ClientOptions = {"operation_timeout_seconds": 3}


async def consumers(client: pulsar_py.Client, topics: Sequence[str]) -> None:
    assert_type(await client.subscribe("t", "s", **CONSUMING), AnyConsumer)
    assert_type(await client.subscribe("t", "s"), Consumer | MultiTopicsConsumer)
    assert_type(await client.subscribe(["t", "u"], "s"), MultiTopicsConsumer)
    assert_type(await client.subscribe(("t", "u"), "s"), MultiTopicsConsumer)
    assert_type(await client.subscribe(topics, "s"), AnyConsumer)
    assert_type(await client.subscribe(re.compile("a.*"), "s"), PatternConsumer)


async def work(consumer: AnyConsumer) -> None:
    message = await consumer.receive()
    await consumer.acknowledge(message)
    await consumer.acknowledge([message, message.message_id()])
    await consumer.acknowledge(None)  # type: ignore[arg-type]
    await consumer.seek(pulsar_py.MessageId.earliest)
    await consumer.seek("x")  # type: ignore[arg-type]


async def listeners(client: pulsar_py.Client) -> None:
    def of_one(consumer: Consumer, message: pulsar_py.Message) -> None: ...

    async def of_any(consumer: AnyConsumer, message: pulsar_py.Message) -> None: ...

    def of_too_much(consumer: Consumer, message: pulsar_py.Message, more: int) -> None: ...

    await client.subscribe("t", "s", message_listener=of_one)
    await client.subscribe("t", "s", message_listener=of_any)
    await client.subscribe("t", "s", message_listener=of_too_much)  # type: ignore[arg-type]


async def options(client: pulsar_py.Client, keys: pulsar_py.CryptoKeyReader) -> None:
    schema = pulsar_py.schema.StringSchema()
    await client.subscribe(
        "t",
        "s",
        schema=schema,
        crypto_key_reader=keys,
        dead_letter_policy=pulsar_py.ConsumerDeadLetterPolicy(max_redeliver_count=3),
    )
    await client.subscribe("t", "s", schema=str)  # type: ignore[call-overload]
    await client.subscribe("t", "s", crypto_key_reader="key.pem")  # type: ignore[call-overload]
    await client.subscribe("t", "s", dead_letter_policy=3)  # type: ignore[call-overload]
    await client.subscribe("t", "s", consumer_type="Shared")  # type: ignore[call-overload]
    await client.create_reader("t", schema=str)  # type: ignore[arg-type]
    await client.create_reader("t", **READING)
    await client.create_reader("t", b"x")  # type: ignore[arg-type]
    await client.create_producer("t", schema=str)  # type: ignore[arg-type]
    await client.create_producer("t", batching_max_mesages=5)  # type: ignore[call-arg]
    producer = await client.create_producer("t", **PRODUCING)
    assert_type(producer.send_nowait(b"x"), pulsar_py.SendResult)
    pulsar_py.Client("pulsar://localhost", **CONNECTING)


class Announcer(pulsar_py.ConsumerEventListener):
    def became_active(self, consumer: Consumer, partition_index: int) -> None: ...


ANNOUNCER = Announcer()
