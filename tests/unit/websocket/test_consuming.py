"""How many messages a consumer or reader on WebSocket is sent, and what its frames do."""

from __future__ import annotations

import asyncio
import base64
import json

from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.message_id import MessageId
from pulsar_py.websocket.consuming import SendWindow
from tests.unit.websocket.dialogs import Served, closed, said, served, until
from tests.websocket_client import WebSocketClient

TOPIC = "persistent/public/default/t"


async def test_a_window_lets_through_as_many_as_there_is_room_for() -> None:
    window = SendWindow(1)
    await window.take()
    tasks = TaskOwner("test")
    waiting = tasks.spawn(window.take(), "take")
    await asyncio.sleep(0)
    assert not waiting.done()
    window.open(2)
    await asyncio.wait_for(waiting, 30)
    assert window.room_count == 1


async def publish(broker: Served, count: int, topic: str = "t", *, size: int = 1) -> None:
    async with await broker.client.create_producer(topic) as producer:
        for number in range(count):
            await producer.send(str(number).encode() * size)


async def ended(client: WebSocketClient) -> bool:
    """The answer to `isEndOfTopic`, behind which nothing else is under way."""
    client.send('{"type": "isEndOfTopic"}')
    return bool((await said(client))["endOfTopic"])


async def test_acknowledgements_of_both_kinds_make_room() -> None:
    async with served() as broker:
        consumer = await broker.open(f"/v2/consumer/{TOPIC}/s?receiverQueueSize=2")
        await publish(broker, 4)
        first, second = await said(consumer), await said(consumer)
        assert not await ended(consumer)
        consumer.send(json.dumps({"messageId": first["messageId"]}))
        assert base64.b64decode((await said(consumer))["payload"]) == b"2"
        frame = {"type": "negativeAcknowledge", "messageId": second["messageId"]}
        consumer.send(json.dumps(frame))
        assert base64.b64decode((await said(consumer))["payload"]) == b"3"


async def test_in_pull_mode_only_permits_make_room() -> None:
    async with served() as broker:
        consumer = await broker.open(f"/v2/consumer/{TOPIC}/s?pullMode=true")
        await publish(broker, 3)
        consumer.send('{"type": "permit", "permitMessages": -3}')
        consumer.send('{"type": "permit", "permitMessages": 2}')
        first, _ = await said(consumer), await said(consumer)
        consumer.send(json.dumps({"messageId": first["messageId"]}))
        assert not await ended(consumer)


async def test_a_consumer_of_several_topics_acknowledges_on_the_right_one() -> None:
    async with served() as broker:
        await publish(broker, 1, "a")
        await publish(broker, 1, "b")
        names = "persistent://public/default/a,persistent://public/default/b"
        query = f"topics={names}&subscriptionInitialPosition=Earliest"
        consumer = await broker.open(f"/v3/consumer/s?{query}")
        for _ in range(2):
            consumer.send(json.dumps({"messageId": (await said(consumer))["messageId"]}))
        for name in "ab":
            topic = broker.topic(name)
            subscription = topic.subscriptions["s"]
            await until(lambda each=subscription: each.cursor.backlog_count() == 0)
        unknown = base64.b64encode(MessageId(1 << 40, 1).serialize()).decode()
        consumer.send(json.dumps({"messageId": unknown}))
        assert not await ended(consumer)


async def test_a_command_without_an_id_closes_a_consumer_and_not_a_reader() -> None:
    async with served() as broker:
        consumer = await broker.open(f"/v2/consumer/{TOPIC}/s")
        consumer.send('{"type": "dance"}')
        assert (await closed(consumer))[0] == 1011
        reader = await broker.open(f"/v2/reader/{TOPIC}?messageId=earliest&receiverQueueSize=1")
        await publish(broker, 2)
        assert base64.b64decode((await said(reader))["payload"]) == b"0"
        reader.send("not json")
        reader.send("null")
        assert not await ended(reader)
        reader.send('{"type": "dance"}')
        assert base64.b64decode((await said(reader))["payload"]) == b"1"


async def test_a_reader_that_does_not_read_costs_bounded_memory() -> None:
    size, count = 1_000_000, 40
    async with served() as broker:
        await publish(broker, count, size=size)
        reader = await broker.open(f"/v2/reader/{TOPIC}?messageId=earliest")
        reader.writer.transport.pause_reading()
        topic = broker.topic("t")
        (subscription,) = topic.subscriptions.values()
        (consumer,) = subscription.consumers
        sent: list[int] = []

        def is_standing_still() -> bool:
            sent.append(consumer.messages_out_count)
            return len(sent) > 40 and sent[-1] == sent[-40] > 0

        await until(is_standing_still)
        # In its socket, its transport, our client and the broker's output: each holds a few.
        assert sent[-1] < count / 2
        reader.writer.transport.resume_reading()
        for number in range(count):
            assert base64.b64decode((await said(reader))["payload"])[:1] == str(number)[:1].encode()
            reader.send('{"messageId": ""}')
