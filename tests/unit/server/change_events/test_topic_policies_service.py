"""What the registry and the administration tell the service of topics' policies."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import TopicNotFoundError
from pulsar_py.metadata.documents import TopicPolicies
from pulsar_py.server.config import BrokerConfig
from pulsar_py.testing.clock import VirtualClock
from tests.unit.server.change_events.event_parts import (
    EVENTS,
    A,
    B,
    append,
    change,
    copies,
    copy,
    gone,
    local,
    logged,
    until,
)
from tests.unit.server.topics.rig import NAMESPACE, Rig


async def test_a_deleted_topic_takes_its_policies_along(rig: Rig) -> None:
    await rig.persistent("a")
    await rig.persistent("b")
    await change(rig, maxProducerPerTopic=1)
    await rig.broker.topics.delete(A)
    await rig.broker.topics.delete(B)  # which has none
    assert await copy(rig) is None
    assert await logged(rig) == [local(maxProducerPerTopic=1), gone()]


async def test_a_deleted_partitioned_topic_takes_its_policies_along(rig: Rig) -> None:
    await rig.broker.topics.partitioned.create(A, 2)
    await change(rig, A.partition(1), maxProducerPerTopic=1)
    assert await copy(rig) == {"maxProducerPerTopic": 1}
    await rig.broker.topics.partitioned.delete(A)
    assert await copy(rig) is None
    assert await logged(rig) == [local(maxProducerPerTopic=1), gone()]


async def test_loading_topics_makes_no_log(rig: Rig) -> None:
    await rig.persistent("a")
    await rig.broker.topics.delete(A)
    await asyncio.sleep(1)
    assert not await rig.broker.topics.exists(EVENTS)


async def test_a_log_that_appears_later_is_followed(rig: Rig) -> None:
    topic = await rig.persistent("a")
    await asyncio.sleep(1)
    await append(rig, local(maxProducerPerTopic=2))
    await until(lambda: topic.settings.max_producers == 2)


async def test_deleting_a_namespace_appends_nothing_and_leaves_nothing(rig: Rig) -> None:
    topics = rig.broker.topics
    await rig.persistent("z")
    await change(rig, maxProducerPerTopic=1)
    await change(rig, is_global=True, maxProducerPerTopic=1)
    async with rig.broker.topic_policies.deleting(NAMESPACE):
        await topics.delete(EVENTS, force=True)
        await topics.delete(NAMESPACE.topic("z"))
    assert await copies(rig).list(NAMESPACE) == []
    assert await copies(rig, is_global=True).list(NAMESPACE) == []
    assert not await topics.exists(EVENTS)
    await change(rig, B, maxProducerPerTopic=2)
    assert await logged(rig) == [local(B, maxProducerPerTopic=2)]


async def test_a_namespace_whose_deletion_failed_goes_on(rig: Rig) -> None:
    await change(rig, maxProducerPerTopic=1)
    with pytest.raises(TopicNotFoundError):
        async with rig.broker.topic_policies.deleting(NAMESPACE):
            await rig.broker.topics.delete(NAMESPACE.topic("missing"))
    await change(rig, maxProducerPerTopic=2)
    assert len(await logged(rig)) == 2


@pytest.mark.parametrize("name", ["systemTopicEnabled", "topicLevelPoliciesEnabled"])
async def test_without_topic_policies_no_log_is_followed(
    virtual_clock: VirtualClock, name: str
) -> None:
    config = BrokerConfig(**{name: False})
    async with Rig(virtual_clock, config=config) as rig:
        await rig.persistent("a")
        await append(rig, local(maxProducerPerTopic=2))
        await asyncio.sleep(1)
        assert await copy(rig) is None
        await copies(rig).create(A, TopicPolicies(max_producers=1))
        await rig.broker.topics.delete(A)
        assert await copy(rig) is None
        assert await logged(rig) == [local(maxProducerPerTopic=2)]
