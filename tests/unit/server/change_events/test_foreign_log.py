"""One log that another kind of broker serves, and the copies that follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from pulsar_py.common.errors import ServiceNotReadyError, TopicNotFoundError
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.server.change_events.event_decoder import EventDecoder, LoggedEvent
from pulsar_py.server.change_events.event_messages import EventMessage
from pulsar_py.server.change_events.foreign_log import CHANGE_SECONDS, ForeignLog
from pulsar_py.server.policies.policy_events import PolicyEvent, encode_event
from tests.unit.server.change_events.event_parts import EVENTS, A, B, copies, copy, gone, local
from tests.unit.server.topics.rig import NAMESPACE, Rig

EVENT = local(maxProducerPerTopic=1)


class Elsewhere:
    """A log of another broker; it has what `events` has."""

    def __init__(self, *events: PolicyEvent) -> None:
        self.events = list(events)
        self.grown = asyncio.Event()
        self.read_count = 0
        self.is_deaf = False
        self.has_property = False

    @asynccontextmanager
    async def open(self, name: TopicName) -> AsyncIterator[Elsewhere]:
        assert name == EVENTS
        self.read_count = 0
        yield self

    @property
    def place(self) -> tuple[int, int]:
        return (0, self.read_count)

    async def read(self) -> list[EventMessage]:
        await asyncio.sleep(0.001)
        if self.is_deaf or self.read_count == len(self.events):
            return []
        event = self.events[self.read_count]
        self.read_count += 1
        return [EventMessage(event.key, encode_event(event, "c"), b"", 1)]

    async def wait(self) -> None:
        await self.grown.wait()
        self.grown.clear()

    async def append(self, event: PolicyEvent) -> tuple[int, int]:
        self.events.append(event)
        self.grown.set()
        return (0, len(self.events))

    async def is_followed(self) -> bool:
        return self.has_property

    async def set_followed(self) -> None:
        self.has_property = True


@pytest.fixture
async def tasks() -> AsyncIterator[TaskOwner]:
    owner = TaskOwner("test")
    yield owner
    await owner.close()


def followed(rig: Rig, elsewhere: Elsewhere, tasks: TaskOwner) -> ForeignLog:
    events = rig.broker.topic_policies._of(NAMESPACE)
    log = ForeignLog(events, EventDecoder(EVENTS, rig.broker.schemas))
    tasks.spawn(log.follow(elsewhere.open), "follow")
    return log


async def test_the_last_event_of_each_topic_is_the_copy(rig: Rig, tasks: TaskOwner) -> None:
    elsewhere = Elsewhere(EVENT, local(B), local(maxProducerPerTopic=2), gone(B))
    await followed(rig, elsewhere, tasks).opened()
    assert await copy(rig) == {"maxProducerPerTopic": 2}
    assert await copy(rig, B) is None
    assert elsewhere.has_property
    await elsewhere.append(gone())
    await asyncio.sleep(0.1)
    assert await copy(rig) is None


async def test_what_another_broker_wrote_late_is_corrected(rig: Rig, tasks: TaskOwner) -> None:
    """The newer event came while the older one was being written."""
    elsewhere = Elsewhere(EVENT)
    apply = rig.broker.topic_policies._of(NAMESPACE).copies.apply

    async def slow(event: PolicyEvent) -> None:
        if event == EVENT:
            elsewhere.events.append(local(maxProducerPerTopic=2))
        await apply(event)

    rig.broker.topic_policies._of(NAMESPACE).copies.apply = slow  # type: ignore[method-assign]
    await followed(rig, elsewhere, tasks).opened()
    assert await copy(rig) == {"maxProducerPerTopic": 2}


async def test_a_change_is_made_when_it_was_read_back(rig: Rig, tasks: TaskOwner) -> None:
    elsewhere = Elsewhere(EVENT)
    log = followed(rig, elsewhere, tasks)
    await log.change(A, lambda known: {**known, "maxConsumerPerTopic": 3}, is_global=False)
    assert await copy(rig) == {"maxProducerPerTopic": 1, "maxConsumerPerTopic": 3}
    await log.change(A, lambda known: known, is_global=False)
    assert len(elsewhere.events) == 2, "nothing was changed"
    await log.remove(A)
    await log.remove(B)  # which has none
    assert await copy(rig) is None
    assert elsewhere.events[2:] == [gone()]


async def test_a_change_that_is_read_before_it_is_confirmed_is_awaited_all_the_same(
    rig: Rig, tasks: TaskOwner
) -> None:
    elsewhere = Elsewhere(EVENT)
    log = followed(rig, elsewhere, tasks)
    await log.opened()
    append, decode = elsewhere.append, log._decoder.events_of

    async def confirm_late(event: PolicyEvent) -> tuple[int, int]:
        place = await append(event)
        await asyncio.sleep(0.005)
        assert elsewhere.place == place, "it was read"
        return place

    async def decode_late(messages: Sequence[EventMessage], where: str) -> Sequence[LoggedEvent]:
        await asyncio.sleep(0.01)
        return await decode(messages, where)

    elsewhere.append = confirm_late  # type: ignore[method-assign]
    log._decoder.events_of = decode_late  # type: ignore[method-assign]
    await log.change(A, lambda known: {**known, "maxConsumerPerTopic": 3}, is_global=False)
    assert await copy(rig) == {"maxProducerPerTopic": 1, "maxConsumerPerTopic": 3}


async def test_changes_at_the_same_moment_all_hold(rig: Rig, tasks: TaskOwner) -> None:
    """Each event has all policies of its topic, so each has to be made of the one before."""
    log = followed(rig, Elsewhere(EVENT), tasks)
    names = ("maxConsumerPerTopic", "maxSubscriptionsPerTopic", "maxMessageSize")

    async def set_one(name: str) -> None:
        await log.change(A, lambda known: {**known, name: 3}, is_global=False)

    await asyncio.gather(*map(set_one, names))
    assert await copy(rig) == {"maxProducerPerTopic": 1, **dict.fromkeys(names, 3)}


async def test_a_change_waits_behind_others_no_longer_than_for_itself(
    rig: Rig, tasks: TaskOwner
) -> None:
    elsewhere = Elsewhere()
    log = followed(rig, elsewhere, tasks)
    await log.opened()
    elsewhere.is_deaf = True
    begun = rig.clock.monotonic_seconds()
    results = await asyncio.gather(
        *(log.change(each, lambda _: EVENT.document or {}, is_global=False) for each in (A, B)),
        log.remove(A),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [ServiceNotReadyError] * 3
    assert rig.clock.monotonic_seconds() - begun == pytest.approx(CHANGE_SECONDS, abs=0.1)
    assert len(elsewhere.events) == 1, "those behind it were never appended"


async def test_a_change_that_is_not_read_back_is_no_success(rig: Rig, tasks: TaskOwner) -> None:
    elsewhere = Elsewhere()
    log = followed(rig, elsewhere, tasks)
    await log.opened()
    elsewhere.is_deaf = True
    begun = rig.clock.monotonic_seconds()
    with pytest.raises(ServiceNotReadyError, match="not read in time"):
        await log.change(A, lambda _: {"maxProducerPerTopic": 1}, is_global=False)
    assert rig.clock.monotonic_seconds() - begun == pytest.approx(CHANGE_SECONDS, abs=0.1)


async def test_who_waits_is_told_that_it_ended(rig: Rig, tasks: TaskOwner) -> None:
    @asynccontextmanager
    async def missing(_: TopicName) -> AsyncIterator[Elsewhere]:
        raise TopicNotFoundError("none")
        yield

    events = rig.broker.topic_policies._of(NAMESPACE)
    log = ForeignLog(events, EventDecoder(EVENTS, rig.broker.schemas))
    waiting = tasks.spawn(log.opened(), "wait")
    await asyncio.sleep(0)
    with pytest.raises(TopicNotFoundError):
        await log.follow(missing)
    with pytest.raises(ServiceNotReadyError, match="try again"):
        await waiting


@pytest.mark.parametrize("has_property", [False, True])
async def test_a_copy_without_event_goes_if_copies_follow_the_log(
    rig: Rig, tasks: TaskOwner, *, has_property: bool
) -> None:
    await copies(rig).create(B, TopicPolicies({"maxProducerPerTopic": 3}))
    elsewhere = Elsewhere(EVENT)
    elsewhere.has_property = has_property
    await followed(rig, elsewhere, tasks).opened()
    assert await copy(rig) == {"maxProducerPerTopic": 1}
    assert (await copy(rig, B) is None) == has_property
    assert elsewhere.has_property == has_property, "else a copy would go that was never an event"


async def test_nothing_is_written_once_the_log_is_served_here(rig: Rig, tasks: TaskOwner) -> None:
    elsewhere = Elsewhere()
    log = followed(rig, elsewhere, tasks)
    await log.opened()
    await rig.broker.topic_policies.change(B, lambda _: {"maxProducerPerTopic": 1})
    assert rig.broker.topic_policies._of(NAMESPACE).is_served_here
    await elsewhere.append(EVENT)
    await asyncio.sleep(0.1)
    assert await copy(rig) is None
    with pytest.raises(ServiceNotReadyError):
        await log.opened()
