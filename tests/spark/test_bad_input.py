"""Errors through Spark name the option, the topic and the position.

A start that was trimmed is in test_read.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_py import schema as schemas
from pulsar_py.client import Client
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandConnected, ServerError
from pulsar_py.testing.broker_thread import BrokerThread
from pulsar_py.wire import commands
from pulsar_py.wire.framing import FrameDecoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

errors = pytest.importorskip("pyspark.errors")

TOPIC = "persistent://public/default/bad-input"
QUICK = {"pulsar.client.operationTimeoutMs": "1000"}
Do = Callable[["SparkSession", dict[str, str]], None]


def read(spark: SparkSession, options: dict[str, str]) -> None:
    spark.read.format("pulsar").options(**options).load().collect()


def read_stream(spark: SparkSession, options: dict[str, str]) -> None:
    rows = spark.readStream.format("pulsar").options(**options).load()
    query = rows.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()


def write(spark: SparkSession, options: dict[str, str]) -> None:
    rows = spark.sql("SELECT 'a' AS value")
    rows.write.format("pulsar").mode("append").options(**options).save()


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with BrokerThread(config={"brokerDeleteInactiveTopicsEnabled": False}) as broker:
        yield broker


# --- clusters that say no ------------------------------------------------------------------------


@contextmanager
def refusing_broker(code: int, text: str) -> Iterator[str]:
    """The URL of one that lets clients in, and refuses whatever they ask."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, code, text), daemon=True).start()
        yield f"pulsar://127.0.0.1:{server.getsockname()[1]}"


def _serve(server: socket.socket, code: int, text: str) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, code, text), daemon=True).start()


def _answer(connection: socket.socket, code: int, text: str) -> None:
    decoder = FrameDecoder(1 << 20)
    with connection:
        while data := connection.recv(1 << 16):
            for frame in decoder.decode(data):
                command = BaseCommand.FromString(frame.command)
                if command.HasField("connect"):
                    hello = CommandConnected(server_version="refusing", protocol_version=21)
                    connection.sendall(commands.encode(hello))
                elif command.HasField("partitionMetadata"):
                    request_id = command.partitionMetadata.request_id
                    connection.sendall(commands.partitioned_metadata_failed(request_id, code, text))
                elif command.HasField("getSchema"):
                    request_id = command.getSchema.request_id
                    connection.sendall(commands.get_schema_failed(request_id, code, text))
                elif command.HasField("ping"):
                    connection.sendall(commands.pong())


@pytest.mark.parametrize("do", [read, read_stream, write])
def test_a_role_without_a_permission(spark: SparkSession, do: Do) -> None:
    text = f"Client is not authorized to Get Partition Metadata with topic {TOPIC}"
    with refusing_broker(ServerError.AuthorizationError, text) as url:
        options = {"service.url": url, "topic": TOPIC, **QUICK}
        options |= {
            "pulsar.client.authPluginClassName": "token",
            "pulsar.client.authParams": "token:nobodysbusiness",
        }
        with pytest.raises(Exception, match=r"the role that pulsar\.client\.authParams") as caught:
            do(spark, options)
    assert f"with topic {TOPIC}" in str(caught.value)
    assert "nobodysbusiness" not in str(caught.value)


@pytest.mark.parametrize("do", [read, read_stream, write])
def test_a_broker_that_is_not_there(spark: SparkSession, do: Do) -> None:
    options = {"service.url": "pulsar://127.0.0.1:1", "topic": TOPIC, **QUICK}
    with pytest.raises(Exception, match=rf"service\.url: {TOPIC}: .*127\.0\.0\.1:1"):
        do(spark, options)


@pytest.mark.parametrize("do", [read, read_stream])
def test_an_admin_url_behind_which_nobody_is(
    spark: SparkSession, broker: BrokerThread, do: Do
) -> None:
    asyncio.run(publish_one(broker))
    options = {"service.url": broker.service_url, "topic": TOPIC, **QUICK}
    with pytest.raises(Exception, match=r"admin\.url: internal statistics of .*127\.0\.0\.1:1"):
        do(spark, options | {"admin.url": "http://127.0.0.1:1"})
    no_web_service = broker.service_url.replace("pulsar://", "http://")
    with pytest.raises(Exception, match=r"admin\.url: .* no web service on that port"):
        do(spark, options | {"admin.url": no_web_service})


async def publish_one(broker: BrokerThread) -> None:
    async with Client(broker.service_url) as client, await client.create_producer(TOPIC) as one:
        await one.send(b"one")


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("do", "given", "text"),
    [
        (read, {"startingOfsets": "earliest"}, r"did you mean 'startingOffsets'"),
        (read_stream, {"maxBytesPerTriger": "1"}, r"did you mean 'maxBytesPerTrigger'"),
        (write, {"delivryGuarantee": "x"}, r"did you mean 'deliveryGuarantee'"),
        (write, {"startingOffsets": "earliest"}, r"unknown option 'startingoffsets'"),
        (read, {"pulsar.client.operationTimeoutSeconds": "1"}, r"did you mean .*operationTimeout"),
        (write, {"pulsar.producer.batchingEnabld": "1"}, r"did you mean .*batchingEnabled"),
        (read, {"undecodable": "skip"}, r"undecodable: 'skip', expected one of fail, drop, column"),
    ],
)
def test_options_that_are_none(
    spark: SparkSession, broker: BrokerThread, do: Do, given: dict[str, str], text: str
) -> None:
    options = {"service.url": broker.service_url, "topic": TOPIC}
    with pytest.raises(Exception, match=text):
        do(spark, options | given)


# --- messages ------------------------------------------------------------------------------------


def publish(broker: BrokerThread, topic: str, *payloads: bytes) -> list[MessageId]:
    """Payloads as they are, one an entry, on a topic of JSON records."""
    definition = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}

    class Unchecked(schemas.JsonSchema[Any]):
        def encode(self, value: bytes) -> bytes:
            return value

    async def send() -> list[MessageId]:
        async with (
            Client(broker.service_url) as client,
            await client.create_producer(
                topic, schema=Unchecked(schema_definition=definition), batching_enabled=False
            ) as producer,
        ):
            return [await producer.send(each) for each in payloads]

    return asyncio.run(send())


def frame(spark: SparkSession, broker: BrokerThread, topic: str, **options: str) -> DataFrame:
    given = {"service.url": broker.service_url, "topic": topic, "columns": ""} | options
    return spark.read.format("pulsar").options(**given).load()


def test_messages_that_cannot_be_decoded(spark: SparkSession, broker: BrokerThread) -> None:
    topic = f"{TOPIC}-broken"
    ids = publish(broker, topic, b'{"a": 1}', b"no JSON", b'{"a": 2}')
    position = f"{ids[1].ledger_id}:{ids[1].entry_id}"
    with pytest.raises(Exception, match=rf"{topic}: message {position}"):
        frame(spark, broker, topic).collect()
    assert [row.a for row in frame(spark, broker, topic, undecodable="drop").collect()] == [1, 2]
    kept = frame(spark, broker, topic, undecodable="column").orderBy("__undecodable").collect()
    assert [(row.a, row["__undecodable"]) for row in kept][-1] == (None, b"no JSON")
