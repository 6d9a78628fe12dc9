"""A preview says what the act then does: each is compared with the act itself."""

from __future__ import annotations

import random

import pytest

from pulsar_py.common.position import Position
from pulsar_py.console.previews import effect_of, effect_of_skipping
from pulsar_py.managed_ledger.cursors.state import CursorState
from tests.playbooks.ledger_player import ledgers_from
from tests.unit.console.conftest import TOPIC, ConsoleCalls


def states() -> tuple[CursorState, list[Position], random.Random]:
    chance = random.Random(3)
    state = CursorState(ledgers_from(["5=20", "7=30+"]), Position.parse("5:-1"))
    everything = [Position(5, n) for n in range(20)] + [Position(7, n) for n in range(30)]
    state.acknowledge(chance.sample(everything, 25), None, 0.0)
    return state, everything, chance


def test_a_reset_does_what_its_effect_says() -> None:
    state, everything, _ = states()
    waiting = [each for each in everything if not state.is_acknowledged(each)]
    for target in everything:
        effect = effect_of(state, target)
        after = state.reset_target(target, None)
        assert effect.backlog == len(waiting)
        assert effect.backlog_after == after.backlog_count()
        assert effect.acknowledges == sum(each < target for each in waiting)
        assert effect.redelivers == sum(
            each >= target and state.is_acknowledged(each) for each in everything
        )


def test_skipping_does_what_its_effect_says() -> None:
    state, everything, _ = states()
    for through in everything:
        effect = effect_of_skipping(state, through)
        left = [each for each in everything if each > through and not state.is_acknowledged(each)]
        waiting = state.backlog_count()
        assert effect.backlog_after == len(left)
        assert effect.acknowledges == waiting - len(left)
        assert effect.redelivers == 0


async def filled(console: ConsoleCalls) -> str:
    """A topic of ten entries, a subscription that has acknowledged 3, 5 and 7; its REST path."""
    producer = await console.client.create_producer("t")
    consumer = await console.client.subscribe("t", "s", ack_receipt_enabled=True)
    for number in range(10):
        await producer.send(b"%d" % number)
    received = [await consumer.receive() for _ in range(10)]
    await consumer.acknowledge([received[3], received[5], received[7]])
    await consumer.close()
    return "/admin/v2/persistent/public/default/t/subscription/s"


@pytest.mark.parametrize(
    ("query", "act", "body"),
    [
        ("action=skip&count=4", "/skip/4", ...),
        ("action=skip&count=400", "/skip/400", ...),
        ("action=clear", "/skip_all", ...),
        ("action=expire&seconds=0", "/expireMessages/0", ...),
        ("action=reset&timestamp=0", "/resetcursor/0", ...),
        ("action=reset&messageId=LEDGER:6", "/resetcursor", 6),
    ],
)
async def test_the_act_does_what_its_preview_says(
    console: ConsoleCalls, query: str, act: str, body: object
) -> None:
    path = await filled(console)
    subscription = console.topic("t").subscriptions["s"]
    ledger_id = console.topic("t").ledger.last_confirmed_entry.ledger_id
    query = query.replace("LEDGER", str(ledger_id))
    (before,) = await console.get(f"{TOPIC}/t/subscription/s/preview?{query}")
    assert before["backlog"] == subscription.cursor.backlog_count() == 7
    if body is not ...:
        body = {"ledgerId": ledger_id, "entryId": body}
    assert await console.status("POST", path + act, body) == 204
    assert subscription.cursor.backlog_count() == before["backlogAfter"]
    expected = before["backlog"] - before["acknowledges"] + before["redelivers"]
    assert before["backlogAfter"] == expected


async def test_a_preview_changes_nothing(console: ConsoleCalls) -> None:
    await filled(console)
    for query in ("action=clear", "action=reset&timestamp=0"):
        await console.get(f"{TOPIC}/t/subscription/s/preview?{query}")
    assert console.topic("t").subscriptions["s"].cursor.backlog_count() == 7


async def test_what_can_not_be_previewed_is_refused(console: ConsoleCalls) -> None:
    await filled(console)
    for query in (
        "",
        "action=jump",
        "action=skip",
        "action=skip&count=-1",
        "action=reset&messageId=x",
    ):
        path = f"{TOPIC}/t/subscription/s/preview?{query}"
        assert (await console.reason("GET", path))[0] == 400, query


async def test_a_subscription_that_is_not_there_is_404(console: ConsoleCalls) -> None:
    await console.client.create_producer("t")
    path = f"{TOPIC}/t/subscription/nothing/preview?action=clear"
    assert await console.status("GET", path) == 404
