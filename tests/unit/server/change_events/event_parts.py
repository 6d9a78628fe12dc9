"""What tests of policy events share: who else appends, and what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pulsar_py.common.names import TopicName
from pulsar_py.common.position import EARLIEST
from pulsar_py.managed_ledger.managed_ledger import InitialPosition
from pulsar_py.server.change_events.event_messages import event_entry, messages_of
from pulsar_py.server.compaction.compacted_source import CompactedSource
from pulsar_py.server.policies.policy_events import PolicyEvent, decode_event
from pulsar_py.server.topics.persistent import PersistentTopic
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of

EVENTS = NAMESPACE.topic("__change_events")
A, B = name_of("a"), name_of("b")


async def until(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    """Wait in virtual time."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - in virtual time nothing is wasted
            await asyncio.sleep(0.01)


def copies(rig: Rig, *, is_global: bool = False) -> Any:
    resources = rig.broker.resources
    return resources.global_topic_policies if is_global else resources.topic_policies


async def copy(rig: Rig, name: TopicName = A, *, is_global: bool = False) -> Any:
    """The document a topic is served by; None if there is none."""
    found = await copies(rig, is_global=is_global).get(name)
    return None if found is None else dict(found.json)


async def change(rig: Rig, name: TopicName = A, *, is_global: bool = False, **values: Any) -> None:
    await rig.broker.topic_policies.change(
        name, lambda known: {**known, **values}, is_global=is_global
    )


async def events_topic(rig: Rig) -> PersistentTopic:
    topic = await rig.topic(EVENTS)
    assert isinstance(topic, PersistentTopic)
    return topic


async def append(rig: Rig, event: PolicyEvent, *, at_millis: int | None = None) -> None:
    """Append an event as another broker would."""
    topic = await events_topic(rig)
    now = rig.clock.wall_time_millis() if at_millis is None else at_millis
    data = event_entry(
        event, "c", producer_name="q", sequence_id=0, schema_version=b"", now_millis=now
    )
    await topic.ledger.append_and_wait(data)


async def logged(rig: Rig) -> list[PolicyEvent]:
    """The events of the log, as a new reader from the earliest one gets them."""
    topic = await events_topic(rig)
    cursor = topic.ledger.new_non_durable_cursor("test", InitialPosition.EARLIEST)
    assert topic.compaction is not None
    compaction = topic.compaction
    source = CompactedSource(
        cursor, lambda: compaction.compacted, compaction.on_missing, start=EARLIEST
    )
    found: list[PolicyEvent] = []
    while entries := await source.read(100, 1_000_000):
        for entry in entries:
            for message in messages_of(entry.data):
                event = decode_event(message.key, message.payload)
                assert event is not None
                found.append(event)
    await cursor.close()
    return found


def local(name: TopicName = A, **document: Any) -> PolicyEvent:
    return PolicyEvent(name, is_global=False, document=document)


def gone(name: TopicName = A, *, is_global: bool = False) -> PolicyEvent:
    return PolicyEvent(name, is_global, None)
