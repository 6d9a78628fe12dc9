"""What a type checker says of programs that use the client: read by it, and never run.

Where mypy and pyright have to object, `type: ignore` names mypy's error; both report those that are
not needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

from pydantic import BaseModel

import pulsar_py
import pulsar_py.client
import pulsar_py.schema
from pulsar_py import AnyConsumer, Consumer, MultiTopicsConsumer, PatternConsumer
from pulsar_py.schema import AvroSchema, JsonSchema, StringSchema


def misspelt(*names: object) -> None: ...


misspelt(
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
    assert_type(await client.subscribe("t", "s"), Consumer[bytes] | MultiTopicsConsumer[bytes])
    assert_type(await client.subscribe(["t", "u"], "s"), MultiTopicsConsumer[bytes])
    assert_type(await client.subscribe(("t", "u"), "s"), MultiTopicsConsumer[bytes])
    assert_type(await client.subscribe(topics, "s"), AnyConsumer[bytes])
    assert_type(await client.subscribe(re.compile("a.*"), "s"), PatternConsumer[bytes])


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
    await client.subscribe("t", "s", "Shared")  # type: ignore[call-overload]
    await client.subscribe("t", "s", pulsar_py.ConsumerType.Shared, schema)  # type: ignore[call-overload]
    shared = await client.subscribe("t", "s", pulsar_py.ConsumerType.Shared, schema=schema)
    shared.negative_acknowledge(await shared.receive())
    await shared.negative_acknowledge(await shared.receive())
    await shared.redeliver_unacknowledged_messages()
    await client.subscribe("t", "s", **CONSUMING)
    await client.create_reader("t", schema=str)  # type: ignore[call-overload]
    await client.create_reader("t", **READING)
    await client.create_reader("t", b"x")  # type: ignore[call-overload]
    await client.create_producer("t", schema=str)  # type: ignore[call-overload]
    await client.create_producer("t", batching_max_mesages=5)  # type: ignore[call-overload]
    producer = await client.create_producer("t", **PRODUCING)
    assert_type(producer.send_nowait(b"x"), pulsar_py.SendResult)
    pulsar_py.Client("pulsar://localhost", **CONNECTING)


class Announcer(pulsar_py.ConsumerEventListener):
    def became_active(self, consumer: Consumer, partition_index: int) -> None: ...


ANNOUNCER = Announcer()


@dataclass
class Order:
    number: int


async def producing(client: pulsar_py.Client) -> None:
    orders = await client.create_producer("t", schema=JsonSchema(Order), batching_enabled=True)
    assert_type(orders, pulsar_py.Producer[Order])
    assert_type(await orders.send(Order(1), key="k"), pulsar_py.MessageId)
    assert_type(orders.send_nowait(None, key="k"), pulsar_py.SendResult)  # a null value
    await orders.send("1")  # type: ignore[call-overload]
    orders.send_nowait(b"1")  # type: ignore[call-overload]
    await orders.send("1", schema=StringSchema())
    await orders.send(Order(1), schema=StringSchema())  # type: ignore[misc]
    orders.send_nowait(1, schema=StringSchema())  # type: ignore[misc]

    plain = await client.create_producer("t")
    await plain.send(b"1")
    await plain.send(bytearray(b"1"))
    await plain.send("1")  # type: ignore[call-overload]
    await publish(plain, orders)
    await publish(orders, orders)  # type: ignore[arg-type]
    await anything(orders)


async def publish(plain: pulsar_py.Producer[bytes], orders: pulsar_py.Producer[Order]) -> None:
    await plain.send(b"1")
    await orders.send(Order(1))


async def anything(producer: pulsar_py.Producer) -> None:
    await producer.send(Order(1))
    await producer.send(b"1")


async def consuming(client: pulsar_py.Client) -> None:
    consumer = await client.subscribe("t", "s", schema=JsonSchema(Order))
    assert_type(consumer, AnyConsumer[Order])
    message = await consumer.receive()
    assert_type(message, pulsar_py.Message[Order])
    assert_type(message.data(), bytes)
    assert_type(message.value(), Order | Any)
    assert_type(message.value().number, int | Any)
    _ = message.value().nubmer  # type: ignore[union-attr]
    _ = message.value() + 1  # type: ignore[operator]
    _ = text_of(message)
    _ = number_of(message)  # type: ignore[arg-type]
    if message.value() is None:
        await consumer.acknowledge(message)
    async for each in consumer:
        assert_type(each, pulsar_py.Message[Order])
    for each in await consumer.batch_receive():
        assert_type(each, pulsar_py.Message[Order])
    assert_type(consumer.receive_nowait(), pulsar_py.Message[Order] | None)

    many = await client.subscribe(["t", "u"], "s", schema=StringSchema())
    assert_type(many, MultiTopicsConsumer[str])
    assert_type((await many.receive()).value(), str | Any)
    assert_type((await many.batch_receive())[0].value(), str | Any)
    matching = await client.subscribe(re.compile("t.*"), "s", schema=StringSchema())
    assert_type(await matching.receive(), pulsar_py.Message[str])

    plain = await client.subscribe("t", "s")
    assert_type((await plain.receive()).value(), bytes | Any)
    _ = (await plain.receive()).value().encode()  # type: ignore[union-attr]


def text_of(message: pulsar_py.Message) -> str:
    return str(message.value())


def number_of(message: pulsar_py.Message[int]) -> int:
    return message.value()


async def typed_listeners(client: pulsar_py.Client) -> None:
    def of_orders(consumer: AnyConsumer, message: pulsar_py.Message[Order]) -> None: ...

    def of_texts(consumer: AnyConsumer, message: pulsar_py.Message[str]) -> None: ...

    def of_read(reader: pulsar_py.Reader[str], message: pulsar_py.Message[str]) -> None: ...

    orders = JsonSchema(Order)
    await client.subscribe("t", "s", schema=orders, message_listener=of_orders)
    await client.subscribe("t", "s", schema=orders, message_listener=of_texts)  # type: ignore[arg-type]
    await client.create_reader("t", schema=StringSchema(), reader_listener=of_read)
    await client.create_reader("t", schema=orders, reader_listener=of_read)  # type: ignore[arg-type]


async def listeners_without_their_schema(
    client: pulsar_py.Client, maybe: JsonSchema[Order] | None
) -> None:
    def of_orders(consumer: AnyConsumer[Order], message: pulsar_py.Message[Order]) -> None: ...

    async def of_orders_later(consumer: AnyConsumer, message: pulsar_py.Message[Order]) -> None: ...

    def of_bytes(consumer: AnyConsumer, message: pulsar_py.Message[bytes]) -> None: ...

    def of_read(reader: pulsar_py.Reader[str], message: pulsar_py.Message[str]) -> None: ...

    await client.subscribe("t", "s", message_listener=of_orders)  # type: ignore[arg-type]
    await client.subscribe("t", "s", message_listener=of_orders_later)  # type: ignore[arg-type]
    await client.subscribe(["t"], "s", message_listener=of_orders)  # type: ignore[arg-type]
    await client.subscribe(re.compile("t"), "s", message_listener=of_orders)  # type: ignore[arg-type]
    await client.subscribe("t", "s", message_listener=of_bytes)
    await client.create_reader("t", reader_listener=of_read)  # type: ignore[arg-type]
    _consumer: AnyConsumer[Order] = await client.subscribe("t", "s")  # type: ignore[assignment]
    _reader: pulsar_py.Reader[Order] = await client.create_reader("t")  # type: ignore[assignment]
    _view: pulsar_py.TableView[Order] = await client.create_table_view("t")  # type: ignore[assignment]
    _producer: pulsar_py.Producer[Order] = await client.create_producer("t")  # type: ignore[assignment]

    chosen = await client.subscribe("t", "s", schema=maybe, message_listener=of_orders)
    assert_type(chosen, AnyConsumer[Order])
    given: pulsar_py.ConsumerOptions[Order] = {"message_listener": of_orders}
    assert_type(await client.subscribe("t", "s", **given), AnyConsumer[Order])


def on_text(key: str, text: str | None) -> None: ...


async def views_without_their_schema(client: pulsar_py.Client) -> None:
    view = await client.create_table_view("t")
    view.listen(on_text)  # type: ignore[arg-type]
    view.for_each_and_listen(on_text)  # type: ignore[arg-type]


async def reading(client: pulsar_py.Client) -> None:
    reader = await client.create_reader("t", schema=StringSchema())
    assert_type(reader, pulsar_py.Reader[str])
    assert_type(await reader.read_next(), pulsar_py.Message[str])
    assert_type(await reader.read_nowait(), pulsar_py.Message[str] | None)
    async for message in reader:
        _ = message.value() - 1  # type: ignore[operator]
    assert_type(await client.create_reader("t"), pulsar_py.Reader[bytes])


async def viewing(client: pulsar_py.Client) -> None:
    view = await client.create_table_view("t", schema=JsonSchema(Order))
    assert_type(view, pulsar_py.TableView[Order])
    assert_type(view["k"], Order)
    assert_type(view.get("k"), Order | None)
    for key, order in view.items():
        assert_type((key, order), tuple[str, Order])
    _ = view["k"].nubmer  # type: ignore[attr-defined]

    def on_change(key: str, order: Order | None) -> None: ...

    def on_text(key: str, text: str | None) -> None: ...

    view.listen(on_change)
    view.for_each_and_listen(on_text)  # type: ignore[arg-type]
    assert_type(await client.create_table_view("t"), pulsar_py.TableView[bytes])


class Person(TypedDict):
    name: str


class Point(NamedTuple):
    x: int


class Receipt(BaseModel):
    cents: int


async def schemas_of_classes(client: pulsar_py.Client) -> None:
    assert_type(JsonSchema(Person), JsonSchema[Person])
    assert_type(AvroSchema(Point), AvroSchema[Point])
    receipts = await client.create_producer("t", schema=AvroSchema(Receipt))
    assert_type(receipts, pulsar_py.Producer[Receipt])
    await receipts.send(Receipt(cents=1))
    await receipts.send({"cents": 1})  # type: ignore[call-overload]
    people = await client.subscribe("t", "s", schema=JsonSchema(Person))
    message = await people.receive()
    assert_type(message.value()["name"], str | Any)
    _ = message.value()["nmae"]  # type: ignore[typeddict-item]


async def schemas_without_a_class(client: pulsar_py.Client) -> None:
    as_stored = await client.subscribe("t", "s", schema=pulsar_py.schema.AutoConsumeSchema())
    assert_type((await as_stored.receive()).value(), Any)
    pairs = pulsar_py.schema.KeyValueSchema(StringSchema(), JsonSchema(Order))
    message = await (await client.subscribe("t", "s", schema=pairs)).receive()
    assert_type(message.value(), pulsar_py.schema.KeyValue[str, Order] | Any)
