"""The real process is killed at random moments under load; nothing confirmed is missing.

Each round publishes and acknowledges flat out, kills the broker with SIGKILL, starts it again and
checks two promises: every message with a receipt is there, in order, at the position the receipt
named; and an acknowledgement with a receipt that is older than the persistence rules allow to lose
(a second, and what writing takes) does not come again. What a kill interrupted is counted: SENDs
without a receipt, and acknowledgements not yet written to the cursor.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import Received, WireClient, body_of, send_frame

KILLS = 20
WINDOW = 400
BURST = 4000
ACKS_MAY_BE_LOST_SECONDS = 2.0
TOPIC = "persistent://public/default/kill"
Id = tuple[int, int]


@dataclass
class History:
    """What the broker promised so far, over all rounds."""

    sent_count: int = 0
    receipts: dict[int, Id] = field(default_factory=dict)
    acknowledged_at: dict[Id, float] = field(default_factory=dict)
    unreceipted_per_kill: list[int] = field(default_factory=list)
    unwritten_acks_per_kill: list[int] = field(default_factory=list)
    verified_up_to: Id = (-1, -1)
    verified_number: int = -1


class Publisher:
    """Keeps a window of SENDs in flight; bodies are running numbers."""

    def __init__(self, client: WireClient, history: History) -> None:
        self.client, self.history = client, history
        self.in_flight: dict[int, int] = {}
        client.on_receipt = self._on_receipt

    def _on_receipt(self, command: BaseCommand) -> None:
        receipt = command.send_receipt
        number = self.in_flight.pop(receipt.sequence_id)
        self.history.receipts[number] = (receipt.message_id.ledgerId, receipt.message_id.entryId)

    async def run(self) -> None:
        while True:
            while len(self.in_flight) < WINDOW:
                self.client.writer.write(self._next_frame())
            await asyncio.sleep(0.02)

    def burst(self, count: int) -> None:
        """Write many SENDs at once, more than the broker can answer before the kill."""
        self.client.writer.write(b"".join(self._next_frame() for _ in range(count)))

    def _next_frame(self) -> bytes:
        number = self.history.sent_count
        self.history.sent_count += 1
        self.in_flight[number] = number
        return send_frame(1, number, struct.pack(">Q", number) + b"x" * 92)


class Acknowledger:
    """Acknowledges every second message of a Shared subscription, with receipts."""

    def __init__(self, client: WireClient, history: History) -> None:
        self.client, self.history = client, history
        self._requests: dict[int, list[Id]] = {}
        self._batch: list[Id] = []
        self._taken = 0
        client.on_message = self._on_message
        client.on_ack_response = self._on_ack_response

    def _on_message(self, received: Received) -> None:
        message_id = received.command.message.message_id
        position = (message_id.ledgerId, message_id.entryId)
        age = self.history.acknowledged_at.get(position)
        assert age is None, f"{position} was acknowledged and came again within one connection"
        self._taken += 1
        if self._taken % 500 == 0:
            self.client.flow(500)
        if position[1] % 2:
            self._batch.append(position)
        if len(self._batch) == 100:
            self._requests[self.client.acknowledge(self._batch)] = self._batch
            self._batch = []

    def _on_ack_response(self, request_id: int) -> None:
        now = time.monotonic()
        for position in self._requests.pop(request_id):
            self.history.acknowledged_at[position] = now


async def load_then_kill(broker: BrokerProcess, history: History, chance: random.Random) -> None:
    publishing = await WireClient.connect("127.0.0.1", broker.port)
    consuming = await WireClient.connect("127.0.0.1", broker.port)
    await publishing.lookup(TOPIC)
    await consuming.subscribe(TOPIC, "acks", CommandSubscribe.Shared)
    await publishing.create_producer(TOPIC)
    publisher = Publisher(publishing, history)
    acknowledger = Acknowledger(consuming, history)
    forget_older_acks(history)
    consuming.flow(1000)
    running = asyncio.get_running_loop().create_task(publisher.run())
    await asyncio.sleep(chance.uniform(0.5, 2.5))
    running.cancel()
    await asyncio.wait([running])
    publisher.burst(BURST)
    time.sleep(chance.uniform(0.0, 0.004))  # This loop must not get in between.
    broker.kill()
    killed_at = time.monotonic()
    await asyncio.sleep(0.05)
    history.unreceipted_per_kill.append(len(publisher.in_flight))
    history.unwritten_acks_per_kill.append(
        sum(killed_at - at < 1.0 for at in history.acknowledged_at.values())
        + 100 * len(acknowledger._requests)
    )
    await publishing.close()
    await consuming.close()
    history.killed_at = killed_at  # type: ignore[attr-defined]


def forget_older_acks(history: History) -> None:
    """Called when the redelivered messages of the last round were checked."""
    history.acknowledged_at.clear()


async def check_receipts(broker: BrokerProcess, history: History) -> None:
    """Read everything since the last check; every receipt's message is where it said."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    await client.lookup(TOPIC)
    found: dict[Id, int] = {}
    arrived = asyncio.Event()

    def on_message(received: Received) -> None:
        message_id = received.command.message.message_id
        found[message_id.ledgerId, message_id.entryId] = struct.unpack_from(
            ">Q", body_of(received.headers_and_payload)
        )[0]
        arrived.set()

    client.on_message = on_message
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic, subscribe.subscription = TOPIC, "check"
    subscribe.subType, subscribe.consumer_id = CommandSubscribe.Exclusive, 1
    subscribe.durable = False
    ledger_id, entry_id = history.verified_up_to
    subscribe.start_message_id.ledgerId = ledger_id % 2**64
    subscribe.start_message_id.entryId = entry_id % 2**64
    subscribe.request_id = client.next_request_id()
    await client.request(command, subscribe.request_id)
    client.flow(10_000_000)
    expected = {n: p for n, p in history.receipts.items() if p > history.verified_up_to}
    last = max(expected.values(), default=history.verified_up_to)
    while max(found, default=(-1, -1)) < last:
        arrived.clear()
        await asyncio.wait_for(arrived.wait(), 10)
    missing = [n for n, position in expected.items() if found.get(position) != n]
    assert not missing, f"{len(missing)} confirmed messages are missing, first {missing[:3]}"
    in_order = [found[position] for position in sorted(found)]
    assert in_order == sorted(set(in_order)), "messages are out of order or doubled"
    history.verified_up_to = last
    history.receipts.clear()
    await client.close()


