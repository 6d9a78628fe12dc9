from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from pulsar_py.common.errors import (
    MetadataUnavailableError,
    NotAllowedError,
    PulsarError,
    ServiceError,
    ServiceNotReadyError,
    TopicBusyError,
    TopicExistsError,
    TopicNotFoundError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.topics.partitions import TOPICS_AT_ONCE
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS
from pulsar_py.server.topics.topic_state import TopicState
from pulsar_py.testing.clock import VirtualClock
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


async def test_clients_that_connect_while_a_partitioned_topic_goes_make_no_partition_again(
    rig: Rig,
) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 60)
    names = [name_of("p").partition(index) for index in range(60)]
    loaded = [await rig.topic(name) for name in names]
    is_over = asyncio.Event()

    async def connect() -> None:
        while not is_over.is_set():
            for name in names:
                with contextlib.suppress(ServiceError):
                    await topics.get_or_load(name, create_if_missing=True)
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(connect())
        await asyncio.sleep(0)
        await topics.partitioned.delete(name_of("p"), force=True)
        is_over.set()
    assert await topics.list_topics(NAMESPACE) == []
    assert all(topic.state is TopicState.CLOSED for topic in loaded)


async def test_a_deletion_that_failed_lets_partitions_be_made_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 2)

    async def fail(name: TopicName, *, force: bool = False) -> None:
        raise ServiceNotReadyError(f"{name} {force}")

    with monkeypatch.context() as patch:
        patch.setattr(topics, "delete", fail)
        with pytest.raises(ServiceNotReadyError):
            await topics.partitioned.delete(name_of("p"))
    await topics.delete(name_of("p-partition-1"))
    await rig.topic("p-partition-1")
    assert len(await topics.list_topics(NAMESPACE)) == 2


@pytest.mark.parametrize("count", [2, 3])
async def test_growing_ends_a_deletion_that_was_cut_short(rig: Rig, count: int) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 2)
    await rig.broker.resources.partitioned_topics.update(
        name_of("p"), lambda metadata: metadata.replace(is_deleted=True)
    )
    await topics.delete(name_of("p-partition-1"))
    with pytest.raises(TopicNotFoundError):
        await rig.topic("p-partition-1")
    await topics.partitioned.grow(name_of("p"), count)
    await topics.delete(name_of("p-partition-0"))
    await rig.topic("p-partition-0")
    assert len(await topics.list_topics(NAMESPACE)) == count


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


class WatchedMetadata(MemoryMetadataStore):
    """Calls `before_put` with the number of each put since it was set, from 0."""

    before_put: Callable[[int], Awaitable[None]] | None = None
    puts_count = 0

    async def put(self, path: str, value: bytes, **options: Any) -> int:
        number, self.puts_count = self.puts_count, self.puts_count + 1
        if self.before_put is not None:
            await self.before_put(number)
        return await super().put(path, value, **options)

    def watch_puts(self, before_put: Callable[[int], Awaitable[None]] | None) -> None:
        self.puts_count, self.before_put = 0, before_put


OLD, NEW = 2, 4
"""Partitions before growing and after."""


async def grown_rig(rig: Rig) -> None:
    """A topic of two partitions with two subscriptions, one of them on the second alone."""
    await rig.broker.topics.partitioned.create(name_of("p"), OLD)
    for index, name in ((0, "a"), (1, "a"), (1, "b")):
        topic = await rig.topic(f"p-partition-{index}")
        await topic.create_subscription(name, starts_at_earliest=False)


async def subscriptions_of(rig: Rig, partitions_count: int) -> list[list[str]]:
    return [
        sorted((await rig.topic(f"p-partition-{index}")).subscriptions)
        for index in range(partitions_count)
    ]


