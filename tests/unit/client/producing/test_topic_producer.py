"""One topic's producer beside a scripted broker, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pulsar_py.client.client import Client
from pulsar_py.client.producing.message_builder import OutgoingMessage
from pulsar_py.client.producing.producer_interceptor import ProducerInterceptor
from pulsar_py.client.producing.topic_producer import TopicProducer
from pulsar_py.client.shared.enums import CompressionType, ProducerAccessMode
from pulsar_py.common.errors import (
    AlreadyClosedError,
    ClientError,
    ClientTimeoutError,
    MemoryBufferFullError,
    MessageTooBigError,
    ProducerFencedError,
    ProducerQueueFullError,
    SchemaSerializationError,
)
from pulsar_py.common.message_id import MessageId
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.wire import commands
from tests.producer_parts import (
    TOPIC,
    confirming,
    connected_with,
    payloads,
    receipt,
    sent,
)
from tests.scripted_broker import ScriptedBroker, simulated, simulated_client
from tests.unit.client.consumer_parts import in_thread


async def producer_of(client: Client, **options: Any) -> TopicProducer:
    made = await client.create_producer(TOPIC, **options)
    assert isinstance(made, TopicProducer)
    return made


def spawn(work: Any) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(work)


@simulated
async def test_a_message_is_sent_and_its_id_returned(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await producer_of(client) as producer:
        assert await producer.send(b"hello") == MessageId(3, 0)
        assert await producer.send_nowait(b"again") == MessageId(3, 1)
        assert producer.last_sequence_id() == 1
        assert producer.topic() == TOPIC
        assert producer.producer_name() == "p"
        assert producer.is_connected()
        assert producer.partitions_count() == 0
    assert payloads(broker) == [[b"hello"], [b"again"]]


@simulated
async def test_the_event_loop_of_another_thread_is_refused(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)

        async def send_nowait() -> None:
            producer.send_nowait(b"x")

        for work in (
            send_nowait,
            lambda: producer.send(b"x"),
            lambda: producer.send(b"x", key="k"),
        ):
            error = in_thread(work)
            assert f"the producer of {TOPIC} belongs to another event loop" in str(error)
            assert "of thread 'MainThread', and was used in thread 'worker':" in str(error)
        assert producer.pending_count() == 0


@simulated
async def test_messages_are_taken_together_only_where_none_needs_a_look(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(broker, memory_limit_bytes=5_000) as client:
        producer = await producer_of(client, max_pending_messages=3)
        assert len(producer.submit_plain_run([b"1", b"2"])) == 2
        assert producer.submit_plain_run([b"3", b"4"]) == ()  # one has no room
        assert producer.submit_plain_run([bytes(6_000)]) == ()  # above the memory
        assert producer.submit_plain_run([bytes(6 << 20)]) == ()  # above what the broker takes
        assert producer.pending_count() == 2
        blocking = await producer_of(client, max_pending_messages=1, block_if_queue_full=True)
        assert len(blocking.submit_plain_run([b"1", b"2"])) == 2
        batching = await producer_of(client, batching_enabled=True)
        assert batching.submit_plain_run([bytes(6 << 20)]) == ()  # as above
        other = await producer_of(client, compression_type=CompressionType.ZLib)
        assert other.submit_plain_run([b"1", b"2"]) == ()
        await asyncio.sleep(0.1)
        assert payloads(broker) == [[b"1"], [b"2"], [b"1"], [b"2"]]
        producer.abandon()
        assert producer.submit_plain_run([b"1"]) == ()
        with pytest.raises(AlreadyClosedError):
            producer.send_nowait(b"1")


@simulated
async def test_statistics_count_what_happened(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await producer_of(client) as producer:
        await producer.send(b"12345")
        unconfirmed = producer.statistics()
        assert (unconfirmed.total_messages_sent, unconfirmed.total_bytes_sent) == (1, 5)
        assert unconfirmed.total_receipts_received == 1
        assert unconfirmed.pending_queue_size == 0
        assert producer.statistics_fields() == {"topic": TOPIC, "producer": "p"}
        assert producer.take_statistics(99.0).messages_sent == 1


@simulated
async def test_a_full_queue_refuses_at_once(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=1) as client:
        producer = await producer_of(client, max_pending_messages=2)
        producer.send_nowait(b"1")
        producer.send_nowait(b"2", key="k")
        for options in ({}, {"key": "k"}):
            with pytest.raises(ProducerQueueFullError, match="max_pending_messages is 2"):
                producer.send_nowait(b"3", **options)
        with pytest.raises(ProducerQueueFullError):
            await producer.send(b"3")
        assert client.context.memory_limit.current_bytes == 1 + 1 + 2


@simulated
async def test_a_blocking_producer_waits_for_room_in_order(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, max_pending_messages=1, block_if_queue_full=True)
        tasks = [spawn(producer.send(b"%d" % number)) for number in range(3)]
        await asyncio.sleep(1)
        assert payloads(broker) == [[b"0"]]
        for number in range(3):
            broker.end.push(receipt(sent(broker)[number].send, number))
            await asyncio.sleep(0.1)
        assert [task.result().entry_id for task in tasks] == [0, 1, 2]
        assert payloads(broker) == [[b"0"], [b"1"], [b"2"]]


@simulated
async def test_a_blocking_producer_admits_nowait_up_to_the_memory(broker: ScriptedBroker) -> None:
    async with simulated_client(
        broker, memory_limit_bytes=10, operation_timeout_seconds=1
    ) as client:
        producer = await producer_of(client, max_pending_messages=1, block_if_queue_full=True)
        for _ in range(2):
            producer.send_nowait(b"12345")
        with pytest.raises(MemoryBufferFullError, match="memory_limit_bytes=10"):
            producer.send_nowait(b"1")


@simulated
async def test_closing_ends_a_wait_for_memory_that_another_producer_holds(
    broker: ScriptedBroker,
) -> None:
    async with simulated_client(
        broker, memory_limit_bytes=5, operation_timeout_seconds=1
    ) as client:
        holder = await producer_of(client, send_timeout_millis=0)
        waiting = await producer_of(client, block_if_queue_full=True)
        held = holder.send_nowait(b"12345")
        send = spawn(waiting.send(b"6"))
        await asyncio.sleep(1)
        await waiting.close()
        with pytest.raises(AlreadyClosedError, match=TOPIC):
            await asyncio.wait_for(send, 1)
        assert client.context.memory_limit.current_bytes == 5
        assert waiting.pending_count() == 0
    assert isinstance(held.exception(), AlreadyClosedError)


@simulated
async def test_a_blocking_producer_waits_for_memory(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, memory_limit_bytes=5) as client:
        producer = await producer_of(client, block_if_queue_full=True)
        first = producer.send_nowait(b"12345")
        second = spawn(producer.send(b"67890"))
        await asyncio.sleep(0.1)
        assert payloads(broker) == [[b"12345"]]
        broker.script[BaseCommand.SEND] = confirming()
        broker.end.push(receipt(sent(broker)[0].send, 0))
        await first
        assert (await second).entry_id == 0
        assert client.context.memory_limit.current_bytes == 0


@pytest.mark.parametrize("room", [{"max_pending_messages": 1}, {}])
def test_a_cancelled_wait_for_room_leaves_nothing(room: dict[str, int]) -> None:
    @simulated
    async def run(broker: ScriptedBroker) -> None:
        async with simulated_client(broker, memory_limit_bytes=5) as client:
            producer = await producer_of(client, block_if_queue_full=True, **room)
            producer.send_nowait(b"12345")
            waiting = spawn(producer.send(b"x"))
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert producer.pending_count() == 1
            broker.script[BaseCommand.SEND] = confirming()
            broker.end.push(receipt(sent(broker)[0].send, 0))
            await producer.flush()
            await producer.send(b"y")
            assert producer.pending_count() == 0
            assert client.context.memory_limit.current_bytes == 0
        assert payloads(broker) == [[b"12345"], [b"y"]]

    run()


@simulated
async def test_a_message_too_large_is_refused_at_once(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(1000)
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await producer_of(client) as producer:
        for options in ({}, {"key": "k"}):
            with pytest.raises(MessageTooBigError, match="1001 bytes, the broker's limit is 1000"):
                producer.send_nowait(b"x" * 1001, **options)
        # With its metadata it is too large, too; that shows when it is encoded.
        with pytest.raises(MessageTooBigError, match=TOPIC):
            await producer.send(b"x" * 1000)
        assert client.context.memory_limit.current_bytes == 0
        await producer.send(b"x" * 900)


@simulated
async def test_a_producer_without_schema_takes_bytes_and_none(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client, await producer_of(client) as producer:
        with pytest.raises(SchemaSerializationError, match="takes bytes or None, not str"):
            producer.send_nowait("text")
        await producer.send(bytearray(b"a"))
        await producer.send_nowait(memoryview(b"b"))
        await producer.send(None, key="k")
    assert payloads(broker) == [[b"a"], [b"b"], [b""]]
    assert sent(broker)[2].entry.metadata.null_value


@simulated
async def test_interceptors_change_and_hear_of_messages(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    heard: list[object] = []

    class Shouting(ProducerInterceptor):
        def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage:
            return OutgoingMessage(message.content + b"!")

        def on_send_acknowledgement(
            self, producer: Any, message: Any, message_id: Any, error: Any
        ) -> None:
            heard.append((message.content, message_id, error))

        def close(self) -> None:
            heard.append("closed")

    async with (
        simulated_client(broker) as client,
        await producer_of(client, interceptors=[Shouting()]) as producer,
    ):
        await producer.send(b"a")
        await producer.send_nowait(b"b")
    assert payloads(broker) == [[b"a!"], [b"b!"]]
    assert heard == [(b"a!", MessageId(3, 0), None), (b"b!", MessageId(3, 1), None), "closed"]


class Pairing(ProducerInterceptor):
    """Notes what each message came to that it saw before."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.ended: dict[Any, Any] = {}

    def before_send(self, producer: Any, message: OutgoingMessage) -> OutgoingMessage:
        self.seen.append(message.content)
        return message

    def on_send_acknowledgement(
        self, producer: Any, message: Any, message_id: Any, error: Any
    ) -> None:
        assert message.content not in self.ended, "told twice"
        self.ended[message.content] = message_id if error is None else type(error)


