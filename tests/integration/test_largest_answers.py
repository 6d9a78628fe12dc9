"""One answer of the administration, however large, does not keep others waiting: counted, not timed.

What is counted is calls that one turn of the loop makes, as for the largest commands.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.admin.http_messages import whole
from pulsar_py.common.loops.work import MAX_UNITS
from pulsar_py.common.names import TopicName
from pulsar_py.metadata import paths
from pulsar_py.standalone import Broker
from tests.counting_loop import CountingLoop

P = "/admin/v2/persistent/public/default"
PARTITIONS = 1_000
SUBSCRIPTIONS = 1_500
MAX_CALLS_A_TURN = 10 * MAX_UNITS
"""Calls that processing a unit costs, at most, times the units; a fifth of what each answer costs."""


async def call(app: AdminApp, method: str, path: str, body: bytes = b"") -> bytes:
    headers = {"content-type": "application/json"} if body else {}
    answer = await app.handle(method, path, headers, body)
    assert answer.status in (200, 204), answer.body
    return answer.body


async def partitioned(app: AdminApp, broker: Broker) -> None:
    await call(app, "PUT", P + "/p/partitions", str(PARTITIONS).encode())
    await call(app, "GET", P + "/p/partitioned-stats")  # loads them


async def subscribed(app: AdminApp, broker: Broker) -> None:
    await call(app, "PUT", P + "/t")
    topic = broker.service.topics.loaded(TopicName.parse("t"))
    assert topic is not None
    for index in range(SUBSCRIPTIONS):
        await topic.create_subscription(f"subscription {index}", starts_at_earliest=True)


def sums_up_partitions(answer: Any) -> bool:
    return len(answer["partitions"]) == PARTITIONS


def has_subscriptions(answer: Any) -> bool:
    return len(answer.get("subscriptions", answer.get("cursors"))) == SUBSCRIPTIONS


@pytest.mark.parametrize(
    ("prepare", "path", "is_whole"),
    [
        (partitioned, P + "/p/partitioned-stats", sums_up_partitions),
        (partitioned, P + "/p/partitioned-internalStats", sums_up_partitions),
        (partitioned, P + "/p/subscriptions", lambda answer: answer == []),
        (subscribed, P + "/t/stats", has_subscriptions),
        (subscribed, P + "/t/internalStats", has_subscriptions),
    ],
    ids=["partitioned-stats", "partitioned-internalStats", "names", "stats", "internalStats"],
)
def test_an_answer_keeps_nobody_waiting(prepare: Any, path: str, is_whole: Any) -> None:
    async def play() -> tuple[int, bytes]:
        loop = cast("CountingLoop", asyncio.get_running_loop())
        async with asyncio.timeout(120), Broker() as broker:
            app = AdminApp(all_routes(broker.service))
            await prepare(app, broker)
            loop.count()
            try:
                body = await call(app, "GET", path)
            finally:
                loop.stop_counting()
            return loop.most_calls, body

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        most_calls, body = runner.run(play())
    assert is_whole(json.loads(body))
    assert most_calls <= MAX_CALLS_A_TURN


TOPICS = 10_000
MAX_CALLS_OF_NAMES = 60_000
"""Of one turn: the store in memory lists, and sorts, all names in one."""


def test_a_list_of_topics_keeps_nobody_waiting() -> None:
    async def play() -> tuple[int, bytes]:
        loop = cast("CountingLoop", asyncio.get_running_loop())
        async with asyncio.timeout(120), Broker() as broker:
            app = AdminApp(all_routes(broker.service))
            for number in range(TOPICS):
                name = TopicName.parse(f"t{number}").managed_ledger_name
                await broker.service.metadata.put(paths.managed_ledger(name), b"")
            loop.count()
            try:
                answer = await app.handle("GET", P, {}, b"")
            finally:
                loop.stop_counting()
            return loop.most_calls, (await whole(answer)).body

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        most_calls, body = runner.run(play())
    assert len(json.loads(body)) == TOPICS
    assert most_calls <= MAX_CALLS_OF_NAMES
