"""Programs with the blocking client, right and wrong, for type checkers; nobody runs it.

A mistake is marked `type: ignore`: one that is not found is an unused comment, which fails, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pulsar_py import blocking
from pulsar_py.schema import AvroSchema


@dataclass
class Order:
    """A value."""

    cents: int


def uses(client: blocking.Client) -> int:
    """What is understood."""
    schema = AvroSchema(Order)
    producer: blocking.Producer[Order] = client.create_producer("t", schema=schema)
    message_id: blocking.MessageId = producer.send(Order(1), key="k")
    result: blocking.SendResult = producer.send_nowait(Order(2))
    assert result.result(1.0) == message_id
    consumer = client.subscribe("t", "s", schema=schema)
    with blocking.timeout(1):
        total = consumer.receive(1000).value().cents
    for message in consumer:
        total += message.value().cents
        consumer.acknowledge(message)
    shared = client.subscribe("t", "s", blocking.ConsumerType.Shared, schema=schema)
    total += shared.receive().value().cents
    pattern = client.subscribe(re.compile("t.*"), "s")
    total += len(pattern.topics())
    reader = client.create_reader("t", blocking.MessageId.earliest, schema=schema)
    total += reader.read_next().value().cents
    view = client.create_table_view("t", schema=schema)
    total += view["k"].cents + sum(each.cents for each in view.values())

    def listen(given: blocking.Consumer[Order], received: blocking.Message[Order]) -> None:
        given.acknowledge(received)

    client.subscribe("t", "s", schema=schema, message_listener=listen)
    return total


def mistakes(client: blocking.Client) -> None:
    """What is found."""
    schema = AvroSchema(Order)
    client.create_producer("t", schema=schema).send("text")  # type: ignore[call-overload]
    client.create_producer("t").send(1)  # type: ignore[call-overload]
    client.create_producer("t", batching_enable=True)  # type: ignore[call-overload]
    assert client.subscribe("t", "s", schema=schema).receive().value().euros  # type: ignore[union-attr]
    assert client.create_table_view("t", schema=schema)["k"].euros  # type: ignore[attr-defined]


def listeners_without_their_schema(client: blocking.Client) -> None:
    """What is found, too: without a schema there are bytes."""

    def listen(given: blocking.Consumer[Order], received: blocking.Message[Order]) -> None:
        given.acknowledge(received)

    def read(given: blocking.Reader[Order], received: blocking.Message[Order]) -> None: ...

    def changed(key: str, order: Order | None) -> None: ...

    client.subscribe("t", "s", message_listener=listen)  # type: ignore[arg-type]
    client.subscribe(["t"], "s", message_listener=listen)  # type: ignore[arg-type]
    client.subscribe(re.compile("t"), "s", message_listener=listen)  # type: ignore[arg-type]
    client.create_reader("t", reader_listener=read)  # type: ignore[arg-type]
    client.create_reader("t", schema=AvroSchema(Order), reader_listener=read)
    client.create_table_view("t").listen(changed)  # type: ignore[arg-type]
    _consumer: blocking.AnyConsumer[Order] = client.subscribe("t", "s")  # type: ignore[assignment]
    _reader: blocking.Reader[Order] = client.create_reader("t")  # type: ignore[assignment]
    _view: blocking.TableView[Order] = client.create_table_view("t")  # type: ignore[assignment]
    _producer: blocking.Producer[Order] = client.create_producer("t")  # type: ignore[assignment]
