"""What a type checker says of programs that use the synchronous client: read by it, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from pulsar_py import Message, blocking
from pulsar_py.schema import JsonSchema


@dataclass
class Order:
    number: int


def uses(client: blocking.Client) -> None:
    schema = JsonSchema(Order)
    producer = client.create_producer("t", schema=schema)
    assert_type(producer, blocking.Producer[Order])
    producer.send(Order(1))
    producer.send("1")  # type: ignore[call-overload]
    client.create_producer("t").send(b"1")

    message = client.subscribe("t", "s", schema=schema).receive()
    assert_type(message, Message[Order])
    assert_type(message.value(), Order | Any)
    _ = message.value().nubmer  # type: ignore[union-attr]
    assert_type(client.create_reader("t", schema=schema).read_next(), Message[Order])
    assert_type(client.create_table_view("t", schema=schema)["k"], Order)
    assert_type(client.create_reader("t").read_next(), Message[bytes])
