"""Cases of two brokers that seeds met once and seldom meet, each made on purpose, step by step.

What the brokers do about them is a mutation each, which has to fail here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from pulsar_py.common.errors import (
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    PulsarError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.managed_ledger.log.ledger_format import ledger_path
from pulsar_py.metadata import paths
from pulsar_py.testing.network import run_simulated
from tests.simulation.broker_mutations import MUTATIONS
from tests.simulation.brokers_world import LATENCY_SECONDS, NAMESPACE, Node, World

TOPIC = TopicName.parse("persistent://public/default/t")
LATE_SECONDS = 1.0
CUT_SECONDS = 3.0
"""Of the connection to the metadata, which the session survives."""


@contextmanager
def owner_created_late(world: World, node: Node) -> Iterator[None]:
    """The next record of an owner gets no answer and is made late; the connection is lost first."""
    put, service = node.metadata.put, world.metadata.service

    async def unanswered(path: str, value: bytes, **how: Any) -> int:
        if not path.startswith(paths.OWNERSHIP):
            return await put(path, value, **how)
        owner = how["session"].session_id
        asyncio.get_running_loop().call_later(
            LATE_SECONDS, service.put, path, value, how["expected_version"], owner
        )
        node.cut(CUT_SECONDS)
        raise MetadataOutcomeUnknownError(f"{path}: no answer")

    with patch.object(node.metadata, "put", unanswered):
        yield


async def a_record_is_made_late(world: World) -> None:
    """Nobody asks its owner again: others send clients there."""
    one, two = (node.broker.service.namespaces for node in world.nodes)
    with owner_created_late(world, world.nodes[0]), pytest.raises(MetadataUnavailableError):
        await one.lookup(TOPIC)
    await asyncio.sleep(CUT_SECONDS + 1)
    found = await two.lookup(TOPIC)
    assert found.addresses.broker_url == world.nodes[0].url, "its record came to be"
    assert one.is_owned(TOPIC), "the owner does not know"


async def a_topic_opens_while_its_bundle_is_given_up(world: World) -> None:
    """Its session is good all the time; what it read is what the next owner wrote."""
    one, two = world.nodes
    namespaces = one.broker.service.namespaces
    path = ledger_path(TOPIC.managed_ledger_name)
    async with world.client("first", one.name) as client:
        producer = await client.create_producer(str(TOPIC))
        await producer.send(b"first")
        await producer.close()
    bundle = await namespaces.bundle_of(TOPIC)
    await one.broker.service.topics.unload(TOPIC)
    get, is_given_up = one.metadata.get, asyncio.Event()

    async def late(asked: str) -> Any:
        if asked == path:
            await is_given_up.wait()
        return await get(asked)

    with patch.object(one.metadata, "get", late):
        opening = asyncio.get_running_loop().create_task(
            one.broker.service.topics.get_or_load(TOPIC, create_if_missing=True)
        )
        await asyncio.sleep(0.1)
        await namespaces.unload_bundle(NAMESPACE, bundle)
        async with world.client("second", two.name) as client:
            producer = await client.create_producer(str(TOPIC))
            second = await producer.send(b"second")
            before = await two.metadata.get(path)
            is_given_up.set()
            [outcome] = await asyncio.gather(opening, return_exceptions=True)
            await two.metadata.sync(path)
            assert await two.metadata.get(path) == before, "a former owner wrote the list"
            third = await producer.send(b"third")
            assert third > second
    assert isinstance(outcome, PulsarError), "it opened what it does not own"


CASES: dict[Callable[[World], Awaitable[None]], tuple[str, str]] = {
    a_record_is_made_late: ("a_record_without_an_answer_is_forgotten", "does not know"),
    a_topic_opens_while_its_bundle_is_given_up: (
        "who_gave_a_bundle_up_writes_on",
        "a former owner wrote",
    ),
}
"""What happens, the mutation that does not see to it, and what becomes of that."""


def play(case: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with World(case.__name__).running() as world:
            await case(world)

    run_simulated(run(), latency_seconds=LATENCY_SECONDS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_two_brokers_see_to_it(case: Callable[[World], Awaitable[None]]) -> None:
    play(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_without_what_sees_to_it_the_case_fails(case: Callable[[World], Awaitable[None]]) -> None:
    mutation, failure = CASES[case]
    with MUTATIONS[mutation](), pytest.raises(AssertionError, match=failure):
        play(case)
