"""The real process is killed at random moments under load; nothing confirmed is missing.

Each round publishes and acknowledges flat out, kills the broker with SIGKILL, starts it again and
checks two promises: every message with a receipt is there, in order, at the position the receipt
named; and no message whose acknowledgement has a receipt comes again. After the last round everything is read once more from the beginning, so that
what was found after one kill is found after all that followed.

What a kill interrupted is counted, printed and part of the test. SENDs: those without a receipt,
also none in the socket. Writes of the cursor: acknowledgements that wait for their receipt. Now and
then a moment falls between two writes: such a kill is checked like any other, but does not count.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe
from tests.interop.broker_process import BrokerProcess
from tests.wire_client import Received, WireClient, body_of, send_frame

ACK_KILLS = 3
"""How many kills have to interrupt acknowledgements, too."""

FUTILE_KILLS = 10
"""Most that interrupt nothing."""
LEAST_SENDS = 100
WINDOW = 200
"""SENDs in flight between two turns of the publisher, every 20 ms."""

BURST = 4000
"""SENDs written at once just before the kill: more than the broker can answer until then."""

ACKS_PER_COMMAND = 20

LOAD_SECONDS = (0.2, 2.0)
"""Of a round, from and to."""

TOPIC = "persistent://public/default/kill"
Id = tuple[int, int]


@dataclass
class Round:
    """What happened between a start and its kill."""

    acknowledged: set[Id] = field(default_factory=set)  # with a receipt


@dataclass
class History:
    """What the broker promised so far, over all rounds."""

    sent_count: int = 0
    receipts: dict[int, Id] = field(default_factory=dict)
    unreceipted_per_kill: list[int] = field(default_factory=list)
    unwritten_acks_per_kill: list[int] = field(default_factory=list)
    ack_receipts_count: int = 0
    verified_up_to: Id = (-1, -1)

    @property
    def kills_that_count(self) -> int:
        """Those that interrupted enough SENDs."""
        return sum(sends >= LEAST_SENDS for sends in self.unreceipted_per_kill)

    @property
    def ack_kills(self) -> int:
        """Those that interrupted acknowledgements."""
        return sum(acks >= 1 for acks in self.unwritten_acks_per_kill)

    @property
    def last_receipt(self) -> Id:
        """Of the highest position; receipts come in order."""
        return self.receipts[next(reversed(self.receipts))]


class Publisher:
    """Keeps a window of SENDs in flight; bodies are running numbers."""

    def __init__(self, client: WireClient, history: History) -> None:
        self.client, self.history = client, history
        self.in_flight: set[int] = set()
        client.on_receipt = self._on_receipt

    def _on_receipt(self, command: BaseCommand) -> None:
        receipt = command.send_receipt
        self.in_flight.remove(receipt.sequence_id)
        self.history.receipts[receipt.sequence_id] = (
            receipt.message_id.ledgerId,
            receipt.message_id.entryId,
        )

    async def run(self) -> None:
        while True:
            self.send(WINDOW - len(self.in_flight))
            await asyncio.sleep(0.02)

    def send(self, count: int) -> None:
        """Write that many SENDs at once."""
        numbers = range(self.history.sent_count, self.history.sent_count + count)
        self.history.sent_count += len(numbers)
        self.in_flight.update(numbers)
        self.client.writer.write(
            b"".join(send_frame(1, n, struct.pack(">Q", n) + b"x" * 92) for n in numbers)
        )


class Acknowledger:
    """Acknowledges every second message of a Shared subscription, with receipts."""

    def __init__(self, client: WireClient, acknowledged: set[Id]) -> None:
        self.client = client
        self._acknowledged = acknowledged
        self._requests: dict[int, list[Id]] = {}  # without a receipt so far
        self._batch: list[Id] = []
        self._taken = 0
        client.on_message = self._on_message
        client.on_ack_response = self._on_ack_response

    def _on_message(self, received: Received) -> None:
        position = position_of(received)
        assert position not in self._acknowledged, f"{position} was acknowledged and came again"
        self._taken += 1
        if self._taken % 500 == 0:
            self.client.flow(500)
        if is_to_acknowledge(position):
            self._batch.append(position)
        if len(self._batch) == ACKS_PER_COMMAND:
            self._requests[self.client.acknowledge(self._batch)] = self._batch
            self._batch = []

    def _on_ack_response(self, request_id: int) -> None:
        self._acknowledged.update(self._requests.pop(request_id))

    @property
    def waiting_count(self) -> int:
        """Acknowledgements without a receipt so far."""
        return sum(map(len, self._requests.values()))


def position_of(received: Received) -> Id:
    message_id = received.command.message.message_id
    return (message_id.ledgerId, message_id.entryId)


def is_to_acknowledge(position: Id) -> bool:
    return position[1] % 2 == 1


async def load_then_kill(broker: BrokerProcess, history: History, chance: random.Random) -> Round:
    played = Round()
    publishing = await WireClient.connect("127.0.0.1", broker.port)
    consuming = await WireClient.connect("127.0.0.1", broker.port)
    await publishing.lookup(TOPIC)
    await consuming.subscribe(TOPIC, "acks", CommandSubscribe.Shared)
    await publishing.create_producer(TOPIC)
    publisher = Publisher(publishing, history)
    acknowledger = Acknowledger(consuming, played.acknowledged)
    consuming.flow(1000)
    running = asyncio.get_running_loop().create_task(publisher.run())
    await asyncio.sleep(chance.uniform(*LOAD_SECONDS))
    running.cancel()
    await asyncio.wait([running])
    publisher.send(BURST)
    await asyncio.sleep(chance.uniform(0.0, 0.02))
    broker.kill()
    await asyncio.wait([each._task for each in (publishing, consuming) if each._task])
    history.unreceipted_per_kill.append(len(publisher.in_flight))
    history.unwritten_acks_per_kill.append(acknowledger.waiting_count)
    history.ack_receipts_count += len(played.acknowledged)
    await publishing.close()
    await consuming.close()
    return played


async def read_from(broker: BrokerProcess, start: Id, take: Callable[[Received], bool]) -> None:
    """Read what comes after a position, until `take` says that it was enough."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    await client.lookup(TOPIC)
    enough = asyncio.Event()
    taken = 0

    def on_message(received: Received) -> None:
        nonlocal taken
        taken += 1
        if taken % 1000 == 0:
            client.flow(1000)
        if take(received):
            enough.set()

    client.on_message = on_message
    command = BaseCommand(type=BaseCommand.SUBSCRIBE)
    subscribe = command.subscribe
    subscribe.topic, subscribe.subscription = TOPIC, "check"
    subscribe.subType, subscribe.consumer_id = CommandSubscribe.Exclusive, 1
    subscribe.durable = False
    subscribe.start_message_id.ledgerId = start[0] % 2**64
    subscribe.start_message_id.entryId = start[1] % 2**64
    subscribe.request_id = client.next_request_id()
    await client.request(command, subscribe.request_id)
    client.flow(2000)
    await asyncio.wait_for(enough.wait(), 120)
    await client.close()


