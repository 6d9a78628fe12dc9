"""A group of acknowledgements taken together against the same ids taken one by one.

The same script is played twice, and after each step all that can be seen has to be the same: what
consumers hold, owe and were sent, what waits to be sent again, what the cursor has.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_py.common.position import LedgerPositions
from pulsar_py.server.dispatch import multiple
from pulsar_py.server.dispatch.multiple import MultipleConsumersDispatcher
from pulsar_py.server.dispatch.sticky_key import StickyKeyDispatcher
from pulsar_py.server.dispatch.subscribe_request import KeySharedMeta, SubscriptionType
from pulsar_py.server.subscriptions.consumer import Consumer
from pulsar_py.server.subscriptions.persistent_subscription import PersistentSubscription
from pulsar_py.testing.clock import VirtualClock, run_virtual
from tests.dispatch_parts import Topic, ack, messages_of, redeliver, settle
from tests.properties.test_dispatch import World

SHARED = SubscriptionType.SHARED
KEY_SHARED = SubscriptionType.KEY_SHARED
EXCLUSIVE = SubscriptionType.EXCLUSIVE

Step = tuple[str, int, Any]  # Any: what the step needs: entry ids, or nothing

# Up to 40 entries: most exist, some are not there yet.
entry_ids = st.one_of(
    st.builds(
        lambda first, count: range(first, first + count), st.integers(0, 30), st.integers(1, 30)
    ),
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
)
steps = st.one_of(
    st.tuples(st.just("group"), st.integers(0, 2), entry_ids),
    st.tuples(st.just("group"), st.integers(0, 2), entry_ids),
    st.tuples(st.just("group of another ledger"), st.integers(0, 2), entry_ids),
    st.tuples(st.just("flow"), st.integers(0, 2), st.integers(1, 40)),
    st.tuples(st.just("publish"), st.integers(0, 3), st.integers(1, 12)),
    st.tuples(st.just("publish batch"), st.integers(0, 3), st.integers(1, 12)),
    st.tuples(st.just("publish chunk"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("join"), st.integers(0, 2), st.none()),
    st.tuples(st.just("leave"), st.integers(0, 2), st.none()),
    st.tuples(st.just("acknowledge in part"), st.integers(0, 2), st.integers(0, 20)),
    st.tuples(st.just("redeliver"), st.integers(0, 2), st.integers(1, 12)),
)

PUBLISH: list[Step] = [("publish", key, 3) for key in range(4)]
BLOCKED: list[Step] = [*PUBLISH, *PUBLISH, ("flow", 0, 40), ("group", 0, range(20))]
CHUNKS: list[Step] = [("publish chunk", 1, 4), ("group", 0, range(4, 16))]
DRAINING: list[Step] = [*PUBLISH, ("join", 1, None), ("join", 2, None), ("group", 0, range(36))]


class Play:
    """One play of a script."""

    def __init__(self, world: World, *, is_together: bool) -> None:
        self.world = world
        self.is_together = is_together

    async def do(self, action: str, number: int, what: Any) -> None:
        consumer = self.world.consumers.get(number)
        if action.startswith("publish"):
            for _ in range(what):
                await self.world.publish(action, number)
        elif action == "join":
            if self.world.kind is not EXCLUSIVE or not self.world.consumers:
                await self.world.do(action, number)
        elif consumer is None:
            return
        elif action == "leave":
            self.world.ask(action, 0, consumer)
        elif action == "flow":
            consumer.flow(what)
        elif action == "acknowledge in part":
            self.world.ask(action, what, consumer)
        elif action == "redeliver":
            redeliver(consumer, *[entry_id for _, entry_id in list(consumer.pending_acks)[:what]])
        else:
            ledger_id = self.world.topic.ledger.last_confirmed_entry.ledger_id
            self.acknowledge(consumer, ledger_id - (action != "group"), what)

    def acknowledge(self, consumer: Consumer, ledger_id: int, ids: range | list[int]) -> None:
        if self.is_together:
            consumer.acknowledge_whole(LedgerPositions(ledger_id, ids))
        else:
            ack(consumer, *ids, ledger_id=ledger_id)

    def seen(self) -> dict[str, object]:
        """All that can be seen."""
        subscription = self.world.topic.subscriptions.get("sub")
        if not isinstance(subscription, PersistentSubscription):
            return {}
        seen: dict[str, object] = {
            "mark-delete": subscription.cursor.mark_delete_position,
            "acknowledged": str(subscription.cursor.state.individual_deleted_messages),
            "in part": list(subscription.cursor.state.batch_deleted_indexes.items()),
        }
        for consumer in self.world.everybody:
            permits = consumer.permits
            seen[consumer.name] = (
                {each: consumer.pending_acks.remaining(each) for each in consumer.pending_acks},
                dict(consumer.pending_hash_counts),
                (permits.available, permits.parked_permits, permits.is_blocked),
                (permits.unacked_messages, permits.acknowledged_beyond_ids),
                [(each.entry_id, each.redelivery_count) for each in messages_of(consumer)],
                consumer.stats().last_acked_millis,
            )
            consumer.pending_acks.check()
        dispatcher = subscription.dispatcher
        if isinstance(dispatcher, MultipleConsumersDispatcher):
            waiting = dispatcher.redelivery.select(1000)
            seen["waiting"] = [
                (each, dispatcher.redelivery.redelivery_count(each)) for each in waiting
            ]
            seen["unacked"] = (dispatcher.unacked_messages, dispatcher.is_blocked)
        if isinstance(dispatcher, StickyKeyDispatcher):
            seen["chunks"] = len(dispatcher.chunk_holders)
            seen["draining"] = [
                (dispatcher.draining.draining_from(each), dispatcher.draining.cleared_total(each))
                for each in self.world.everybody
            ]
            dispatcher.chunk_holders.check()
        return seen


def play(
    kind: SubscriptionType, meta: KeySharedMeta | None, script: list[Step], *, is_together: bool
) -> list[dict[str, object]]:
    seen: list[dict[str, object]] = []

    async def run() -> None:
        topic = await Topic(VirtualClock()).open()
        topic.set(max_unacked_messages_per_consumer=25, max_unacked_messages_per_subscription=45)
        whole = Play(World(topic, kind, meta), is_together=is_together)
        for step in [("join", 0, None), ("flow", 0, 40), ("publish", 1, 12), *script]:
            await whole.do(*step)
            await settle(5)
            seen.append(whole.seen())
        await topic.close()

    run_virtual(run())
    return seen


@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        (EXCLUSIVE, None),
        (SHARED, None),
        (KEY_SHARED, None),
        (KEY_SHARED, KeySharedMeta(allow_out_of_order_delivery=True)),
    ],
    ids=["exclusive", "shared", "key-shared", "out-of-order"],
)
@given(script=st.lists(steps, min_size=3, max_size=30))
@example(script=BLOCKED)
@example(script=CHUNKS)
@example(script=DRAINING)
@settings(max_examples=120, deadline=None)
def test_a_group_is_what_its_ids_are_one_by_one(
    kind: SubscriptionType, meta: KeySharedMeta | None, script: list[Step]
) -> None:
    together = play(kind, meta, script, is_together=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiple, "_MANY", 1000)
        one_by_one = play(kind, meta, script, is_together=False)
    for number, (left, right) in enumerate(zip(together, one_by_one, strict=True)):
        assert left == right, f"after step {number}"
