"""ACKs of many ids as a broker reads them from their bytes, against one that parses each.

A whole broker in virtual time plays the same script twice. All that a client can get at, and what
subscriptions hold, has to be the same after each step: messages, answers, the end of connections,
mark-delete positions, acknowledged ranges, pending entries, permits, hashes, limits.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_py.common.names import TopicName
from pulsar_py.common.varint import varint
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, CommandSubscribe, SingleMessageMetadata
from pulsar_py.server.connection import server_cnx
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.wire.framing import SIZES
from tests.simulated_client import World, simulated
from tests.wire_client import Received, WireClient, encode, stored_entry

CONFIG = {
    "maxUnackedMessagesPerConsumer": 25,
    "maxUnackedMessagesPerSubscription": 45,
    "acknowledgmentAtBatchIndexLevelEnabled": True,
}
PERSISTENT, VOLATILE = "persistent://public/default/t", "non-persistent://public/default/t"
DAY_MILLIS = 86_400_000
LAST = 2**64 - 1


def number(tag: int, value: int, spare: int = 0) -> bytes:
    """A field of that number, perhaps encoded longer than it needs."""
    encoded = bytearray(varint(value))
    if spare and len(encoded) + spare <= 10:
        encoded[-1] |= 0x80
        encoded += b"\x80" * (spare - 1) + b"\x00"
    return varint(tag << 3) + bytes(encoded)


def nested(tag: int, inner: bytes) -> bytes:
    return varint(tag << 3 | 2) + varint(len(inner)) + inner


TAILS = {
    "transaction": number(6, 1) + number(7, 1),
    "properties": nested(5, nested(1, b"k") + number(2, 1)),
    "validation error": number(4, 2),
    "unknown": number(15, 1),
    "consumer twice": number(1, 1),
    "cut": b"\x1a",
}
BEHIND = {
    "merged": nested(BaseCommand.ACK, number(1, 2) + number(2, 0)),
    "behind": number(1, BaseCommand.ACK),
}


def id_fields(ledger_id: int, entry_id: int, odd: str, *, is_middle: bool) -> list[bytes]:
    """The fields of one message id of an ACK."""
    moved = {"ledger before": -1, "ledger behind": 1, "another ledger": int(is_middle)}
    spare = int(odd == "overlong")
    fields = [
        number(1, (ledger_id + moved.get(odd, 0)) & LAST, spare),
        number(2, entry_id & LAST, spare),
    ]
    if odd == "ids swapped":
        fields.reverse()
    elif odd == "one ack set" and is_middle:
        fields.append(number(5, 5))
    else:
        more = {
            "ack sets": number(5, 5),
            "empty ack sets": b"\x2a\x00",
            "partitions": number(3, LAST),
            "entry twice": number(2, entry_id & LAST),
            "unknown in id": number(15, 1),
        }
        fields.append(more.get(odd, b""))
    return fields


class Story:
    """One play of a script on one topic: two connections with a consumer each."""

    def __init__(self, world: World, kind: int, topic: str) -> None:
        self.world = world
        self.kind = kind
        self.topic = topic
        self.clients: dict[int, WireClient] = {}
        self.producer: WireClient | None = None
        self.sent_count = 0
        self.told: list[tuple[object, ...]] = []
        self.seen: list[dict[str, object]] = []
        self.ledger_id = 0

    async def begin(self) -> None:
        self.producer = await WireClient.connect("broker", 6650)
        await self.producer.lookup(self.topic)
        await self.producer.create_producer(self.topic)
        await self.join(0)
        await self.do("publish", 0, 3)
        topic = self.world.topics.loaded(TopicName.parse(self.topic))
        ledger = getattr(topic, "ledger", None)
        if ledger is not None:
            self.ledger_id = ledger.last_confirmed_entry.ledger_id

    async def join(self, who: int) -> None:
        if who in self.clients and self.clients[who].reader.at_eof():
            await self.clients.pop(who).close()
        if who not in self.clients:
            client = await WireClient.connect("broker", 6650)
            client.on_message = lambda received: self.on_message(who, received)
            client.on_ack_response = lambda number: self.told.append((who, "answer", number))
            self.clients[who] = client
            await client.lookup(self.topic)
        answer = await self.clients[who].subscribe(
            self.topic, "s", self.kind, who + 1, name=f"consumer {who}"
        )
        self.told.append((who, "subscribed", answer.type))

    def on_message(self, who: int, received: Received) -> None:
        message = received.command.message
        self.told.append(
            (
                who,
                message.consumer_id,
                message.message_id.ledgerId,
                message.message_id.entryId,
                message.redelivery_count,
                tuple(message.ack_set),
            )
        )

    async def do(self, action: str, who: int, what: Any) -> None:
        client = self.clients.get(who)
        if action.startswith("publish"):
            self.publish(action, who, what)
        elif action == "join":
            await self.join(who)
        elif client is None:
            return
        elif action == "leave":
            client = self.clients.pop(who)
            await client.close()
        elif action == "frames":
            data = b"".join(self.frame(who, *each) for each in what)
            client.writer.write(data)
        else:
            client.writer.write(self.frame(who, action, what))

    def publish(self, action: str, key: int, count: int) -> None:
        assert self.producer is not None
        for _ in range(count):
            fields: dict[str, object] = {"partition_key": f"key {key}"}
            body = b"x"
            if action == "publish batch":
                fields["num_messages_in_batch"] = 3
                single = SingleMessageMetadata(payload_size=1).SerializeToString()
                body = (len(single).to_bytes(4, "big") + single + b"x") * 3
            elif action == "publish delayed":
                fields["deliver_at_time"] = self.world.clock.wall_time_millis() + 2 * DAY_MILLIS
            command = BaseCommand(type=BaseCommand.SEND)
            command.send.producer_id = 1
            command.send.sequence_id = self.sent_count
            command.send.num_messages = int(str(fields.get("num_messages_in_batch", 1)))
            entry = stored_entry(body, self.sent_count, **fields)
            self.sent_count += 1
            self.producer.writer.write(encode(command, entry))

    def frame(self, who: int, action: str, what: Any) -> bytes:
        command = BaseCommand()
        if action == "ack":
            body = self.ack_body(who, **what)
            rest = what.get("rest", b"")
            return SIZES.pack(4 + len(body) + len(rest), len(body)) + body + rest
        if action == "flow":
            command.type = BaseCommand.FLOW
            command.flow.consumer_id = who + 1
            command.flow.messagePermits = what
        elif action == "redeliver":
            command.type = BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES
            redeliver = command.redeliverUnacknowledgedMessages
            redeliver.consumer_id = who + 1
            for entry_id in what:
                redeliver.message_ids.add(ledgerId=self.ledger_id, entryId=entry_id)
        elif action == "seek":
            command.type = BaseCommand.SEEK
            command.seek.consumer_id = who + 1
            command.seek.request_id = 900
            command.seek.message_id.ledgerId = self.ledger_id
            command.seek.message_id.entryId = what
        else:
            assert action == "close", action
            command.type = BaseCommand.CLOSE_CONSUMER
            command.close_consumer.consumer_id = who + 1
            command.close_consumer.request_id = 901
        return encode(command)

    def ack_body(self, who: int, *, ids: Any, odd: str, request_id: int | None, **_: Any) -> bytes:
        """An ACK, encoded in one of many ways."""
        spare = int(odd == "overlong")
        middle = len(ids) // 2
        parts = [
            nested(3, b"".join(id_fields(self.ledger_id, each, odd, is_middle=place == middle)))
            for place, each in enumerate(ids)
        ]
        owner = number(1, 7 if odd == "another consumer's" else who + 1, spare)
        kind = number(2, int(odd == "cumulative"), spare)
        head = {"type after": [owner, *parts, kind], "type twice": [owner, kind, kind, *parts]}
        tail = TAILS.get(odd, b"")
        if request_id is not None:
            tail += number(8, request_id, spare)
        if odd == "request twice":
            tail += number(8, 77)
        inner = b"".join(head.get(odd, [owner, kind, *parts])) + tail
        return number(1, BaseCommand.ACK) + nested(BaseCommand.ACK, inner) + BEHIND.get(odd, b"")

    async def settle(self) -> None:
        await asyncio.sleep(2.5)

    def look(self) -> None:
        """Note all that can be seen."""
        seen: dict[str, object] = {"told": sorted(map(repr, self.told))}
        self.told.clear()
        for who, client in self.clients.items():
            pushed = [client.pushed.get_nowait() for _ in range(client.pushed.qsize())]
            seen[f"pushed {who}"] = [str(each.command) for each in pushed]
            seen[f"open {who}"] = not client.reader.at_eof()
        topic = self.world.topics.loaded(TopicName.parse(self.topic))
        subscription = topic.subscriptions.get("s") if topic is not None else None
        if subscription is not None:
            for consumer in subscription.consumers:
                stats = consumer.stats()
                seen[f"consumer {consumer.name}"] = (
                    {each: consumer.pending_acks.remaining(each) for each in consumer.pending_acks},
                    dict(consumer.pending_hash_counts),
                    (consumer.permits.available, consumer.permits.is_blocked),
                    (consumer.permits.unacked_messages, consumer.permits.acknowledged_beyond_ids),
                    repr(stats),
                )
                consumer.pending_acks.check()
        if isinstance(subscription, PersistentSubscription):
            state = subscription.cursor.state
            state.check()
            seen["cursor"] = (
                state.mark_delete_position,
                state.persistent_mark_delete_position,
                str(state.individual_deleted_messages),
                list(state.batch_deleted_indexes.items()),
                state.backlog_count(),
                state.read_position,
                dict(state.properties),
            )
            dispatcher = subscription.dispatcher
            if isinstance(dispatcher, MultipleConsumersDispatcher):
                seen["dispatcher"] = (
                    dispatcher.unacked_messages,
                    dispatcher.is_blocked,
                    [
                        (each, dispatcher.redelivery.redelivery_count(each))
                        for each in dispatcher.redelivery.select(1000)
                    ],
                )
            if isinstance(dispatcher, StickyKeyDispatcher):
                dispatcher.chunk_holders.check()
        self.seen.append(seen)


ENTRIES = st.one_of(
    st.builds(lambda first, count: range(first, first + count), st.integers(0, 30), st.just(12)),
    st.builds(
        lambda first, count: range(first, first + count), st.integers(0, 30), st.integers(0, 30)
    ),
    st.lists(st.integers(0, 40), max_size=30),
    st.just([0, 1, 2, 2**63, 2**64 - 1] * 3),
    st.just([*range(12), -1]),
    st.just([*range(10), 2**40]),
)
ODD = (
    *[""] * 24,
    *("overlong", "ids swapped", "ack sets", "one ack set", "empty ack sets", "partitions"),
    *("entry twice", "another ledger", "unknown in id", "cumulative", "another consumer's"),
    *("type after", "type twice", "transaction", "properties", "validation error", "unknown"),
    *("consumer twice", "cut", "request twice", "merged", "behind"),
    *("ledger before", "ledger behind"),
)
ACKS = st.fixed_dictionaries(
    {
        "ids": ENTRIES,
        "odd": st.sampled_from(ODD),
        "request_id": st.sampled_from([None, 500, 501, 2**40]),
        "rest": st.sampled_from([b"", b"", b"", b"", b"rest"]),
    }
)
FRAMES = st.one_of(
    st.tuples(st.just("ack"), ACKS),
    st.tuples(st.just("ack"), ACKS),
    st.tuples(st.just("flow"), st.integers(1, 40)),
    st.tuples(st.just("redeliver"), st.lists(st.integers(0, 30), max_size=8)),
    st.tuples(st.sampled_from(["seek", "close"]), st.integers(0, 30)),
)
WHO = st.integers(0, 1)
STEPS = st.one_of(
    st.builds(lambda who, frame: (frame[0], who, frame[1]), WHO, FRAMES),
    st.builds(lambda who, frame: (frame[0], who, frame[1]), WHO, FRAMES),
    st.builds(lambda who, ack: ("ack", who, ack), WHO, ACKS),
    st.tuples(st.just("frames"), WHO, st.lists(FRAMES, min_size=2, max_size=4)),
    st.tuples(
        st.sampled_from(["publish", "publish batch", "publish delayed"]),
        st.integers(0, 3),
        st.integers(1, 12),
    ),
    st.tuples(st.sampled_from(["join", "join", "leave"]), WHO, st.none()),
)


def play(kind: int, topic: str, script: list[Any], *, parses: bool) -> list[dict[str, object]]:
    seen: list[dict[str, object]] = []

    async def work(world: World) -> None:
        story = Story(world, kind, topic)
        await story.begin()
        await story.settle()
        for step in [("flow", 0, 40), *[("publish", key, 4) for key in range(3)], *script]:
            try:
                await story.do(*step)
            except (ConnectionResetError, TimeoutError) as error:
                story.told.append((step[1], type(error)))
            await story.settle()
            story.look()
        for client in [*story.clients.values(), story.producer]:
            await client.close()
        seen.extend(story.seen)

    with pytest.MonkeyPatch.context() as patch:
        if parses:
            patch.setattr(server_cnx, "read_plain_ack", lambda _: None)
        simulated(work, **CONFIG)
    return seen


KINDS = ("Exclusive", "Shared", "Failover", "Key_Shared")


@pytest.mark.parametrize("topic", [PERSISTENT, VOLATILE], ids=["persistent", "non-persistent"])
@pytest.mark.parametrize("kind", KINDS)
@given(script=st.lists(STEPS, min_size=2, max_size=14))
@settings(max_examples=12, deadline=None)
def test_acks_that_are_not_parsed_do_what_parsed_ones_do(
    topic: str, kind: str, script: list[Any]
) -> None:
    number_of = CommandSubscribe.SubType.Value(kind)
    fast = play(number_of, topic, script, parses=False)
    parsed = play(number_of, topic, script, parses=True)
    for at, (left, right) in enumerate(zip(fast, parsed, strict=True)):
        assert left == right, f"after step {at}"