@pytest.mark.parametrize("wanted", [NEW, NEW + 1])
async def test_growing_that_was_cut_short_is_completed_by_growing_again(
    virtual_clock: VirtualClock, wanted: int
) -> None:
    steps = 0
    while True:
        metadata = WatchedMetadata(virtual_clock)
        async with Rig(virtual_clock, metadata=metadata) as rig:
            await grown_rig(rig)

            async def fail(number: int, first: int = steps) -> None:
                if number >= first:
                    raise MetadataUnavailableError("the broker is dead")

            metadata.watch_puts(fail)
            try:
                await rig.broker.topics.partitioned.grow(name_of("p"), NEW)
            except PulsarError:
                pass
            else:
                break
            metadata.watch_puts(None)
            await rig.restart()
            count = await rig.broker.topics.partitioned.count(name_of("p"))
            if count == NEW:  # whoever sees the number sees the subscriptions
                assert await subscriptions_of(rig, NEW) == [["a"], ["a", "b"], *[["a", "b"]] * 2]
            await rig.broker.topics.partitioned.grow(name_of("p"), wanted)
            assert await subscriptions_of(rig, wanted) == [["a", "b"]] * wanted
        steps += 1
    # Two topics, three ledgers' lists and cursors, at least: there was something to cut.
    assert steps > 6


async def test_who_subscribes_while_a_topic_grows_is_on_the_new_partitions(
    virtual_clock: VirtualClock,
) -> None:
    gap, has_subscribed = 0, True
    while has_subscribed:
        metadata = WatchedMetadata(virtual_clock)
        async with Rig(virtual_clock, metadata=metadata) as rig:
            await grown_rig(rig)
            has_subscribed = await grow_with_a_subscribe(rig, metadata, gap)
            names = ["a", "b", "late"] if has_subscribed else ["a", "b"]
            assert await subscriptions_of(rig, NEW) == [names] * NEW
        gap += 1
    assert gap > 6


async def grow_with_a_subscribe(rig: Rig, metadata: WatchedMetadata, gap: int) -> bool:
    """Grow, and subscribe before that put; False if growing has fewer."""
    tasks = TaskOwner("test")
    subscribing: list[asyncio.Task[object]] = []

    async def subscribe() -> None:
        topic = await rig.topic("p-partition-0")
        await topic.create_subscription("late", starts_at_earliest=False)

    async def before_put(number: int) -> None:
        if number == gap and not subscribing:
            subscribing.append(tasks.spawn(subscribe(), "subscribe"))
            for _ in range(10):  # it may have to wait for the put
                await asyncio.sleep(0)

    metadata.watch_puts(before_put)
    await rig.broker.topics.partitioned.grow(name_of("p"), NEW)
    metadata.watch_puts(None)
    for task in subscribing:
        await task
    await tasks.close()
    return bool(subscribing)


async def test_the_same_number_completes_what_is_missing(rig: Rig) -> None:
    topics = rig.broker.topics
    await grown_rig(rig)
    await topics.partitioned.grow(name_of("p"), NEW)
    await topics.delete(name_of("p-partition-1"))
    lacking = await rig.topic("p-partition-3")
    await lacking.delete_subscription("a")
    await topics.partitioned.create_missed(name_of("p"))
    assert await topics.list_topics(NAMESPACE) == [
        str(name_of(f"p-partition-{index}")) for index in range(NEW)
    ]
    assert await subscriptions_of(rig, NEW) == [["a", "b"]] * NEW
    with pytest.raises(TopicNotFoundError):
        await topics.partitioned.create_missed(name_of("unknown"))


async def test_deleting_takes_partitions_that_growing_left_behind(rig: Rig) -> None:
    topics = rig.broker.topics
    await topics.partitioned.create(name_of("p"), 1)
    await topics._partitions.create_stored([name_of("p-partition-1"), name_of("q-partition-1")])
    await topics.partitioned.delete(name_of("p"))
    assert await topics.list_topics(NAMESPACE) == [str(name_of("q-partition-1"))]


async def test_a_topic_that_grows_is_deleted_with_its_new_partitions(rig: Rig) -> None:
    partitioned = rig.broker.topics.partitioned
    await partitioned.create(name_of("p"), 1)
    await asyncio.gather(partitioned.grow(name_of("p"), 40), partitioned.delete(name_of("p")))
    assert await rig.broker.topics.list_topics(NAMESPACE) == []
    assert await partitioned.count(name_of("p")) == 0
