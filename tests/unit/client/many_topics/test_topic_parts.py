"""Parts: all or none, partitions, growth, closing at any time; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.client.many_topics.topic_parts import PartRequest, TopicParts
from pulsar_py.common.errors import AlreadyClosedError, AuthorizationError
from pulsar_py.testing.clock import run_virtual

NAMESPACE = "persistent://public/default"
A, B = f"{NAMESPACE}/a", f"{NAMESPACE}/b"


class World:
    """Topics with partitions, and parts that were opened."""

    def __init__(self, **counts: int) -> None:
        self.counts = {f"{NAMESPACE}/{name}": count for name, count in counts.items()}
        self.forbidden: set[str] = set()
        self.open: dict[str, PartRequest] = {}
        self.told_opened: list[str] = []
        self.told_closed: list[str] = []

    def parts(self) -> TopicParts[OpenPart]:
        return TopicParts(
            self.open_part,
            self.partitions_count,
            on_opened=lambda part: self.told_opened.append(part.name),
            on_closed=lambda part: self.told_closed.append(part.name),
        )

    async def partitions_count(self, topic: str) -> int:
        await asyncio.sleep(0.1)
        if topic not in self.counts:
            raise AuthorizationError(f"{topic}: not yours")
        return self.counts[topic]

    async def open_part(self, request: PartRequest) -> OpenPart:
        await asyncio.sleep(1)
        if request.topic in self.forbidden:
            raise AuthorizationError(f"{request.topic}: not yours")
        assert request.topic not in self.open, "opened twice"
        self.open[request.topic] = request
        return OpenPart(self, request.topic)


class OpenPart:
    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name

    async def close(self) -> None:
        await asyncio.sleep(0.5)
        del self.world.open[self.name]

    def abandon(self) -> None:
        self.world.open.pop(self.name, None)


def names(topic: str, count: int) -> list[str]:
    return [f"{topic}-partition-{index}" for index in range(count)]


def test_a_part_for_each_topic_and_partition_opened_at_once() -> None:
    async def work() -> None:
        world = World(a=3, b=0)
        parts = world.parts()
        begun_at = asyncio.get_running_loop().time()
        await parts.add([A, B, A])
        assert asyncio.get_running_loop().time() - begun_at == pytest.approx(1.1)
        assert sorted(world.open) == sorted(parts.by_topic) == sorted([*names(A, 3), B])
        assert {each.parts_count for each in world.open.values()} == {4}
        assert not any(each.is_late for each in world.open.values())
        assert (parts.topics, parts.partitions_of(A)) == ((A, B), 3)
        assert sorted(world.told_opened) == sorted(parts.by_topic)

    run_virtual(work())


def test_a_single_partition_is_a_topic_of_its_own() -> None:
    async def work() -> None:
        world = World()
        parts = world.parts()
        await parts.add([f"{A}-partition-1"])
        assert list(world.open) == [f"{A}-partition-1"]

    run_virtual(work())


def test_a_part_that_does_not_open_leaves_none_open() -> None:
    async def work() -> None:
        world = World(a=2, b=0)
        world.forbidden.add(B)
        parts = world.parts()
        with pytest.raises(AuthorizationError, match="default/b"):
            await parts.add([A, B])
        assert (world.open, parts.by_topic, parts.topics) == ({}, {}, ())
        assert not world.told_opened

    run_virtual(work())


def test_a_cancelled_opening_leaves_none_open() -> None:
    async def work() -> None:
        world = World(a=2)
        parts = world.parts()
        await parts.add([A])
        world.counts[B] = 0
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await parts.add([B])
        assert sorted(world.open) == names(A, 2)
        await parts.add([B])
        assert B in world.open

    run_virtual(work())


def test_topics_leave() -> None:
    async def work() -> None:
        world = World(a=2, b=0)
        parts = world.parts()
        await parts.add([A, B])
        await parts.remove([A, "unknown"])
        assert list(world.open) == [B]
        assert world.told_closed == names(A, 2)

    run_virtual(work())


def test_partitions_that_a_topic_grew_by_are_opened_late() -> None:
    async def work() -> None:
        world = World(a=2, b=0)
        parts = world.parts()
        await parts.add([A, B])
        assert await parts.update_partitions() == {}
        world.counts[A] = 4
        assert await parts.update_partitions() == {A: 4}
        assert sorted(world.open) == sorted([*names(A, 4), B])
        assert [each.topic for each in world.open.values() if each.is_late] == names(A, 4)[2:]

    run_virtual(work())


def test_partitions_that_do_not_open_are_tried_again() -> None:
    async def work() -> None:
        world = World(a=1)
        parts = world.parts()
        await parts.add([A])
        world.counts[A] = 2
        world.forbidden.add(f"{A}-partition-1")
        assert await parts.update_partitions() == {}
        world.forbidden.clear()
        assert await parts.update_partitions() == {A: 2}

    run_virtual(work())


def test_a_topic_that_cannot_be_asked_keeps_its_partitions() -> None:
    async def work() -> None:
        world = World(a=1)
        parts = world.parts()
        await parts.add([A])
        del world.counts[A]
        assert await parts.update_partitions() == {}
        assert list(world.open) == names(A, 1)

    run_virtual(work())


def test_closing_closes_all_and_ends_what_is_being_added() -> None:
    async def work() -> None:
        world = World(a=2, b=0)
        parts = world.parts()
        await parts.add([A])
        async with asyncio.TaskGroup() as group:
            adding = group.create_task(_refused(parts))
            await asyncio.sleep(0.5)
            await parts.close()
        assert adding.done()
        assert world.open == {}
        await parts.close()
        with pytest.raises(AlreadyClosedError):
            await parts.add([A])

    run_virtual(work())


async def _refused(parts: TopicParts[OpenPart]) -> None:
    with pytest.raises(AlreadyClosedError):
        await parts.add([B])
