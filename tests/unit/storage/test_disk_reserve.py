from __future__ import annotations

import random

import pytest

from pulsar_py.common.errors import DiskFullError
from pulsar_py.storage.disk_reserve import PATH, DiskReserve
from pulsar_py.testing.disk import SimulatedDisk

SIZE = 1000


async def there(disk: SimulatedDisk) -> bool:
    return PATH in await disk.list_directory("")


async def test_it_is_taken_when_there_is_plenty_and_given_up_when_nothing_is_left() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=10_000)
    reserve = DiskReserve(disk, SIZE)

    assert await reserve.adapt(10_000, enough_bytes=8_001) == 10_000
    assert not await there(disk)
    assert await reserve.adapt(10_000, enough_bytes=8_000) == await disk.free_bytes() <= 9_000
    assert await there(disk)
    await reserve.adapt(SIZE // 4, enough_bytes=0)
    assert await there(disk)
    assert await reserve.adapt(SIZE // 4 - 1, enough_bytes=0) == 10_000
    assert not await there(disk)


async def test_the_next_process_finds_what_the_last_one_took() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=10_000)
    await DiskReserve(disk, SIZE).adapt(10_000, enough_bytes=0)

    await DiskReserve(disk, SIZE).adapt(10_000, enough_bytes=0)
    await DiskReserve(disk, SIZE).adapt(0, enough_bytes=0)

    assert not await there(disk)


async def test_without_a_size_nothing_is_kept() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=10_000)

    assert await DiskReserve(disk, 0).adapt(10_000, enough_bytes=0) == 10_000
    assert not await there(disk)


async def test_what_could_not_be_taken_as_a_whole_is_not_left() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=SIZE // 2)
    reserve = DiskReserve(disk, SIZE)

    with pytest.raises(DiskFullError):
        await reserve.adapt(10_000, enough_bytes=0)
    assert not await there(disk)
