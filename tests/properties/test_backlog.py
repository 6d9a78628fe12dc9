"""The backlog of subscriptions against a naive model: which messages of each entry wait.

A whole broker in virtual time. Entries with keys, alone and in batches, are published, compacted,
acknowledged at random (whole, by batch index, up to a place, skipped), the topic is unloaded now
and then; one of two subscriptions reads the compacted topic.
"""

from __future__ import annotations

import asyncio
import random
import struct

import pytest

from pulsar_py.common.ack_set import to_words
from pulsar_py.proto.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandSubscribe,
    SingleMessageMetadata,
)
from tests.integration.transcripts.rest import call
from tests.simulated_client import World, simulated
from tests.wire_client import WireClient, encode, stored_entry

TOPIC = "persistent://public/default/counted"
REST = "/admin/v2/persistent/public/default/counted"
COMPACTED, PLAIN = "reads-compacted", "plain"
KEYS_COUNT = 6
STEPS_COUNT = 60

Entry = tuple[int, int]


class Model:
    """Messages of each entry that wait for one subscription."""

    def __init__(self, sizes: dict[Entry, int]) -> None:
        self.sizes = sizes  # messages of each entry
        self.acknowledged: dict[Entry, set[int]] = {}

    def waiting(self, entry: Entry) -> set[int]:
        return set(range(self.sizes[entry])) - self.acknowledged.get(entry, set())

    def acknowledge(self, entry: Entry, still_waiting: set[int]) -> None:
        gone = set(range(self.sizes[entry])) - still_waiting
        self.acknowledged.setdefault(entry, set()).update(gone)

    def unfinished(self) -> list[Entry]:
        return [entry for entry in sorted(self.sizes) if self.waiting(entry)]

    def counts(self) -> tuple[int, int]:
        """Entries and messages."""
        unfinished = self.unfinished()
        return len(unfinished), sum(len(self.waiting(entry)) for entry in unfinished)