@simulated
async def test_interceptors_hear_of_messages_that_are_refused(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.CONNECT] = connected_with(20_000)
    pairing = Pairing()
    async with simulated_client(broker) as client:
        producer = await producer_of(client, max_pending_messages=2, interceptors=[pairing])
        producer.send_nowait(b"a")
        producer.send_nowait(b"b", key="k")
        for key in (None, "k"):
            with pytest.raises(ProducerQueueFullError):
                producer.send_nowait(f"c{key}".encode(), key=key)
        with pytest.raises(MessageTooBigError):
            await producer.send(large := bytes(20_001))
        with pytest.raises(SchemaSerializationError):
            await producer.send("no bytes")
        refused = {
            b"cNone": ProducerQueueFullError,
            b"ck": ProducerQueueFullError,
            large: MessageTooBigError,
            "no bytes": SchemaSerializationError,
        }
        assert pairing.ended == refused
        await asyncio.sleep(0.1)
        for entry_id, each in enumerate(sent(broker)):
            broker.end.push(receipt(each.send, entry_id))
        await asyncio.sleep(0.1)
        assert pairing.ended == {**refused, b"a": MessageId(3, 0), b"b": MessageId(3, 1)}
        assert len(pairing.seen) == len(pairing.ended)


@simulated
async def test_interceptors_hear_of_messages_that_waited_for_room_in_vain(
    broker: ScriptedBroker,
) -> None:
    pairing = Pairing()
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client, max_pending_messages=1, block_if_queue_full=True, interceptors=[pairing]
        )
        producer.send_nowait(b"a")
        cancelled, waiting = spawn(producer.send(b"b")), spawn(producer.send(b"c"))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.sleep(0.1)
        assert pairing.ended == {b"b": ClientError}
        await producer.close()
        with pytest.raises(AlreadyClosedError):
            await waiting
        assert pairing.ended.keys() == {b"a", b"b", b"c"}
        assert pairing.ended[b"c"] is AlreadyClosedError


