"""Expiry, retention and backlog quotas, set over REST for a namespace or a topic.

Whole brokers, a client of the protocol, in virtual time: what happens, when, and with which error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from tests.integration.transcripts.rest import call
from tests.simulated_client import World, simulated
from tests.wire_client import WireClient, encode, stored_entry

TOPIC = "persistent://public/default/bounded"
REST = "/admin/v2/persistent/public/default/bounded"
PLACES = {"namespace": "/admin/v2/namespaces/public/default", "topic": REST}
CHECK_SECONDS = 60
START_MILLIS = 1_700_000_000_000  # of the virtual clock

HOLD, EXCEPTION, EVICTION = (
    "producer_request_hold",
    "producer_exception",
    "consumer_backlog_eviction",
)
REFUSALS = {
    HOLD: ServerError.ProducerBlockedQuotaExceededError,
    EXCEPTION: ServerError.ProducerBlockedQuotaExceededException,
}


class Scene:
    """One topic with a subscription that nobody reads, and a connection."""

    def __init__(self, world: World, client: WireClient) -> None:
        self.world = world
        self.client = client
        self.receipts: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self._sequence_id = 0
        client.on_receipt = lambda command: self.receipts.put_nowait(
            (command.send_receipt.message_id.ledgerId, command.send_receipt.message_id.entryId)
        )

    @property
    def now_seconds(self) -> float:
        """Seconds since the broker's start."""
        return (self.world.clock.wall_time_millis() - START_MILLIS) / 1000

    async def until(self, seconds: float) -> None:
        """Wait for a moment after the broker's start."""
        await self.world.clock.sleep(seconds - self.now_seconds)

    async def rest(self, method: str, path: str, body: object = None) -> object:
        status, answer = await call("broker", 8080, method, path, body)
        assert status < 300, (path, status, answer)
        return answer

    async def set_ttl(self, place: str, seconds: int) -> None:
        if place == "topic":
            await self.rest("POST", f"{REST}/messageTTL?messageTTL={seconds}")
        else:
            await self.rest("POST", f"{PLACES[place]}/messageTTL", seconds)

    async def publish(self, count: int, size_bytes: int = 100) -> list[tuple[int, int]]:
        for _ in range(count):
            self._sequence_id += 1
            command = BaseCommand(type=BaseCommand.SEND)
            command.send.producer_id, command.send.sequence_id = 1, self._sequence_id
            stored = stored_entry(b"x" * size_bytes, self._sequence_id)
            self.client.writer.write(encode(command, stored))
        return [await self.receipts.get() for _ in range(count)]

    async def backlog(self) -> int:
        stats = await self.rest("GET", f"{REST}/stats")
        assert isinstance(stats, dict)
        return int(stats["subscriptions"]["s"]["msgBacklog"])

    async def stored(self) -> tuple[int, int]:
        """Ledgers with entries, and bytes."""
        found = await self.rest("GET", f"{REST}/internalStats")
        stats = await self.rest("GET", f"{REST}/stats")
        assert isinstance(found, dict)
        assert isinstance(stats, dict)
        filled = sum(each["entries"] > 0 for each in found["ledgers"])
        return filled, int(stats["storageSize"])

    def was_closed(self) -> bool:
        """Whether the producer was told to go."""
        kinds = [each.command.type for each in self.client.pushed._queue]
        return BaseCommand.CLOSE_PRODUCER in kinds


def in_scene(work: Callable[[Scene], Awaitable[None]], **config: object) -> None:
    async def run(world: World) -> None:
        client = await WireClient.connect("broker", 6650)
        try:
            scene = Scene(world, client)
            await client.lookup(TOPIC)
            await client.subscribe(TOPIC, "s")
            command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
            command.close_consumer.consumer_id = 1
            command.close_consumer.request_id = request_id = client.next_request_id()
            await client.request(command, request_id)
            assert (await client.create_producer(TOPIC)).type == BaseCommand.PRODUCER_SUCCESS
            await work(scene)
        finally:
            await client.close()

    options = {
        "messageExpiryCheckIntervalInMinutes": 1,
        "backlogQuotaCheckIntervalInSeconds": CHECK_SECONDS,
        "retentionCheckIntervalInSeconds": 10,
        "preciseTimeBasedBacklogQuotaCheck": True,
    }
    simulated(run, **options | config)


@pytest.mark.parametrize("place", PLACES)
def test_messages_expire_at_the_check_after_their_time(place: str) -> None:
    async def work(scene: Scene) -> None:
        await scene.set_ttl(place, 40)
        await scene.publish(3)
        await scene.until(59)
        assert await scene.backlog() == 3
        await scene.until(61)
        assert await scene.backlog() == 0
        await scene.publish(2)  # as old as the first: their time counts, not their arrival
        await scene.until(119)
        assert await scene.backlog() == 2
        await scene.set_ttl(place, 3600)
        await scene.until(121)
        assert await scene.backlog() == 2
        await scene.set_ttl(place, 150)
        await scene.until(179)
        assert await scene.backlog() == 2
        await scene.until(181)
        assert await scene.backlog() == 0

    in_scene(work)