async def check_receipts(broker: BrokerProcess, history: History, start: Id) -> None:
    """Read everything after a position; every receipt's message is where it said."""
    found: dict[Id, int] = {}
    last = history.last_receipt

    def take(received: Received) -> bool:
        position = position_of(received)
        body = body_of(received.headers_and_payload)
        found[position] = struct.unpack_from(">Q", body)[0]
        return position >= last

    await read_from(broker, start, take)
    expected = {n: position for n, position in history.receipts.items() if position > start}
    missing = [n for n, position in expected.items() if found.get(position) != n]
    assert not missing, f"{len(missing)} confirmed messages are missing, first {missing[:3]}"
    in_order = [found[position] for position in sorted(found)]
    assert in_order == sorted(set(in_order)), "messages are out of order or doubled"


async def check_acknowledgements(broker: BrokerProcess, history: History, played: Round) -> None:
    """Nothing comes again whose acknowledgement has a receipt."""
    client = await WireClient.connect("127.0.0.1", broker.port)
    await client.lookup(TOPIC)
    lost: list[Id] = []
    last = max(p for p in history.receipts.values() if not is_to_acknowledge(p))
    has_come = asyncio.Event()

    def on_message(received: Received) -> None:
        position = position_of(received)
        if position in played.acknowledged:
            lost.append(position)
        if position >= last:
            has_come.set()

    client.on_message = on_message
    await client.subscribe(TOPIC, "acks", CommandSubscribe.Shared)
    client.flow(100_000)
    await asyncio.wait_for(has_come.wait(), 120)
    assert not lost, f"{len(lost)} acknowledgements with a receipt came back, first {lost[:3]}"
    command = BaseCommand(type=BaseCommand.SEEK)
    command.seek.consumer_id = 1
    command.seek.message_id.ledgerId = command.seek.message_id.entryId = 2**63 - 1
    command.seek.request_id = client.next_request_id()
    await client.request(command, command.seek.request_id)
    await client.close()


async def run_rounds(
    broker: BrokerProcess, history: History, chance: random.Random, kills_count: int
) -> None:
    """Kill until so many kills have interrupted SENDs, and some acknowledgements."""
    while history.kills_that_count < kills_count or history.ack_kills < ACK_KILLS:
        kills = len(history.unreceipted_per_kill)
        assert kills < kills_count + FUTILE_KILLS, "too few kills interrupt anything"
        played = await load_then_kill(broker, history, chance)
        broker.start()
        await check_receipts(broker, history, history.verified_up_to)
        history.verified_up_to = history.last_receipt
        await check_acknowledgements(broker, history, played)
    await check_receipts(broker, history, (-1, -1))


@pytest.mark.parametrize("kills_count", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_nothing_confirmed_is_lost_by_kill_9(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kills_count: int
) -> None:
    seed = int(os.environ.get("KILL_SEED", random.randrange(2**32)))
    history = History()
    settings = {
        # Journals end often, and a restart looks through little.
        "journalMaxSizeMB": 4,
        "defaultRetentionTimeInMinutes": -1,
        "defaultRetentionSizeInMB": -1,
        "maxUnackedMessagesPerConsumer": 0,
        "maxUnackedMessagesPerSubscription": 0,
    }
    arguments = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    broker = BrokerProcess(tmp_path / "data", *arguments)
    broker.start()

    try:
        asyncio.run(run_rounds(broker, history, random.Random(seed), kills_count))
    finally:
        if broker.process is not None:
            broker.stop()
        with capsys.disabled():
            print(
                f"\nseed {seed}: {len(history.unreceipted_per_kill)} kills, of which "
                f"{history.ack_kills} interrupted acknowledgements; SENDs interrupted "
                f"{history.unreceipted_per_kill}; acknowledgements whose write was interrupted "
                f"{history.unwritten_acks_per_kill}; {len(history.receipts)} receipts of "
                f"{history.sent_count} SENDs, {history.ack_receipts_count} of acknowledgements"
            )
