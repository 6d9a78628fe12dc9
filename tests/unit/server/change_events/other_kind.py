"""A cluster of `one`, which is ours, and `two`, which passes for a broker of another kind.

It does not say that it is ours, and it writes no copies of the policies that its log has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from pulsar_py.common.names import TopicName
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.testing.network import run_simulated
from tests.simulation.brokers_world import LATENCY_SECONDS, NAMESPACE
from tests.simulation.cluster_world import ClusterWorld, service, until

EVENTS = NAMESPACE.topic("__change_events")

Test = Callable[[ClusterWorld], Awaitable[None]]


def beside_another_kind(test: Test) -> Callable[[], None]:
    """Run a test in such a cluster."""
    encode = BrokerReport.encode

    def encoded(report: BrokerReport) -> bytes:
        return encode(replace(report, is_ours=report.broker_id != "two:8080"))

    async def run() -> None:
        async with ClusterWorld("one", "two").running() as world:
            both = ("one", "two")
            await until(
                lambda: all(len(service(world, n).membership.directory.brokers) == 2 for n in both),
                seconds=3,
            )
            events = service(world, "two").topic_policies._of(NAMESPACE)
            with patch.object(events.copies, "apply", _nothing):
                await test(world)

    def wrapped() -> None:
        with patch.object(BrokerReport, "encode", encoded):
            run_simulated(run(), latency_seconds=LATENCY_SECONDS)

    wrapped.__name__ = test.__name__
    return wrapped


async def _nothing(_: object) -> None:
    """What a broker does with copies that keeps none."""


async def place(world: ClusterWorld, name: TopicName, owner: str) -> None:
    """Have the bundle of a topic served by a broker."""
    namespaces = service(world, owner).namespaces
    await namespaces.acquire_bundle(NAMESPACE, await namespaces.bundle_of(name))
    assert namespaces.is_owned(name)


async def topic_at_one(world: ClusterWorld, *, events_at: str) -> TopicName:
    """A topic that `one` serves, in another bundle than the events; those have their owner."""
    namespaces = service(world, "one").namespaces
    of_events = await namespaces.bundle_of(EVENTS)
    for number in count():
        name = NAMESPACE.topic(f"t{number}")
        if await namespaces.bundle_of(name) != of_events:
            break
    await place(world, EVENTS, events_at)
    await place(world, name, "one")
    return name


async def change(world: ClusterWorld, at: str, name: TopicName, **values: Any) -> None:
    await service(world, at).topic_policies.change(name, lambda known: {**known, **values})


async def copy(world: ClusterWorld, name: TopicName) -> dict[str, Any] | None:
    """The document by which `one` serves a topic."""
    found = await service(world, "one").resources.topic_policies.get(name)
    return None if found is None else dict(found.json)
