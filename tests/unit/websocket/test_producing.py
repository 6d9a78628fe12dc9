"""What a producer on WebSocket gets for its frames."""

from __future__ import annotations

import json

from pulsar_py.websocket.connection import MAX_UNREAD_BYTES
from pulsar_py.websocket.producing import MAX_PENDING
from tests.unit.websocket.dialogs import closed, said, served, until

PRODUCER = "/v2/producer/persistent/public/default/"


async def test_frames_are_published_in_order_and_answered_with_their_context() -> None:
    count = 2 * MAX_PENDING  # more than may be under way
    async with served() as broker:
        consumer = await broker.client.subscribe("t", "s")
        producer = await broker.open(f"{PRODUCER}t?batchingEnabled=true")
        for number in range(count):
            producer.send(json.dumps({"payload": "YQ==", "key": str(number), "context": number}))
        answers = [await said(producer) for _ in range(count)]
        assert [each["context"] for each in answers] == [str(each) for each in range(count)]
        assert {each["result"] for each in answers} == {"ok"}
        keys = [(await consumer.receive(20_000)).key() for _ in range(count)]
        assert keys == [str(each) for each in range(count)]


async def test_errors_of_frames_leave_the_connection_and_a_null_property_ends_it() -> None:
    async with served() as broker:
        producer = await broker.open(f"{PRODUCER}t")
        for text, number in (("{", 3), ('{"payload": "_"}', 7)):
            producer.send(text)
            assert (await said(producer))["result"] == f"send-error:{number}"
        producer.send('{"payload": "YQ=="}')
        assert (await said(producer))["result"] == "ok"
        producer.send('{"payload": "YQ==", "properties": {"x": null}}')
        assert (await closed(producer))[0] == 1011


async def test_what_the_broker_refuses_is_error_8() -> None:
    async with served() as broker:
        producer = await broker.open(f"{PRODUCER}t")
        producer.send('{"payload": "YQ=="}')
        assert (await said(producer))["result"] == "ok"
        topic = broker.topic("t")
        await topic.terminate()
        producer.send('{"payload": "YQ==", "context": "c"}')
        answer = await said(producer)
        assert (answer["result"], answer["context"]) == ("send-error:8", "c")


async def test_a_producer_that_reads_no_answers_costs_bounded_memory() -> None:
    size, count = 200_000, 100
    assert size * count > 4 * MAX_UNREAD_BYTES
    async with served() as broker:
        producer = await broker.open(f"{PRODUCER}t")
        producer.writer.transport.pause_reading()
        frame = json.dumps({"payload": "YQ==", "context": "c" * size})
        for _ in range(count):
            producer.send(frame)
        published: list[int] = []

        def is_standing_still() -> bool:
            published.append(broker.topic("t").stats().messages_in_count)
            return len(published) > 40 and published[-1] == published[-40] > 0

        await until(is_standing_still)
        # Beyond the limit: what sockets hold, and frames that were taken with one read.
        assert published[-1] * size < 3 * MAX_UNREAD_BYTES
        producer.writer.transport.resume_reading()
        assert [(await said(producer))["result"] for _ in range(count)] == ["ok"] * count