@pytest.mark.parametrize("place", PLACES)
def test_retention_keeps_what_is_acknowledged_for_its_time(place: str) -> None:
    async def work(scene: Scene) -> None:
        limits = {"retentionTimeInMinutes": 3, "retentionSizeInMB": -1}
        await scene.rest("POST", f"{PLACES[place]}/retention", limits)
        await scene.publish(7)
        await scene.rest("POST", f"{REST}/subscription/s/skip_all")
        assert await scene.backlog() == 0
        await scene.until(175)
        assert (await scene.stored())[0] >= 3
        await scene.until(200)
        assert (await scene.stored())[0] <= 1
        await scene.publish(7)
        await scene.until(500)
        assert (await scene.stored())[0] >= 3, "what nobody acknowledged stays"

    in_scene(work, managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)


@pytest.mark.parametrize("place", PLACES)
def test_retention_keeps_so_many_bytes(place: str) -> None:
    async def work(scene: Scene) -> None:
        limits = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 1}
        await scene.rest("POST", f"{PLACES[place]}/retention", limits)
        await scene.publish(30, 100_000)
        await scene.rest("POST", f"{REST}/subscription/s/skip_all")
        await scene.until(30)
        kept = (await scene.stored())[1]
        assert 1_000_000 <= kept <= 1_400_000
        await scene.rest("DELETE", f"{PLACES[place]}/retention")
        await scene.until(60)
        assert (await scene.stored())[1] <= 200_000

    in_scene(work, managedLedgerMaxEntriesPerLedger=2, managedLedgerMinLedgerRolloverTimeMinutes=0)


async def refused(scene: Scene, policy: str) -> None:
    """PRODUCER gets the policy's error, with Pulsar's text."""
    answer = await scene.client.create_producer(TOPIC, 2)
    assert answer.type == BaseCommand.ERROR
    assert answer.error.error == REFUSALS[policy]
    text = f"Cannot create producer on topic with backlog quota exceeded: {TOPIC}"
    assert text in answer.error.message


async def check_blocked(scene: Scene, policy: str) -> None:
    """Producers are refused at once, connected ones go at the next check, until there is room."""
    await refused(scene, policy)
    assert not scene.was_closed()
    checked = (scene.now_seconds // CHECK_SECONDS + 1) * CHECK_SECONDS
    await scene.until(checked - 1)
    assert not scene.was_closed()
    await scene.until(checked + 1)
    assert scene.was_closed()
    await refused(scene, policy)
    await scene.rest("POST", f"{REST}/subscription/s/skip_all")
    answer = await scene.client.create_producer(TOPIC, 2)
    assert answer.type == BaseCommand.PRODUCER_SUCCESS


@pytest.mark.parametrize("policy", [HOLD, EXCEPTION, EVICTION])
@pytest.mark.parametrize("place", PLACES)
def test_each_policy_of_a_quota_by_size(place: str, policy: str) -> None:
    async def work(scene: Scene) -> None:
        quota = {"limitSize": 20_000, "limitTime": -1, "policy": policy}
        path = f"{PLACES[place]}/backlogQuota?backlogQuotaType=destination_storage"
        await scene.rest("POST", path, quota)
        await scene.publish(10, 1000)
        await scene.until(CHECK_SECONDS + 1)
        assert (await scene.backlog(), scene.was_closed()) == (10, False)
        await scene.publish(30, 1000)
        if policy != EVICTION:
            assert await scene.backlog() == 40
            await check_blocked(scene, policy)
            return
        answer = await scene.client.create_producer(TOPIC, 2)
        assert answer.type == BaseCommand.PRODUCER_SUCCESS
        await scene.until(2 * CHECK_SECONDS - 1)
        assert await scene.backlog() == 40
        await scene.until(2 * CHECK_SECONDS + 1)
        assert 15 <= await scene.backlog() <= 18  # nine tenths of the limit
        assert not scene.was_closed()

    in_scene(work)


@pytest.mark.parametrize("policy", [HOLD, EXCEPTION, EVICTION])
@pytest.mark.parametrize("place", PLACES)
def test_each_policy_of_a_quota_by_age(place: str, policy: str) -> None:
    async def work(scene: Scene) -> None:
        quota = {"limitSize": -1, "limitTime": 90, "policy": policy}
        path = f"{PLACES[place]}/backlogQuota?backlogQuotaType=message_age"
        await scene.rest("POST", path, quota)
        await scene.publish(5)
        await scene.until(CHECK_SECONDS + 1)
        assert (await scene.backlog(), scene.was_closed()) == (5, False)
        await scene.until(91)
        if policy != EVICTION:
            await check_blocked(scene, policy)
            return
        await scene.until(2 * CHECK_SECONDS - 1)
        assert await scene.backlog() == 5
        await scene.until(2 * CHECK_SECONDS + 1)
        assert (await scene.backlog(), scene.was_closed()) == (0, False)

    in_scene(work)
