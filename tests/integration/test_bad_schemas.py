"""Definitions of schemas that nobody can read are refused as Apache Pulsar does it, both ways.

Apache Pulsar 4.2.4 was asked for each row: on the wire it answers IncompatibleSchema and keeps the
connection, over HTTP 422; so do we. It reads definitions up to 1,000 levels deep, we up to 600 of
JSON and 200 types, so what lies between differs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, Schema, ServerError
from pulsar_py.standalone import Broker
from tests.integration.test_authentication import http
from tests.wire_client import WireClient

TOPIC = "persistent://public/default/t"
DEPTH = 100_000
BAD = {
    "no JSON": b"{nonsense",
    "an unknown type": b'{"type": "nonsense"}',
    "an undefined name": b'{"type":"record","name":"R","fields":[{"name":"a","type":"Nope"}]}',
    "lists without an end": b"[" * DEPTH,
    "lists in lists": b"[" * DEPTH + b"]" * DEPTH,
    "arrays of arrays": b'{"type":"array","items":' * DEPTH + b'"int"' + b"}" * DEPTH,
}
TOO_LONG_FOR_A_BODY = "arrays of arrays"  # 2.5 MB: 413 with us, 422 with Apache Pulsar
KINDS = ("AVRO", "JSON")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as started:
        yield started


async def test_the_wire_answers_incompatible_schema_and_goes_on(broker: Broker) -> None:
    address = urlsplit(broker.service_url)
    assert address.hostname
    assert address.port
    client = await WireClient.connect(address.hostname, address.port)
    await client.lookup(TOPIC)
    for kind in KINDS:
        for name, definition in BAD.items():
            schema = Schema(
                name="s", type=Schema.Type.Value(kind.capitalize()), schema_data=definition
            )
            producer = BaseCommand(type=BaseCommand.PRODUCER)
            producer.producer.topic = TOPIC
            producer.producer.producer_id = 1
            producer.producer.schema.CopyFrom(schema)
            producer.producer.request_id = client.next_request_id()
            answer = await client.request(producer, producer.producer.request_id)
            assert answer.error.error == ServerError.IncompatibleSchema, (kind, name)
            assert len(answer.error.message) < 1_000, "it does not quote all of it"
    answer = await client.create_producer(TOPIC)
    assert answer.type == BaseCommand.PRODUCER_SUCCESS
    await client.close()


async def test_http_answers_422(broker: Broker) -> None:
    for kind in KINDS:
        for name, definition in BAD.items():
            body = {"type": kind, "schema": definition.decode(), "properties": {}}
            assert len(json.dumps(body)) < 1 << 22
            path = "/admin/v2/schemas/public/default/t/schema"
            status, _ = await http(broker, "POST", path, body)
            assert status == (413 if name == TOO_LONG_FOR_A_BODY else 422), (kind, name)


NO_DEFINITIONS = {
    "a part cut short": (Schema.KeyValue, b"\x00\x00\x00\x09ab"),
    "no parts": (Schema.KeyValue, b""),
    "a primitive type with a definition": (Schema.Int32, b"x"),
    "nothing of AVRO": (Schema.Avro, b""),
    "no descriptor": (Schema.ProtobufNative, b"[]"),
}


async def test_producers_and_consumers_are_refused_alike(broker: Broker) -> None:
    address = urlsplit(broker.service_url)
    client = await WireClient.connect(address.hostname or "", address.port or 0)
    await client.lookup(TOPIC)
    for name, (kind, definition) in NO_DEFINITIONS.items():
        schema = Schema(name="s", type=kind, schema_data=definition)
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.topic = TOPIC
        command.producer.producer_id = 1
        command.producer.schema.CopyFrom(schema)
        command.producer.request_id = client.next_request_id()
        answer = await client.request(command, command.producer.request_id)
        assert answer.error.error == ServerError.IncompatibleSchema, name
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        command.subscribe.topic = TOPIC
        command.subscribe.subscription = "sub"
        command.subscribe.subType = CommandSubscribe.Shared
        command.subscribe.consumer_id = 1
        command.subscribe.schema.CopyFrom(schema)
        command.subscribe.request_id = client.next_request_id()
        answer = await client.request(command, command.subscribe.request_id)
        assert answer.error.error == ServerError.IncompatibleSchema, name
        assert answer.error.message, name
    await client.close()


@pytest.mark.parametrize("definition", [b"", b"data"])
async def test_bytes_are_no_schema(broker: Broker, definition: bytes) -> None:
    address = urlsplit(broker.service_url)
    client = await WireClient.connect(address.hostname or "", address.port or 0)
    await client.lookup(TOPIC)
    command = BaseCommand(type=BaseCommand.PRODUCER)
    command.producer.topic = TOPIC
    command.producer.producer_id = 1
    command.producer.schema.CopyFrom(
        Schema(name="s", type=Schema.Type.Value("None"), schema_data=definition)
    )
    command.producer.request_id = client.next_request_id()
    answer = await client.request(command, command.producer.request_id)
    assert answer.type == BaseCommand.PRODUCER_SUCCESS
    assert answer.producer_success.schema_version == b""
    await client.close()