class Story:
    """What happens to one topic, by chance with a fixed seed."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.sizes: dict[Entry, int] = {}
        self.models = {name: Model(self.sizes) for name in (COMPACTED, PLAIN)}
        self.seen: dict[str, set[Entry]] = {name: set() for name in self.models}
        self.compactions_count = self.acknowledged_count = 0
        self._sequence_id = 0

    async def connect(self) -> None:
        """A producer, and a consumer of each subscription."""
        self.client = await WireClient.connect("broker", 6650)
        self.receipts: asyncio.Queue[Entry] = asyncio.Queue()
        self.client.on_receipt = lambda command: self.receipts.put_nowait(
            (command.send_receipt.message_id.ledgerId, command.send_receipt.message_id.entryId)
        )
        self.client.on_message = lambda received: self._on_message(received.command)
        await self.client.lookup(TOPIC)
        for number, name in enumerate(self.models, 1):
            command = BaseCommand(type=BaseCommand.SUBSCRIBE)
            command.subscribe.topic, command.subscribe.subscription = TOPIC, name
            is_compacted = name == COMPACTED
            command.subscribe.subType = (
                CommandSubscribe.Exclusive if is_compacted else CommandSubscribe.Shared
            )
            command.subscribe.read_compacted = is_compacted
            command.subscribe.initialPosition = CommandSubscribe.Earliest
            command.subscribe.consumer_id = number
            command.subscribe.request_id = request_id = self.client.next_request_id()
            answer = await self.client.request(command, request_id)
            assert answer.type == BaseCommand.SUCCESS, answer
            self.client.flow(100_000, number)
        assert (await self.client.create_producer(TOPIC)).type == BaseCommand.PRODUCER_SUCCESS

    def _on_message(self, command: BaseCommand) -> None:
        name = (COMPACTED, PLAIN)[command.message.consumer_id - 1]
        message_id = command.message.message_id
        self.seen[name].add((message_id.ledgerId, message_id.entryId))

    async def rest(self, method: str, path: str = "", body: object = None) -> object:
        status, answer = await call("broker", 8080, method, REST + path, body)
        assert status < 300, (path, status, answer)
        return answer

    async def publish(self) -> None:
        """An entry of a key, or a batch of several."""
        size = self.chance.choice((1, 2, 5, 70))
        self._sequence_id += size
        key = f"k{self.chance.randrange(KEYS_COUNT)}"
        fields: dict[str, object] = {"partition_key": key}
        body = b"alone"
        if size > 1:
            fields = {"num_messages_in_batch": size}
            body = b"".join(self._message() for _ in range(size))
        command = BaseCommand(type=BaseCommand.SEND)
        command.send.producer_id, command.send.sequence_id = 1, self._sequence_id
        command.send.num_messages = size
        stored = stored_entry(body, self._sequence_id, **fields)
        self.client.writer.write(encode(command, stored))
        self.sizes[await self.receipts.get()] = size

    def _message(self) -> bytes:
        single = SingleMessageMetadata(
            payload_size=1, partition_key=f"k{self.chance.randrange(KEYS_COUNT)}"
        ).SerializeToString()
        return struct.pack(">I", len(single)) + single + b"x"

    async def compact(self) -> None:
        await self.rest("PUT", "/compaction")
        await self.world.clock.sleep(5)
        assert (await self.rest("GET", "/compaction")) == {"status": "SUCCESS", "lastError": ""}
        self.compactions_count += 1

    async def acknowledge(self) -> None:
        """An entry that came, whole or some of its messages, alone or with all before it."""
        name = self.chance.choice((COMPACTED, PLAIN))
        model = self.models[name]
        came = [entry for entry in model.unfinished() if entry in self.seen[name]]
        if not came:
            return
        entry = self.chance.choice(came[:20])
        size = self.sizes[entry]
        waiting = set()
        if size > 1 and self.chance.random() < 0.7:
            waiting = {index for index in range(size) if self.chance.random() < 0.5}
        is_cumulative = name == COMPACTED and self.chance.random() < 0.2
        command = BaseCommand(type=BaseCommand.ACK)
        command.ack.consumer_id = 1 if name == COMPACTED else 2
        command.ack.ack_type = CommandAck.Cumulative if is_cumulative else CommandAck.Individual
        command.ack.request_id = request_id = self.client.next_request_id()
        message_id = command.ack.message_id.add(ledgerId=entry[0], entryId=entry[1])
        if waiting:
            message_id.ack_set.extend(to_words(sum(1 << index for index in waiting)))
        answer = await self.client.request(command, request_id)
        assert not answer.ackResponse.HasField("error"), answer
        self.acknowledged_count += 1
        model.acknowledge(entry, waiting)
        if is_cumulative:
            for earlier in model.unfinished():
                if earlier < entry:
                    model.acknowledge(earlier, set())

    async def skip(self) -> None:
        """Some entries of the backlog."""
        model, count = self.models[PLAIN], self.chance.randint(1, 3)
        await self.rest("POST", f"/subscription/{PLAIN}/skip/{count}")
        for entry in model.unfinished()[:count]:
            model.acknowledge(entry, set())

    async def unload(self) -> None:
        await self.client.close()
        await self.rest("PUT", "/unload")
        await self.connect()

    async def check(self) -> None:
        """What the broker counts is what waits."""
        stats = await self.rest("GET", "/stats")
        assert isinstance(stats, dict)
        for name, model in self.models.items():
            entries, messages = model.counts()
            assert stats["subscriptions"][name]["msgBacklog"] == entries, name
            found = await self.rest("POST", f"/subscription/{name}/analyzeBacklog", {})
            assert isinstance(found, dict)
            assert (found["entries"], found["messages"]) == (entries, messages), name

    async def run(self) -> None:
        await self.connect()
        acts = [self.publish] * 6 + [self.acknowledge] * 10 + [self.compact] * 2
        acts += [self.skip, self.unload]
        for _ in range(10):
            await self.publish()
        for _ in range(STEPS_COUNT):
            await self.chance.choice(acts)()
            await asyncio.sleep(0.01)  # virtual: what is due to be dispatched comes
            await self.check()
        assert self.compactions_count
        assert self.acknowledged_count > 10
        await self.client.close()


@pytest.mark.parametrize("seed", range(6))
def test_backlogs_are_exact_over_compacted_topics(seed: int) -> None:
    async def work(world: World) -> None:
        await Story(world, seed).run()

    simulated(
        work,
        acknowledgmentAtBatchIndexLevelEnabled=True,
        managedLedgerMaxEntriesPerLedger=7,
        managedLedgerMinLedgerRolloverTimeMinutes=0,
    )
