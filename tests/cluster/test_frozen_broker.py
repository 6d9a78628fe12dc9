"""A broker that was stopped for longer than its session wakes to find that another one serves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.paths import MANAGED_LEDGERS
from pulsar_py.metadata.store import MetadataStore, Versioned
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandLookupTopicResponse
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.our_broker import OurBroker
from tests.wire_client import Received, WireClient, body_of, send_frame

pytestmark = pytest.mark.slow  # seconds of real time; `make test-cluster` runs them

SETTINGS = {"managedLedgerDefaultMarkDeleteRateLimit": 10.0}
SUBSCRIPTION = "s"


async def connect(service_url: str) -> WireClient:
    host, _, port = service_url.removeprefix("pulsar://").rpartition(":")
    return await WireClient.connect(host, int(port))


def lookup(topic: str, request_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic
    command.lookupTopic.request_id = request_id
    command.lookupTopic.authoritative = True  # who is asked takes it, whoever leads
    return command


async def owner_of(client: WireClient, topic: str) -> str:
    """Who serves a topic; nobody is known while it is empty."""
    request_id = client.next_request_id()
    answer = await client.request(lookup(topic, request_id), request_id)
    return answer.lookupTopicResponse.brokerServiceUrl


async def received(messages: asyncio.Queue[Received], count: int) -> list[Received]:
    async with asyncio.timeout(30):
        return [await messages.get() for _ in range(count)]


async def send(client: WireClient, numbers: range) -> None:
    receipts: asyncio.Queue[BaseCommand] = asyncio.Queue()
    client.on_receipt = receipts.put_nowait
    for number in numbers:
        client.writer.write(send_frame(1, number, b"%d" % number))
    async with asyncio.timeout(30):
        for _ in numbers:
            await receipts.get()


async def everything_below(store: MetadataStore, path: str) -> dict[str, Versioned | None]:
    found = {path: await store.get(path)}
    for name in await store.children(path):
        found |= await everything_below(store, f"{path}/{name}")
    return found


class Taken:
    """What a woken broker says to a client that has asked it while it slept."""

    def __init__(self, client: WireClient) -> None:
        self.receipts: list[BaseCommand] = []
        self.messages: list[Received] = []
        client.on_receipt = self.receipts.append
        client.on_message = self.messages.append


async def take_over(other: OurBroker, topic: str) -> WireClient:
    """A client of the other broker, once that one serves the topic."""
    client = await connect(other.service_url)
    async with asyncio.timeout(60):
        while await owner_of(client, topic) != other.service_url:
            await asyncio.sleep(0.2)
    return client


async def test_a_woken_broker_says_nothing_that_is_not_true_any_more(
    bookkeeper: BookKeeperCluster, tmp_path: Path
) -> None:
    topic = f"persistent://public/default/{tmp_path.name}"
    url = bookkeeper.zookeeper.url
    store = await ZooKeeperMetadataStore.open(ZooKeeperAddress.parse(url), SystemClock())
    sleeper = OurBroker(tmp_path / "sleeper", url, settings=SETTINGS)
    other = OurBroker(tmp_path / "other", url, settings=SETTINGS)
    try:
        await asyncio.to_thread(sleeper.start)
        await asyncio.to_thread(other.start)
        client = await connect(sleeper.service_url)
        assert await owner_of(client, topic) == sleeper.service_url
        await client.create_producer(topic)
        await client.subscribe(topic, SUBSCRIPTION)
        await send(client, range(10))

        sleeper.freeze()
        at_other = await take_over(other, topic)
        messages: asyncio.Queue[Received] = asyncio.Queue()
        at_other.on_message = messages.put_nowait
        await at_other.create_producer(topic)
        await at_other.subscribe(topic, SUBSCRIPTION)
        await send(at_other, range(10, 15))
        at_other.flow(100)
        delivered = await received(messages, 15)
        assert [body_of(each.headers_and_payload) for each in delivered] == [
            b"%d" % number for number in range(15)
        ]
        before = await everything_below(store, MANAGED_LEDGERS)

        # All of this waits in the sleeping broker's socket: its first turn finds it.
        taken = Taken(client)
        first = delivered[0].command.message.message_id
        client.writer.write(send_frame(1, 10, b"lost?"))
        client.acknowledge([(first.ledgerId, first.entryId)])
        request_id = client.next_request_id()
        answer = asyncio.ensure_future(client.request(lookup(topic, request_id), request_id))
        producing = asyncio.ensure_future(client.create_producer(f"{topic}-new", 2))
        client.flow(100)
        await client.writer.drain()
        sleeper.thaw()

        said = (await answer).lookupTopicResponse
        assert said.response == CommandLookupTopicResponse.Failed or (
            said.brokerServiceUrl == other.service_url
        )
        assert (await producing).type == BaseCommand.ERROR
        async with asyncio.timeout(30):
            while not {BaseCommand.CLOSE_PRODUCER, BaseCommand.CLOSE_CONSUMER} & {
                (await client.pushed.get()).command.type
            }:
                pass
        while await owner_of(client, topic) != other.service_url:
            await asyncio.sleep(0.2)
        assert taken.receipts == []
        assert await everything_below(store, MANAGED_LEDGERS) == before
        await send(at_other, range(15, 20))
        later = await received(messages, 5)
        assert body_of(later[-1].headers_and_payload) == b"19"
        assert taken.messages == []
        await client.close()
        await at_other.close()
    finally:
        sleeper.kill()
        other.kill()
        await store.close()
