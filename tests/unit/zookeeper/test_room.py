from __future__ import annotations

import asyncio

from pulsar_py.testing.network import run_simulated
from pulsar_py.zookeeper.room import Room


async def taken(room: Room, size_bytes: int, order: list[int]) -> None:
    await room.take(size_bytes)
    order.append(size_bytes)


def test_who_fits_does_not_wait_and_who_does_not_waits_in_turn() -> None:
    async def work() -> None:
        room, order = Room(2, 100), list[int]()
        async with asyncio.TaskGroup() as group:
            for size_bytes in (60, 50, 10):  # the last one would fit, and does not overtake
                group.create_task(taken(room, size_bytes, order))
            await asyncio.sleep(1)
            assert order == [60]
            assert room.waiting_count == 2
            room.give_back(60)
        assert order == [60, 50, 10]

    run_simulated(work())


def test_there_is_room_for_so_many() -> None:
    async def work() -> None:
        room, order = Room(2, 100), list[int]()
        async with asyncio.TaskGroup() as group:
            for size_bytes in (1, 2, 3):
                group.create_task(taken(room, size_bytes, order))
            await asyncio.sleep(1)
            assert order == [1, 2]
            room.give_back(1)

    run_simulated(work())


def test_what_is_larger_than_the_room_goes_alone() -> None:
    async def work() -> None:
        room, order = Room(2, 100), list[int]()
        async with asyncio.TaskGroup() as group:
            for size_bytes in (1, 1000):
                group.create_task(taken(room, size_bytes, order))
            await asyncio.sleep(1)
            assert order == [1]
            room.give_back(1)
        assert order == [1, 1000]

    run_simulated(work())


def test_who_gives_up_waiting_holds_nobody_back() -> None:
    async def work() -> None:
        room, order = Room(2, 100), list[int]()
        await room.take(60)
        async with asyncio.TaskGroup() as group:
            large = group.create_task(taken(room, 50, order))
            group.create_task(taken(room, 10, order))
            await asyncio.sleep(1)
            large.cancel()
            await asyncio.sleep(1)
            assert order == [10]
            assert room.waiting_count == 0

    run_simulated(work())


def test_who_gives_up_when_room_came_gives_it_back() -> None:
    async def work() -> None:
        room, order = Room(1, 100), list[int]()
        await room.take(60)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(taken(room, 50, order))
            group.create_task(taken(room, 10, order))
            await asyncio.sleep(1)
            room.give_back(60)
            first.cancel()  # its turn has come, it has not run since
        assert order == [10]

    run_simulated(work())
