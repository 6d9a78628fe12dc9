"""What ends or moves a subscription sends nothing to anybody, and leaves its places free.

Whole brokers, clients that speak the protocol over connections of their own, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from tests.integration.transcripts.rest import call
from tests.simulated_client import World, simulated
from tests.wire_client import Received, WireClient, encode, stored_entry

TOPIC = "persistent://public/default/ends"
REST = "/admin/v2/persistent/public/default/ends"
SUBSCRIPTION_REST = f"{REST}/subscription/sub"
ENTRIES_COUNT = 60
KEYS_COUNT = 12
MAX_ID = 2**63 - 1
"""Ledger and entry of the position behind everything."""
LATENCY_SECONDS = 0.001
"""Of the network of `simulated`, one way."""

EXCLUSIVE = CommandSubscribe.Exclusive
SHARED = CommandSubscribe.Shared
FAILOVER = CommandSubscribe.Failover
KEY_SHARED = CommandSubscribe.Key_Shared


@dataclass
class Consumer:
    """One consumer on a connection of its own, and what came since the last look."""

    client: WireClient
    consumer_id: int
    ids: list[tuple[int, int]] = field(default_factory=list)

    def on_message(self, received: Received) -> None:
        message_id = received.command.message.message_id
        self.ids.append((message_id.ledgerId, message_id.entryId))

    def was_closed(self) -> bool:
        """Whether CLOSE_CONSUMER came, once at most."""
        closed = [
            each.command.close_consumer.consumer_id
            for each in self.client.pushed._queue
            if each.command.type == BaseCommand.CLOSE_CONSUMER
        ]
        assert closed in ([], [self.consumer_id])
        return bool(closed)


@dataclass
class Scene:
    """A topic with unacknowledged entries at the consumers of one subscription."""

    world: World
    consumers: list[Consumer]
    published: list[tuple[int, int]]

    async def rest(self, method: str, path: str, body: object = None) -> None:
        status, answer = await call("broker", 8080, method, path, body)
        assert status == 204, answer

    async def seek(self, ledger_id: int, entry_id: int) -> None:
        """SEEK by the consumer that came last."""
        consumer = self.consumers[-1]
        answer = await consumer.client.request(
            seek_command(consumer.client, consumer.consumer_id, ledger_id, entry_id),
            consumer.client._request_id,
        )
        assert answer.type == BaseCommand.SUCCESS


def seek_command(
    client: WireClient, consumer_id: int, ledger_id: int, entry_id: int
) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.SEEK)
    command.seek.consumer_id = consumer_id
    command.seek.request_id = client.next_request_id()
    command.seek.message_id.ledgerId = ledger_id
    command.seek.message_id.entryId = entry_id
    return command


def close_command(client: WireClient, consumer_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
    command.close_consumer.consumer_id = consumer_id
    command.close_consumer.request_id = client.next_request_id()
    return command


def subscribe_command(
    client: WireClient,
    consumer_id: int,
    kind: CommandSubscribe.SubType.ValueType = EXCLUSIVE,
    *,
    is_durable: bool = True,
) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    command.subscribe.topic = TOPIC
    command.subscribe.subscription = "sub"
    command.subscribe.subType = kind
    command.subscribe.consumer_id = consumer_id
    command.subscribe.durable = is_durable
    command.subscribe.initialPosition = CommandSubscribe.Earliest
    command.subscribe.request_id = client.next_request_id()
    return command


_clients: list[WireClient] = []
"""Of the world that runs now."""


async def connect() -> WireClient:
    client = await WireClient.connect("broker", 6650)
    _clients.append(client)
    await client.lookup(TOPIC)
    return client


def in_world(work: Callable[[World], Awaitable[None]], **config: object) -> None:
    """Run in a fresh world; its connections end with it."""

    async def run(world: World) -> None:
        try:
            await work(world)
        finally:
            while _clients:
                await _clients.pop().close()

    simulated(run, **config)


async def publish(client: WireClient) -> list[tuple[int, int]]:
    """Entries of several keys; their ids."""
    receipts: asyncio.Queue[tuple[int, int]] = asyncio.Queue()

    def on_receipt(command: BaseCommand) -> None:
        message_id = command.send_receipt.message_id
        receipts.put_nowait((message_id.ledgerId, message_id.entryId))

    client.on_receipt = on_receipt
    await client.create_producer(TOPIC)
    for number in range(ENTRIES_COUNT):
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id = 1
        command.send.sequence_id = number
        key = f"k{number % KEYS_COUNT}"
        client.writer.write(encode(command, stored_entry(b"m", number, partition_key=key)))
    return [await receipts.get() for _ in range(ENTRIES_COUNT)]


async def unacknowledged(world: World, kind: CommandSubscribe.SubType.ValueType) -> Scene:
    """Three consumers (one on Exclusive) that hold all entries of the topic."""
    publisher = await connect()
    published = await publish(publisher)
    consumers = []
    for consumer_id in range(1, 2 if kind == EXCLUSIVE else 4):
        client = await connect()
        answer = await client.subscribe(TOPIC, "sub", kind, consumer_id)
        assert answer.type == BaseCommand.SUCCESS
        consumer = Consumer(client, consumer_id)
        client.on_message = consumer.on_message
        consumers.append(consumer)
    for permits in (ENTRIES_COUNT // len(consumers), 1000):  # so that each of Shared gets some
        for consumer in consumers:
            consumer.client.flow(permits, consumer.consumer_id)
        await world.clock.sleep(5)
    assert sorted(each for consumer in consumers for each in consumer.ids) == published
    if kind in (SHARED, KEY_SHARED):
        assert all(each.ids for each in consumers)
    for consumer in consumers:
        consumer.ids.clear()
    return Scene(world, consumers, published)


async def unload(scene: Scene) -> None:
    await scene.rest("PUT", f"{REST}/unload")


async def delete(scene: Scene) -> None:
    await scene.rest("DELETE", f"{REST}?force=true")


async def delete_subscription(scene: Scene) -> None:
    await scene.rest("DELETE", f"{SUBSCRIPTION_REST}?force=true")


async def unsubscribe(scene: Scene) -> None:
    consumer = scene.consumers[0]
    command = BaseCommand(type=BaseCommand.UNSUBSCRIBE)
    command.unsubscribe.consumer_id = consumer.consumer_id
    command.unsubscribe.force = True
    command.unsubscribe.request_id = consumer.client.next_request_id()
    answer = await consumer.client.request(command, consumer.client._request_id)
    assert answer.type == BaseCommand.SUCCESS


async def seek_to_the_end(scene: Scene) -> None:
    await scene.seek(MAX_ID, MAX_ID)


async def reset_to_the_end(scene: Scene) -> None:
    body = {"ledgerId": MAX_ID, "entryId": MAX_ID, "partitionIndex": -1}
    await scene.rest("POST", f"{SUBSCRIPTION_REST}/resetcursor", body)


async def clear(scene: Scene) -> None:
    await scene.rest("POST", f"{SUBSCRIPTION_REST}/skip_all")


async def stop(scene: Scene) -> None:
    await scene.world.broker.stop()


def everybody(count: int) -> list[bool]:
    return [True] * count


def nobody(count: int) -> list[bool]:
    return [False] * count


def all_but_who_asked(count: int) -> list[bool]:
    return [False] + [True] * (count - 1)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
@pytest.mark.parametrize(
    ("end", "who_is_closed"),
    [
        (unload, everybody),
        (delete, everybody),
        (delete_subscription, everybody),
        (unsubscribe, all_but_who_asked),
        (seek_to_the_end, everybody),
        (reset_to_the_end, everybody),
        (clear, nobody),
        (stop, everybody),
    ],
)
def test_nothing_is_sent_to_anybody_once_the_end_has_begun(
    kind: CommandSubscribe.SubType.ValueType,
    end: Callable[[Scene], Awaitable[None]],
    who_is_closed: Callable[[int], list[bool]],
) -> None:
    async def work(world: World) -> None:
        scene = await unacknowledged(world, kind)
        await end(scene)
        await world.clock.sleep(5)
        assert [each.ids for each in scene.consumers] == [[] for _ in scene.consumers]
        expected = who_is_closed(len(scene.consumers))
        if kind == FAILOVER and end in (seek_to_the_end, reset_to_the_end):
            expected = [True, False, False]  # the active one
        assert [each.was_closed() for each in scene.consumers] == expected

    in_world(work, activeConsumerFailoverDelayTimeMillis=0)


@pytest.mark.parametrize("delay_millis", [0, 1000])
def test_seek_on_failover_gives_the_next_one_what_stands_behind_the_new_position(
    delay_millis: int,
) -> None:
    async def work(world: World) -> None:
        scene = await unacknowledged(world, FAILOVER)
        await scene.seek(*scene.published[20])
        await world.clock.sleep(5)
        assert [each.was_closed() for each in scene.consumers] == [True, False, False]
        assert [each.ids for each in scene.consumers] == [[], scene.published[20:], []]

    in_world(work, activeConsumerFailoverDelayTimeMillis=delay_millis)


@pytest.mark.parametrize("kind", [SHARED, FAILOVER, KEY_SHARED])
def test_a_connection_that_ends_leaves_its_entries_to_others_once(
    kind: CommandSubscribe.SubType.ValueType,
) -> None:
    """Consumers on a connection that is gone are not tried one after the other."""

    async def work(world: World) -> None:
        publisher, leaving, staying = await connect(), await connect(), await connect()
        published = await publish(publisher)
        consumers = []
        for consumer_id, client in enumerate([leaving, leaving, leaving, staying], start=1):
            consumer = Consumer(client, consumer_id)
            client.on_message = consumer.on_message
            await client.request(subscribe_command(client, consumer_id, kind), client._request_id)
            consumers.append(consumer)
        for consumer in consumers[:3]:
            consumer.client.flow(1000, consumer.consumer_id)
        await world.clock.sleep(5)
        staying.flow(1000, 4)
        await world.clock.sleep(5)
        before = messages_out(world)
        assert before == ENTRIES_COUNT or kind == KEY_SHARED
        held_before = len(consumers[3].ids)
        await leaving.close()
        await world.clock.sleep(5)
        assert sorted(consumers[3].ids) == published
        assert messages_out(world) == before + ENTRIES_COUNT - held_before

    in_world(work, activeConsumerFailoverDelayTimeMillis=0)


def messages_out(world: World) -> int:
    """Messages sent to all consumers that the subscription ever had."""
    (topic,) = world.topics.topics.values()
    return topic.stats().subscriptions["sub"].messages_out_count


# Coming back.


@pytest.mark.parametrize("is_durable", [True, False])
def test_subscribe_seek_close_ten_times_in_one_write_each(is_durable: bool) -> None:
    """The official C++ client does that when nobody waits for the seek."""

    async def work(world: World) -> None:
        publisher, client = await connect(), await connect()
        published = await publish(publisher)
        consumer = Consumer(client, 0)
        client.on_message = consumer.on_message
        for consumer_id in range(10):
            consumer.consumer_id = consumer_id
            commands = [
                subscribe_command(client, consumer_id, is_durable=is_durable),
                seek_command(client, consumer_id, *published[consumer_id]),
                close_command(client, consumer_id),
            ]
            answer = await client.request(commands[0], commands[0].subscribe.request_id)
            assert answer.type == BaseCommand.SUCCESS, answer
            client.writer.write(b"".join(map(encode, commands[1:])))
        answer = await client.subscribe(TOPIC, "sub", consumer_id=10, durable=is_durable)
        assert answer.type == BaseCommand.SUCCESS, answer
        client.flow(1000, 10)
        await world.clock.sleep(5)
        assert consumer.ids == (published[9:] if is_durable else published)

    in_world(work)


def test_subscribe_waits_for_a_seek_under_way_on_another_connection() -> None:
    async def work(world: World) -> None:
        scene = await unacknowledged(world, EXCLUSIVE)
        newcomer = await connect()
        consumer = Consumer(newcomer, 2)
        newcomer.on_message = consumer.on_message
        first = scene.consumers[0].client
        seek = seek_command(first, 1, *scene.published[30])
        subscribe = subscribe_command(newcomer, 2)
        first.writer.write(encode(seek))
        answer = await newcomer.request(subscribe, subscribe.subscribe.request_id)
        assert answer.type == BaseCommand.SUCCESS, answer
        newcomer.flow(1000, 2)
        await world.clock.sleep(5)
        assert consumer.ids == scene.published[30:]

    in_world(work)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED])
def test_close_and_subscribe_in_one_write_find_the_place_free(
    kind: CommandSubscribe.SubType.ValueType,
) -> None:
    async def work(world: World) -> None:
        client = await connect()
        for consumer_id in range(10):
            await client.subscribe(TOPIC, "sub", EXCLUSIVE, consumer_id)
            close = close_command(client, consumer_id)
            subscribe = subscribe_command(client, 100 + consumer_id, kind)
            client.writer.write(encode(close))
            answer = await client.request(subscribe, subscribe.subscribe.request_id)
            assert answer.type == BaseCommand.SUCCESS, answer
            close = close_command(client, 100 + consumer_id)
            await client.request(close, close.close_consumer.request_id)

    in_world(work)


def test_an_answered_close_leaves_the_place_free_for_another_connection() -> None:
    async def work(world: World) -> None:
        one, other = await connect(), await connect()
        for consumer_id in range(10):
            for client in (one, other):
                answer = await client.subscribe(TOPIC, "sub", EXCLUSIVE, consumer_id)
                assert answer.type == BaseCommand.SUCCESS, answer
                close = close_command(client, consumer_id)
                await client.request(close, close.close_consumer.request_id)

    in_world(work)


@pytest.mark.parametrize("is_same_connection", [True, False])
def test_a_close_that_is_answered_while_the_holder_is_probed_leaves_the_place_free(
    is_same_connection: bool,
) -> None:
    """The newcomer came first, was held up by the probe of the holder, and the holder left."""

    async def work(world: World) -> None:
        holder = await connect()
        newcomer = holder if is_same_connection else await connect()
        await holder.subscribe(TOPIC, "sub", EXCLUSIVE, 1)
        subscribe = subscribe_command(newcomer, 2)
        close = close_command(holder, 1)
        subscribing = asyncio.ensure_future(
            newcomer.request(subscribe, subscribe.subscribe.request_id)
        )
        # It has arrived, and the PING to the holder is under way; its PONG would be too late.
        await world.clock.sleep(1.5 * LATENCY_SECONDS)
        assert not subscribing.done()
        closed = await holder.request(close, close.close_consumer.request_id)
        subscribed = await subscribing
        assert closed.type == BaseCommand.SUCCESS, closed
        assert subscribed.type == BaseCommand.SUCCESS, subscribed

    in_world(work)
