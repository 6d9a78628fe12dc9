from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from pulsar_py.common.errors import (
    NotAllowedError,
    TopicBusyError,
    TopicExistsError,
    TopicNotFoundError,
)
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.common.tasks import TaskOwner
from pulsar_py.server.topics.partitions import TOPICS_AT_ONCE
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS
from tests.unit.server.topics.rig import NAMESPACE, Rig, name_of


async def test_partitions_exist_once_the_topic_is_created(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 3)
    assert await topics.partitioned.count(name_of("p")) == 3
    assert await topics.list_topics(NAMESPACE) == [
        str(name_of(f"p-partition-{n}")) for n in range(3)
    ]
    assert await topics.partitioned.names(NAMESPACE) == [str(name_of("p"))]
    with pytest.raises(TopicExistsError):
        await topics.partitioned.create(name_of("p"), 3)
    await rig.topic("t")
    with pytest.raises(TopicExistsError):
        await topics.partitioned.create(name_of("t"), 3)
    with pytest.raises(TopicExistsError):
        await topics.create_topic(name_of("p"))


async def test_growing_copies_subscriptions_to_the_new_partitions(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 1)
    first = await rig.topic("p-partition-0")
    await first.create_subscription("sub", starts_at_earliest=False)
    await rig.clock.sleep(2)
    await topics.partitioned.grow(name_of("p"), 3)
    for index in (1, 2):
        topic = await rig.topic(f"p-partition-{index}")
        assert list(topic.subscriptions) == ["sub"]
    with pytest.raises(NotAllowedError):
        await topics.partitioned.grow(name_of("p"), 2)
    with pytest.raises(TopicNotFoundError):
        await topics.partitioned.grow(name_of("unknown"), 2)


async def test_partitioned_metadata_is_created_by_policy(rig: Rig) -> None:
    topics = rig.broker.topics
    assert await topics.partitioned.count_or_create(name_of("t"), auto_create=True) == 0
    with pytest.raises(TopicNotFoundError):
        await topics.partitioned.count_or_create(name_of("t"), auto_create=False)
    policy = AutoTopicCreation(True, TopicType.PARTITIONED, 4)
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(auto_topic_creation=policy)
    )
    counts = await asyncio.gather(
        *(topics.partitioned.count_or_create(name_of("t"), auto_create=True) for _ in range(4))
    )
    assert counts == [4, 4, 4, 4]
    assert await topics.list_topics(NAMESPACE) == []
    with pytest.raises(TopicNotFoundError, match="Namespace not found"):
        await topics.partitioned.count_or_create(
            TopicName.parse("persistent://public/none/t"), auto_create=True
        )


async def test_deleting_a_partitioned_topic_deletes_all_of_it(rig: Rig) -> None:
    topics, cnx = rig.broker.topics, rig.cnx()
    await topics.partitioned.create(name_of("p"), 2)
    with pytest.raises(NotAllowedError):
        await topics.delete(name_of("p"))
    topic = await rig.topic("p-partition-0")
    await rig.producer(topic, cnx, producer_id=1)
    with pytest.raises(TopicBusyError):
        await topics.partitioned.delete(name_of("p"))
    assert len(await topics.list_topics(NAMESPACE)) == 2
    await topics.partitioned.delete(name_of("p"), force=True)
    assert await topics.list_topics(NAMESPACE) == []
    assert await topics.partitioned.count(name_of("p")) == 0
    assert cnx.closed_producers == [1]
    with pytest.raises(TopicNotFoundError):
        await topics.partitioned.delete(name_of("p"))


async def test_an_emptied_partitioned_topic_can_be_forgotten(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 2)
    await topics.delete(name_of("p-partition-0"))
    await topics.partitioned.forget_if_empty(name_of("p"))
    assert await topics.partitioned.count(name_of("p")) == 2
    await topics.delete(name_of("p-partition-1"))
    await topics.partitioned.forget_if_empty(name_of("p"))
    assert await topics.partitioned.count(name_of("p")) == 0


async def test_a_topic_has_no_more_partitions_than_are_allowed(rig: Rig) -> None:
    topics = rig.broker.topics
    beyond = MAX_PARTITIONS + 1
    with pytest.raises(NotAllowedError, match=str(MAX_PARTITIONS)):
        await topics.partitioned.create(name_of("p"), beyond)
    await topics.partitioned.create(name_of("p"), 1)
    with pytest.raises(NotAllowedError, match=str(MAX_PARTITIONS)):
        await topics.partitioned.grow(name_of("p"), beyond)
    policy = AutoTopicCreation(True, TopicType.PARTITIONED, beyond)
    await rig.broker.resources.namespaces.update(
        NAMESPACE, lambda old: old.replace(auto_topic_creation=policy)
    )
    with pytest.raises(NotAllowedError, match=str(MAX_PARTITIONS)):
        await topics.partitioned.count_or_create(name_of("q"), auto_create=True)
    assert await topics.partitioned.count(name_of("q")) == 0


async def test_others_have_turns_while_many_partitions_come_and_go(rig: Rig) -> None:
    partitioned = rig.broker.topics.partitioned
    count = 40 * TOPICS_AT_ONCE
    assert await turns_during(partitioned.create(name_of("p"), count)) >= 40
    assert await turns_during(partitioned.grow(name_of("p"), 2 * count)) >= 40
    assert await turns_during(partitioned.delete(name_of("p"))) >= 80


async def turns_during(work: Coroutine[Any, Any, None]) -> int:
    """How often the loop came round while the work was done."""
    tasks = TaskOwner("test")
    task = tasks.spawn(work, "work")
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    await tasks.close()
    return turns