@simulated
async def test_flush_waits_for_all_that_was_accepted(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        results = [producer.send_nowait(b"%d" % number) for number in range(3)]
        flushing = spawn(producer.flush())
        await asyncio.sleep(0.1)
        assert payloads(broker) == [[b"0", b"1", b"2"]]
        assert not flushing.done()
        broker.end.push(receipt(sent(broker)[0].send, 7))
        await flushing
        assert [each.result() for each in results] == [
            MessageId(3, 7, batch_index=number, batch_size=3) for number in range(3)
        ]


@simulated
async def test_flush_raises_what_failed_meanwhile(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client, send_timeout_millis=500)
        producer.send_nowait(b"x")
        with pytest.raises(ClientTimeoutError, match=r"no receipt of sequence id 0 within 0\.5 s"):
            await producer.flush()


@simulated
async def test_close_sends_what_is_left_and_tells_the_broker(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.SEND] = confirming()
    async with simulated_client(broker) as client:
        producer = await producer_of(
            client, batching_enabled=True, batching_max_publish_delay_ms=60_000
        )
        result = producer.send_nowait(b"x")
        await producer.close()
        assert result.done()
        assert await result == MessageId(3, 0)
        assert broker.types()[-1] == "CLOSE_PRODUCER"
        for options in ({}, {"key": "k"}):
            with pytest.raises(AlreadyClosedError, match="the producer is closed"):
                producer.send_nowait(b"y", **options)
        with pytest.raises(AlreadyClosedError):
            await producer.send(b"y")
        await producer.close()
        assert not client.context.children


@simulated
async def test_close_ends_in_time_and_fails_what_has_no_receipt(broker: ScriptedBroker) -> None:
    async with simulated_client(broker, operation_timeout_seconds=5) as client:
        producer = await producer_of(client, max_pending_messages=1, block_if_queue_full=True)
        result = producer.send_nowait(b"x")
        waiting = spawn(producer.send(b"y"))
        await asyncio.sleep(0)
        begun = asyncio.get_running_loop().time()
        await producer.close()
        assert asyncio.get_running_loop().time() - begun <= 5
        with pytest.raises(AlreadyClosedError):
            await result
        with pytest.raises(AlreadyClosedError):
            await waiting
        assert client.context.memory_limit.current_bytes == 0


@simulated
async def test_closing_twice_at_once_and_cancelling_one_is_fine(broker: ScriptedBroker) -> None:
    async with simulated_client(broker) as client:
        producer = await producer_of(client)
        first, second = spawn(producer.close()), spawn(producer.close())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert broker.types().count("CLOSE_PRODUCER") == 1


@simulated
async def test_a_failure_nobody_waits_for_is_logged(broker: ScriptedBroker) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    outbox_logger = logging.getLogger("pulsar_py.client.producing.outbox")
    outbox_logger.addHandler(handler)
    try:
        async with simulated_client(broker) as client:
            producer = await producer_of(client, send_timeout_millis=100)
            producer.send_nowait(b"x")
            await asyncio.sleep(1)
    finally:
        outbox_logger.removeHandler(handler)
    (text,) = [each.getMessage() for each in records]
    assert "t: 1 messages failed, and their results were not awaited: " in text


@simulated
async def test_creating_fails_with_what_the_broker_says(broker: ScriptedBroker) -> None:
    broker.script[BaseCommand.PRODUCER] = lambda end, command: commands.error(
        command.producer.request_id, ServerError.ProducerFenced, "taken"
    )
    async with simulated_client(broker) as client:
        with pytest.raises(ProducerFencedError, match="taken"):
            await producer_of(client, access_mode=ProducerAccessMode.Exclusive)
        assert not client.context.children


@simulated
async def test_a_cancelled_creation_tells_the_broker(broker: ScriptedBroker) -> None:
    broker.script.pop(BaseCommand.PRODUCER)
    async with simulated_client(broker) as client:
        creating = spawn(producer_of(client))
        await asyncio.sleep(0.1)
        creating.cancel()
        await asyncio.wait([creating])
        await asyncio.sleep(0.1)
        assert broker.types()[-1] == "CLOSE_PRODUCER"
        assert not client.context.children


@simulated
async def test_dropping_the_client_fails_what_is_under_way(broker: ScriptedBroker) -> None:
    client = simulated_client(broker)
    producer = await producer_of(client)
    result = producer.send_nowait(b"x")
    client.shutdown()
    with pytest.raises(AlreadyClosedError):
        await result
    with pytest.raises(AlreadyClosedError):
        producer.send_nowait(b"y")
    await producer.close()
