"""Which messages stay, in memory and over sorted runs on disk, against a dictionary."""

from __future__ import annotations

import random

import pytest

from pulsar_py.common.disks.memory_disk import MemoryDisk
from pulsar_py.common.loops.pace import Pace
from pulsar_py.server.compaction.latest_messages import KEY_COST_BYTES, LatestMessages
from pulsar_py.server.compaction.survivors import Survivors
from pulsar_py.testing.clock import VirtualClock


def latest_on(disk: MemoryDisk, memory_bytes: int) -> LatestMessages:
    pace = Pace(VirtualClock())
    return LatestMessages(lambda: disk, "runs", memory_bytes=memory_bytes, pace=pace)


def kept(survivors: Survivors, count: int) -> set[int]:
    return {number for number in range(count) if survivors.kept_of(number, 1) is not None}


async def survivors_of(
    messages: list[tuple[bytes, int, bool]], memory_bytes: int
) -> tuple[Survivors, int, MemoryDisk]:
    disk = MemoryDisk()
    latest = latest_on(disk, memory_bytes)
    for number, (key, order, is_tombstone) in enumerate(messages):
        latest.note(key, order, (number,), is_tombstone=is_tombstone)
        if latest.is_full:
            await latest.spill()
    survivors = Survivors()
    await latest.add_to(survivors)
    runs_count = latest.runs_count
    await latest.close()
    return survivors, runs_count, disk


@pytest.mark.parametrize("by_event_time", [False, True])
@pytest.mark.parametrize("memory_bytes", [1 << 30, 60 * KEY_COST_BYTES, 1])
async def test_the_newest_of_each_key_stays(memory_bytes: int, *, by_event_time: bool) -> None:
    chance = random.Random(memory_bytes + by_event_time)
    messages = [
        (
            b"key-%d" % chance.randrange(150),
            chance.randrange(5) if by_event_time else 0,
            chance.random() < 0.2,
        )
        for _ in range(600)
    ]
    newest: dict[bytes, tuple[int, int]] = {}
    for entry_id, (key, order, _) in enumerate(messages):
        if order >= newest.get(key, (0, 0))[0]:
            newest[key] = order, entry_id
    survivors, runs_count, disk = await survivors_of(messages, memory_bytes)
    expected = {entry_id for _, entry_id in newest.values() if not messages[entry_id][2]}
    assert kept(survivors, len(messages)) == expected
    assert (runs_count > 1) == (memory_bytes < 1 << 30)
    assert await disk.list_directory("") == []


async def test_keys_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.hash", lambda _: 7)
    messages = [(b"k%d" % number, 0, False) for number in range(40)] * 2
    survivors, _, _ = await survivors_of(messages, 10 * KEY_COST_BYTES)
    assert kept(survivors, 80) == set(range(40, 80))


async def test_keys_longer_than_a_block_go_through_the_runs() -> None:
    messages = [(bytes([number]) * 300_000, 0, False) for number in range(6)] * 2
    survivors, runs_count, _ = await survivors_of(messages, 500_000)
    assert runs_count > 1
    assert kept(survivors, 12) == set(range(6, 12))


async def test_what_is_held_is_bounded() -> None:
    latest = latest_on(MemoryDisk(), 300 * KEY_COST_BYTES)
    most = held = 0
    for number in range(3000):
        latest.note(b"%06d" % number, 0, (number,), is_tombstone=False)
        held += 1
        most = max(most, held)
        if latest.is_full:
            await latest.spill()
            held = 0
    assert 100 < most < 200
    await latest.close()


@pytest.mark.parametrize("memory_bytes", [1 << 30, 1])
async def test_all_numbers_of_a_message_in_chunks_stay(memory_bytes: int) -> None:
    latest = latest_on(MemoryDisk(), memory_bytes)
    for key, numbers in ((b"a", (0, 2, 5)), (b"b", (1, 3)), (b"a", (4,)), (b"b", (6, 7, 9))):
        latest.note(key, 0, numbers, is_tombstone=False)
        if latest.is_full:
            await latest.spill()
    survivors = Survivors()
    await latest.add_to(survivors)
    assert kept(survivors, 10) == {4, 6, 7, 9}
    await latest.close()
