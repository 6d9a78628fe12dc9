"""A broker that sends garbage, stops answering, closes in the middle or lies about sizes.

Whatever it does, the call ends within its time-out with an exception that names the topic, the
client works again as soon as the broker does, and nothing outlives `close`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.shared.enums import InitialPosition
from pulsar_py.common.errors import ClientTimeoutError, LookupFailedError, PulsarError
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandLookupTopicResponse,
    CompressionType,
    MessageMetadata,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from pulsar_py.wire import commands
from pulsar_py.wire.payload import encode_entry, split_entry
from tests.integration.client.tampering import (
    EVERY_WAY,
    OPERATION_TIMEOUT_SECONDS,
    SLACK_SECONDS,
    Link,
    Tamper,
    bad_world,
    framed,
    silent,
)

TOPIC = "persistent://public/default/the-topic"
LATENCY_SECONDS = 0.001
SEND_TIMEOUT_MILLIS = 8_000
RECEIVE_TIMEOUT_MILLIS = 5_000

Act = Callable[[], Awaitable[Any]]
Prepare = Callable[[Client], Awaitable[Act]]
"""Opens what an operation needs while the broker is still good; returns the operation."""


async def producing(client: Client) -> Any:
    return await client.create_producer(TOPIC, send_timeout_millis=SEND_TIMEOUT_MILLIS)


async def consuming(client: Client, **options: Any) -> Any:
    return await client.subscribe(
        TOPIC, "sub", initial_position=InitialPosition.Earliest, **options
    )


async def prepare_create_producer(client: Client) -> Act:
    return lambda: producing(client)


async def prepare_subscribe(client: Client) -> Act:
    return lambda: consuming(client)


async def prepare_reader(client: Client) -> Act:
    return lambda: client.create_reader(TOPIC, MessageId.earliest)


async def prepare_partitions(client: Client) -> Act:
    return lambda: client.get_topic_partitions(TOPIC)


async def prepare_send(client: Client) -> Act:
    producer = await producing(client)
    return lambda: producer.send(b"x")


async def prepare_batched_send(client: Client) -> Act:
    producer = await client.create_producer(
        TOPIC, batching_enabled=True, send_timeout_millis=SEND_TIMEOUT_MILLIS
    )

    async def send() -> None:
        producer.send_nowait(b"1")
        await producer.send(b"2")

    return send


async def prepare_receive(client: Client) -> Act:
    consumer = await consuming(client)
    producer = await producing(client)

    async def receive() -> None:
        await producer.send(b"x")
        await consumer.receive(timeout_millis=RECEIVE_TIMEOUT_MILLIS)

    return receive


async def prepare_acknowledge(client: Client) -> Act:
    consumer = await consuming(client, ack_receipt_enabled=True)
    await (await producing(client)).send(b"x")
    message = await consumer.receive()
    return lambda: consumer.acknowledge(message)


async def prepare_seek(client: Client) -> Act:
    consumer = await consuming(client)
    return lambda: consumer.seek(MessageId.earliest)


async def prepare_last_message_id(client: Client) -> Act:
    consumer = await consuming(client)
    return consumer.get_last_message_id


async def prepare_unsubscribe(client: Client) -> Act:
    consumer = await consuming(client)
    return consumer.unsubscribe


OPERATIONS: dict[str, tuple[int, Prepare]] = {
    "connecting": (BaseCommand.CONNECTED, prepare_create_producer),
    "partitions": (BaseCommand.PARTITIONED_METADATA_RESPONSE, prepare_partitions),
    "lookup": (BaseCommand.LOOKUP_RESPONSE, prepare_create_producer),
    "create_producer": (BaseCommand.PRODUCER_SUCCESS, prepare_create_producer),
    "subscribe": (BaseCommand.SUCCESS, prepare_subscribe),
    "create_reader": (BaseCommand.SUCCESS, prepare_reader),
    "send": (BaseCommand.SEND_RECEIPT, prepare_send),
    "batched send": (BaseCommand.SEND_RECEIPT, prepare_batched_send),
    "receive": (BaseCommand.MESSAGE, prepare_receive),
    "acknowledge": (BaseCommand.ACK_RESPONSE, prepare_acknowledge),
    "seek": (BaseCommand.SUCCESS, prepare_seek),
    "last message id": (BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE, prepare_last_message_id),
    "unsubscribe": (BaseCommand.SUCCESS, prepare_unsubscribe),
}


async def failing(act: Act, *, seconds: float = OPERATION_TIMEOUT_SECONDS) -> PulsarError:
    """The error of an operation that must not work, nor take longer than it may."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(PulsarError) as caught:
        await asyncio.wait_for(act(), 600)
    assert loop.time() - begun <= seconds + SLACK_SECONDS
    assert "the-topic" in str(caught.value)
    return caught.value


async def outcome_of(act: Act) -> PulsarError | None:
    try:
        await act()
    except PulsarError as error:
        return error
    return None


