"""Any order of joining, leaving, FLOW, acknowledging and redelivering against what must hold.

After each step: what consumers owe is what they hold; no entry came before its time; on ordered
Key_Shared no two consumers hold entries of one hash; entries of a key are first delivered in order.
At the end, with enough permits and all acknowledged, every entry was delivered at least once and
nothing is left.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_py.common.ack_set import to_bits
from pulsar_py.common.position import Position
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.dispatch_parts import (
    TimedConnection,
    Topic,
    ack,
    message,
    messages_of,
    redeliver,
    settle,
)

SHARED = SubscriptionType.SHARED
KEY_SHARED = SubscriptionType.KEY_SHARED

steps = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 3)),
    st.tuples(st.just("publish batch"), st.integers(0, 3)),
    st.tuples(st.just("publish later"), st.integers(0, 3)),
    st.tuples(st.just("publish chunk"), st.integers(0, 3)),
    st.tuples(st.just("join"), st.integers(0, 2)),
    st.tuples(st.just("leave"), st.integers(0, 2)),
    st.tuples(st.just("flow"), st.integers(0, 2)),
    st.tuples(st.just("acknowledge"), st.integers(0, 8)),
    st.tuples(st.just("acknowledge in part"), st.integers(0, 8)),
    st.tuples(st.just("redeliver"), st.integers(0, 8)),
    st.tuples(st.just("redeliver all"), st.integers(0, 2)),
    st.tuples(st.just("wait"), st.integers(1, 3)),
)


class World:
    """A topic, up to four consumers of one subscription, and what was seen."""

    def __init__(self, topic: Topic, kind: SubscriptionType, meta: KeySharedMeta | None) -> None:
        self.topic = topic
        self.kind = kind
        self.meta = meta
        self.consumers: dict[int, Consumer] = {}
        self.everybody: list[Consumer] = []
        self.connections: list[TimedConnection] = []  # of everybody
        self.keys: list[int] = []  # of each entry
        self.sizes: list[int] = []  # messages in each entry
        self.chunks = [0] * 4  # of each key, three a message
        self.due_millis: list[int] = []  # when each entry may come

    async def do(self, action: str, number: int) -> None:
        consumer = self.consumers.get(number % 3)
        if action.startswith("publish"):
            await self.publish(action, number)
        elif action == "join" and consumer is None:
            await self.join(number)
        elif action == "wait":
            await asyncio.sleep(number)
        elif consumer is not None:
            self.ask(action, number // 3, consumer)

    async def publish(self, action: str, key: int) -> None:
        now = self.topic.clock.wall_time_millis()
        later = now + (1, 700, 2500, 3001)[key] if action == "publish later" else 0
        chunk: dict[str, Any] = {}  # Any: fields of MessageMetadata
        if action == "publish chunk":
            count = self.chunks[key]
            self.chunks[key] += 1
            chunk = {
                "uuid": f"k{key}-{count // 3}",
                "chunk_id": count % 3,
                "num_chunks_from_msg": 3,
                "total_chunk_msg_size": 3,
            }
        await self.topic.publish(
            message(
                partition_key=f"k{key}",
                batch=3 if action == "publish batch" else None,
                deliver_at_time=later,
                **chunk,
            )
        )
        self.keys.append(key)
        self.sizes.append(3 if action == "publish batch" else 1)
        self.due_millis.append(later or now)

    async def join(self, number: int) -> None:
        connection = TimedConnection(clock=self.topic.clock)
        consumer = await self.topic.consume(
            number,
            self.kind,
            connection=connection,
            consumer_name=f"c{number}",
            key_shared=self.meta,
        )
        self.connections.append(connection)
        self.consumers[number] = consumer
        self.everybody.append(consumer)
        consumer.flow(4)

    def ask(self, action: str, choice: int, consumer: Consumer) -> None:
        held = sorted(consumer.pending_acks)
        if action == "leave":
            del self.consumers[consumer.consumer_id]
            consumer.close()
        elif action == "flow":
            consumer.flow(3)
        elif action == "redeliver all":
            redeliver(consumer)
        elif held:
            ledger_id, entry_id = held[choice % len(held)]
            if action == "acknowledge":
                ack(consumer, entry_id, ledger_id=ledger_id)
            elif action == "acknowledge in part":
                if consumer.pending_acks.remaining((ledger_id, entry_id)) == 3:
                    ack(consumer, entry_id, ledger_id=ledger_id, ack_set=[0b101])
            else:
                redeliver(consumer, entry_id)

    def check(self) -> None:
        self.check_times()
        owed = 0
        for consumer in self.consumers.values():
            consumer.pending_acks.check()
            assert consumer.permits.unacked_messages == consumer.pending_acks.messages_count
            self.check_remaining(consumer)
            owed += consumer.permits.unacked_messages
        subscription = self.topic.subscriptions.get("sub")
        dispatcher = subscription.dispatcher if subscription is not None else None
        if isinstance(dispatcher, MultipleConsumersDispatcher):
            assert dispatcher.unacked_messages == owed
            dispatcher.redelivery.check()
        if isinstance(dispatcher, StickyKeyDispatcher):
            dispatcher.chunk_holders.check()
        held = [position for each in self.consumers.values() for position in each.pending_acks]
        assert len(held) == len(set(held)), "an entry is held by two"
        if self.kind is KEY_SHARED and self.meta is None:
            self.check_hashes()

    def check_times(self) -> None:
        for connection in self.connections:
            for each, time_millis in zip(connection.messages, connection.times_millis, strict=True):
                assert time_millis >= self.due_millis[each.entry_id], "an entry came early"

    def check_hashes(self) -> None:
        holders: defaultdict[int, int] = defaultdict(int)
        for consumer in self.consumers.values():
            for sticky_hash in consumer.pending_hash_counts:
                holders[sticky_hash] += 1
        assert all(count == 1 for count in holders.values()), "a hash is held by two"

    def check_remaining(self, consumer: Consumer) -> None:
        subscription = self.topic.subscriptions["sub"]
        assert isinstance(subscription, PersistentSubscription)
        for position in consumer.pending_acks:
            words = subscription.cursor.batch_ack_set(Position(*position))
            expected = self.sizes[position[1]] if words is None else to_bits(words).bit_count()
            assert consumer.pending_acks.remaining(position) == expected

    async def finish(self) -> None:
        """Who is connected takes and acknowledges all that is left."""
        if not self.consumers:
            await self.join(9)
        for _ in range(4):
            for consumer in self.consumers.values():
                consumer.flow(1000)
            await asyncio.sleep(4)
            self.check_times()
            for consumer in self.consumers.values():
                for ledger_id, entry_id in list(consumer.pending_acks):
                    ack(consumer, entry_id, ledger_id=ledger_id)
        assert self.topic.subscriptions["sub"].stats().backlog_entries == 0
        delivered = {each.entry_id for consumer in self.everybody for each in messages_of(consumer)}
        assert delivered == set(range(len(self.keys)))


async def play(
    kind: SubscriptionType, meta: KeySharedMeta | None, script: Sequence[tuple[str, int]]
) -> None:
    topic = await Topic(VirtualClock()).open()
    world = World(topic, kind, meta)
    for action, number in script:
        await world.do(action, number)
        await settle(5)
        world.check()
    await world.finish()
    await topic.close()


@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        (SHARED, None),
        (KEY_SHARED, None),
        (KEY_SHARED, KeySharedMeta(allow_out_of_order_delivery=True)),
    ],
    ids=["shared", "key-shared", "out-of-order"],
)
@given(script=st.lists(steps, min_size=10, max_size=60))
def test_all_is_delivered_and_nothing_to_two_at_once(
    kind: SubscriptionType, meta: KeySharedMeta | None, script: list[tuple[str, int]]
) -> None:
    run_virtual(play(kind, meta, script))


def quarter(number: int) -> KeySharedMeta:
    """What a sticky consumer asks for: one quarter of the slots, which nobody else has."""
    return KeySharedMeta(is_sticky=True, hash_ranges=((number << 14, (number + 1 << 14) - 1),))


async def join_by_mode(world: World, mode: str, number: int) -> None:
    world.meta = quarter(number) if mode == "sticky" else None
    await world.join(number)
    world.consumers[number].flow(100)


@pytest.mark.parametrize("mode", ["consistent hashing", "split ranges", "sticky"])
@given(
    keys=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    moves=st.lists(st.tuples(st.integers(0, 40), st.booleans(), st.integers(0, 3)), max_size=10),
)
def test_entries_of_a_key_come_in_order(
    mode: str, keys: list[int], moves: list[tuple[int, bool, int]]
) -> None:
    """Whoever joins and leaves, with entries that he did not acknowledge."""

    async def run() -> None:
        topic = await Topic(VirtualClock()).open()
        topic.set(uses_consistent_hashing=mode == "consistent hashing")
        world = World(topic, KEY_SHARED, None)
        join = partial(join_by_mode, world, mode)
        await join(0)
        seen: defaultdict[int, list[int]] = defaultdict(list)
        for index, key in enumerate(keys):
            for at, joins, number in moves:
                if at == index and joins and number not in world.consumers:
                    await join(number)
                elif at == index and not joins and number in world.consumers:
                    world.consumers.pop(number).close()
            await world.do("publish", key)
            await settle(3)
            acknowledge_one_each(world, seen)
        for number in set(range(4)) - set(world.consumers):
            await join(number)
        for _ in range(len(keys) * 2):
            await asyncio.sleep(0.1)
            while acknowledge_one_each(world, seen):
                pass
        assert sorted(each for each_key in seen.values() for each in each_key) == list(
            range(len(keys))
        )
        assert all(each == sorted(each) for each in seen.values())
        await topic.close()

    run_virtual(run())


def acknowledge_one_each(world: World, seen: defaultdict[int, list[int]]) -> bool:
    """Each consumer handles its oldest message; returns whether there was any."""
    has_any = False
    for consumer in world.consumers.values():
        position = next(iter(consumer.pending_acks), None)
        if position is not None:
            has_any = True
            seen[world.keys[position[1]]].append(position[1])
            ack(consumer, position[1], ledger_id=position[0])
    return has_any