async def check_acknowledgements(broker: BrokerProcess, history: History) -> None:
    """Of what comes again, nothing was acknowledged longer ago than may be lost."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    await client.lookup(TOPIC)
    came_again: list[float] = []
    count = 0
    killed_at: float = history.killed_at  # type: ignore[attr-defined]

    def on_message(received: Received) -> None:
        nonlocal count
        count += 1
        message_id = received.command.message.message_id
        at = history.acknowledged_at.get((message_id.ledgerId, message_id.entryId))
        if at is not None:
            came_again.append(killed_at - at)

    client.on_message = on_message
    await client.subscribe(TOPIC, "acks", CommandSubscribe.Shared)
    client.flow(40_000)
    seen = -1
    while seen != count:
        seen = count
        await asyncio.sleep(0.2)
    too_old = [age for age in came_again if age > ACKS_MAY_BE_LOST_SECONDS]
    assert not too_old, f"{len(too_old)} acks were {max(too_old):.2f} s old and are lost"
    command = BaseCommand(type=BaseCommand.SEEK)
    command.seek.consumer_id = 1
    command.seek.message_id.ledgerId = command.seek.message_id.entryId = 2**63 - 1
    command.seek.request_id = client.next_request_id()
    await client.request(command, command.seek.request_id)
    await client.close()


async def run_rounds(broker: BrokerProcess, history: History, chance: random.Random) -> None:
    for _ in range(KILLS):
        await load_then_kill(broker, history, chance)
        broker.start()
        await check_receipts(broker, history)
        await check_acknowledgements(broker, history)


def test_nothing_confirmed_is_lost_by_kill_9(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("KILL_SEED", random.randrange(2**32)))
    history = History()
    settings = {
        "defaultRetentionTimeInMinutes": -1,
        "defaultRetentionSizeInMB": -1,
        "maxUnackedMessagesPerConsumer": 0,
        "maxUnackedMessagesPerSubscription": 0,
    }
    arguments = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    broker = BrokerProcess(tmp_path / "data", *arguments)
    broker.start()

    try:
        asyncio.run(run_rounds(broker, history, random.Random(seed)))
    finally:
        if broker.process is not None:
            broker.stop()

    with capsys.disabled():
        print(
            f"\nseed {seed}: {KILLS} kills interrupted {history.unreceipted_per_kill} SENDs and "
            f"{history.unwritten_acks_per_kill} acknowledgements not yet written"
        )
    assert min(history.unreceipted_per_kill) >= 100
    assert min(history.unwritten_acks_per_kill) >= 1