async def works(client: Client) -> None:
    """The client, and the broker, serve a message from one end to the other."""
    async with (
        await client.create_producer(TOPIC) as producer,
        await client.subscribe(TOPIC, "works") as consumer,
    ):
        message_id = await producer.send(b"it works")
        while (await consumer.receive(timeout_millis=30_000)).message_id() != message_id:
            pass


@pytest.mark.parametrize("way", EVERY_WAY, ids=lambda way: way.__name__)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_bad_answer_ends_the_call_in_time_with_the_topics_name(
    operation: str, way: Tamper
) -> None:
    kind, prepare = OPERATIONS[operation]

    async def main() -> None:
        async with bad_world() as (client, proxy):
            act = await prepare(client)
            proxy.tamper(kind, way)
            await failing(act)
            assert proxy.tampered
            proxy.stop_tampering()
            await works(client)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


@pytest.mark.parametrize("way", EVERY_WAY, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "operation", ["connecting", "lookup", "create_producer", "subscribe", "send", "receive"]
)
def test_one_bad_answer_is_survived_where_it_can_be_asked_again(
    operation: str, way: Tamper
) -> None:
    kind, prepare = OPERATIONS[operation]

    async def main() -> None:
        async with bad_world(operation_timeout_seconds=40.0) as (client, proxy):
            act = await prepare(client)
            proxy.tamper(kind, way, times=1)
            error = await outcome_of(act)
            assert error is None or "the-topic" in str(error)
            assert proxy.tampered
            await works(client)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


# --- where a broker is --------------------------------------------------------------------------


def client_of_nobody() -> Client:
    return Client(
        "pulsar://nowhere:6650",
        clock=VirtualClock(),
        chance=random.Random(1),
        operation_timeout_seconds=OPERATION_TIMEOUT_SECONDS,
    )


def test_nobody_listens() -> None:
    async def main() -> None:
        async with client_of_nobody() as client:
            error = await failing(lambda: client.create_producer(TOPIC))
            assert "nowhere:6650" in str(error)

    run_simulated(main())


def test_nobody_answers_the_connection() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.network.silence("nowhere", 6650)
        async with client_of_nobody() as client:
            await failing(lambda: client.subscribe(TOPIC, "sub"))

    run_simulated(main())


def redirecting(link: Link, command: bytes, rest: bytes) -> None:
    request_id = BaseCommand.FromString(command).lookupTopicResponse.request_id
    other = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    answer = other.lookupTopicResponse
    answer.request_id = request_id
    answer.response = CommandLookupTopicResponse.Redirect
    answer.brokerServiceUrl = "pulsar://proxy:6650"
    link.say(framed(other.SerializeToString()))


def leading_astray(link: Link, command: bytes, rest: bytes) -> None:
    request_id = BaseCommand.FromString(command).lookupTopicResponse.request_id
    other = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    answer = other.lookupTopicResponse
    answer.request_id = request_id
    answer.response = CommandLookupTopicResponse.Connect
    answer.brokerServiceUrl = "no url at all"
    link.say(framed(other.SerializeToString()))


@pytest.mark.parametrize("way", [redirecting, leading_astray])
def test_lookups_that_lead_nowhere_end(way: Tamper) -> None:
    async def main() -> None:
        async with bad_world() as (client, proxy):
            proxy.tamper(BaseCommand.LOOKUP_RESPONSE, way)
            error = await failing(lambda: client.create_producer(TOPIC))
            assert isinstance(error, LookupFailedError | ClientTimeoutError)
            proxy.stop_tampering()
            await works(client)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_a_topic_of_a_billion_partitions_is_refused() -> None:
    def lies(link: Link, command: bytes, rest: bytes) -> None:
        request_id = BaseCommand.FromString(command).partitionMetadataResponse.request_id
        link.say(commands.partitioned_metadata_response(request_id, 1_000_000_000))

    async def main() -> None:
        async with bad_world() as (client, proxy):
            proxy.tamper(BaseCommand.PARTITIONED_METADATA_RESPONSE, lies)
            for act in (
                lambda: client.create_producer(TOPIC),
                lambda: client.subscribe(TOPIC, "sub"),
                lambda: client.get_topic_partitions(TOPIC),
            ):
                await failing(act)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


# --- receipts ----------------------------------------------------------------------------------


def receipt_of(sequence_id: int) -> Tamper:
    def say(link: Link, command: bytes, rest: bytes) -> None:
        found = BaseCommand.FromString(command)
        found.send_receipt.sequence_id = sequence_id
        link.say(framed(found.SerializeToString()))

    return say


def test_a_receipt_of_what_was_never_sent_confirms_nothing() -> None:
    async def main() -> None:
        async with bad_world() as (client, proxy):
            producer = await producing(client)
            proxy.tamper(BaseCommand.SEND_RECEIPT, receipt_of(77))
            await failing(lambda: producer.send(b"x"))
            proxy.stop_tampering()
            await producer.send(b"y")

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_a_receipt_that_comes_twice_confirms_once() -> None:
    def twice(link: Link, command: bytes, rest: bytes) -> None:
        link.say(framed(command) * 2)

    async def main() -> None:
        async with bad_world() as (client, proxy):
            producer = await producing(client)
            proxy.tamper(BaseCommand.SEND_RECEIPT, twice)
            ids = [await producer.send(b"x") for _ in range(5)]
            assert len(set(ids)) == 5

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


# --- entries -----------------------------------------------------------------------------------


def bends_the_entry(change: Callable[[bytes], bytes]) -> Tamper:
    def say(link: Link, command: bytes, rest: bytes) -> None:
        link.say(framed(command, change(rest)))

    return say


def with_metadata(change: Callable[[MessageMetadata], None]) -> Callable[[bytes], bytes]:
    def bend(rest: bytes) -> bytes:
        parts = split_entry(rest)
        metadata = MessageMetadata.FromString(parts.metadata.SerializeToString())
        change(metadata)
        return encode_entry(metadata, bytes(parts.payload))

    return bend


def set_fields(**fields: Any) -> Callable[[bytes], bytes]:
    def change(metadata: MessageMetadata) -> None:
        for name, value in fields.items():
            setattr(metadata, name, value)

    return with_metadata(change)


BENT = {
    "a bit of the payload": lambda rest: rest[:-1] + bytes([rest[-1] ^ 1]),
    "a bit of the checksum": lambda rest: rest[:3] + bytes([rest[3] ^ 1]) + rest[4:],
    "nothing": lambda _: b"",
    "only the magic number": lambda rest: rest[:2],
    "half of it": lambda rest: rest[: len(rest) // 2],
    "metadata of four gigabytes": lambda rest: b"\xff\xff\xff\xff" + rest[10:],
    "no metadata": lambda rest: b"\0\0\0\0" + rest[10:],
    "a million messages in the batch": set_fields(num_messages_in_batch=1_000_000),
    "a negative number of messages": set_fields(num_messages_in_batch=-5),
    "a compression it hasn't": set_fields(compression=CompressionType.ZSTD, uncompressed_size=9),
    "LZ4 that inflates to gigabytes": set_fields(
        compression=CompressionType.LZ4, uncompressed_size=4_000_000_000
    ),
    "zlib of nothing": set_fields(compression=CompressionType.ZLIB, uncompressed_size=1),
    "chunk 7 of 3": set_fields(
        uuid="u", chunk_id=7, num_chunks_from_msg=3, total_chunk_msg_size=10
    ),
    "a billion chunks": set_fields(
        uuid="u", chunk_id=0, num_chunks_from_msg=1_000_000_000, total_chunk_msg_size=2_000_000_000
    ),
    "a negative chunk": set_fields(
        uuid="u", chunk_id=-1, num_chunks_from_msg=-2, total_chunk_msg_size=-10
    ),
}


@pytest.mark.parametrize("what", BENT)
def test_an_entry_that_lies_is_not_delivered_and_costs_no_other(what: str) -> None:
    async def main() -> None:
        async with bad_world() as (client, proxy):
            consumer = await consuming(client)
            producer = await producing(client)
            proxy.tamper(BaseCommand.MESSAGE, bends_the_entry(BENT[what]), times=1)
            await producer.send(b"bent")
            await producer.send(b"whole")
            got = []
            while b"whole" not in got:
                message = await consumer.receive(timeout_millis=60_000)
                got.append(message.data())
                await consumer.acknowledge(message)
            assert set(got) <= {b"bent", b"whole"}
            assert proxy.tampered
            await works(client)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


def test_messages_beyond_what_was_asked_for_are_bounded() -> None:
    """A broker that ignores permits: each message a thousand times."""

    def floods(link: Link, command: bytes, rest: bytes) -> None:
        link.say(framed(command, rest) * 1000)

    async def main() -> None:
        async with bad_world() as (client, proxy):
            consumer = await consuming(client, receiver_queue_size=10)
            producer = await producing(client)
            proxy.tamper(BaseCommand.MESSAGE, floods)
            await producer.send(b"x")
            assert (await consumer.receive(timeout_millis=5_000)).data() == b"x"
            proxy.stop_tampering()
            await works(client)

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)


# --- closing -----------------------------------------------------------------------------------


def test_closing_ends_though_the_broker_never_answers() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with bad_world() as (client, proxy):
            producer, consumer = await producing(client), await consuming(client)
            proxy.tamper(BaseCommand.SUCCESS, silent)
            begun = loop.time()
            await asyncio.gather(producer.close(), consumer.close())
            assert loop.time() - begun <= OPERATION_TIMEOUT_SECONDS + SLACK_SECONDS

    run_simulated(main(), latency_seconds=LATENCY_SECONDS)
