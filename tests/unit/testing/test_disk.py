from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest

from pulsar_py.common.errors import DiskFullError, StorageError
from pulsar_py.testing.clock import run_virtual
from pulsar_py.testing.disk import SimulatedDisk

DATA = bytes(range(256)) * 16


async def crashed_with_unsynced_data(seed: int) -> bytes:
    disk = SimulatedDisk(random.Random(seed))
    file = await disk.create("f")
    await disk.sync_directory("")
    await file.append([b"synced"])
    await file.sync()
    await file.append([DATA])
    disk.crash()
    return await disk.after_crash().read_whole("f")


async def test_synced_bytes_survive_and_others_may_in_whole_sectors() -> None:
    outcomes = Counter()
    for seed in range(60):
        left = await crashed_with_unsynced_data(seed)
        assert left.startswith(b"synced")
        whole = b"synced" + DATA
        outcomes["nothing"] += left == b"synced"
        outcomes["all"] += left == whole
        outcomes["part"] += b"synced" < left < whole or len(left) == len(whole) != whole
        for start in range(0, len(left), 512):
            sector = left[start : start + 512]
            assert sector in {whole[start : start + 512], whole[start:6], bytes(len(sector)),
                              b"synced"[start:] + bytes(506)}  # fmt: skip
    assert min(outcomes.values()) > 3, outcomes


async def test_the_last_bytes_written_past_the_cache_are_read_after_the_sync() -> None:
    disk = SimulatedDisk(random.Random(1))
    file = await disk.create("f", is_direct=True)
    await file.append([b"a" * 600])
    assert await disk.read_whole("f") == b"a" * 512
    await file.append([b"b" * 100])
    await file.sync()
    await file.append([b"c" * 500])
    assert await disk.read_whole("f") == b"a" * 600 + b"b" * 100 + b"c" * 324
    await file.sync()

    assert await disk.read_whole("f") == b"a" * 600 + b"b" * 100 + b"c" * 500
    assert file.size_bytes == 1200


async def test_unsynced_names_are_lost_in_order() -> None:
    survived = Counter()
    for seed in range(60):
        disk = SimulatedDisk(random.Random(seed))
        await (await disk.create("old")).sync()
        await disk.sync_directory("")
        await disk.remove("old")
        await disk.create("new")
        disk.crash()
        survived[tuple(disk.after_crash().paths())] += 1

    assert set(survived) == {("old",), (), ("new",)}


async def test_a_crash_leaves_one_of_the_two_names_of_a_renamed_file() -> None:
    survived = Counter()
    for seed in range(60):
        disk = SimulatedDisk(random.Random(seed))
        await (await disk.create("old")).sync()
        await disk.sync_directory("")
        await disk.rename("old", "new")
        disk.crash()
        survived[tuple(disk.after_crash().paths())] += 1

    assert set(survived) == {("old",), ("new",)}


async def test_files_go_with_their_directory() -> None:
    disk = SimulatedDisk(random.Random(1))
    await disk.make_directory("d")
    await disk.create("d/f")
    await disk.sync_directory("d")
    disk.crash()
    assert disk.after_crash().paths() == []


async def test_a_replaced_file_is_the_old_or_the_new() -> None:
    found = set()
    for crash_at in range(1, 9):
        for seed in range(10):
            disk = SimulatedDisk(random.Random(seed), crash_at=crash_at)
            work = asyncio.ensure_future(replace_twice(disk))  # noqa: TID251 - a test's own
            await asyncio.wait((work,), timeout=0.001)
            disk.bury()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            left = disk.after_crash()
            found.add(await left.read_whole("f") if left.paths() else None)
    assert found == {None, b"old", b"new"}


async def replace_twice(disk: SimulatedDisk) -> None:
    await disk.replace("f", b"old")
    await disk.replace("f", b"new")


async def test_a_crash_comes_at_its_point_and_calls_never_return() -> None:
    disk = SimulatedDisk(random.Random(1), crash_at=2)
    crashes: list[int] = []
    disk.on_crash = lambda: crashes.append(disk.write_points_count)
    file = await disk.create("f")
    waiting = asyncio.ensure_future(file.append([b"x"]))  # noqa: TID251 - a test's own
    reports: list[object] = []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    file.append_and_sync([b"y"], reports.append)
    await asyncio.sleep(0)

    assert crashes == [2]
    assert not waiting.done()
    assert not reports
    disk.bury()
    waiting.cancel()
    with pytest.raises(StorageError, match="crashed"):
        await file.sync()


async def test_an_ignored_sync_syncs_nothing() -> None:
    left = set()
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed), ignored_syncs={"data:"})
        file = await disk.create("f")
        await file.append([b"x"])
        await file.sync()
        await disk.sync_directory("")
        disk.crash()
        left.add(await disk.after_crash().read_whole("f"))
        assert disk.syncs_seen == {"data:", "names:"}
    assert left == {b"", b"x"}


async def test_faults_room_and_flipped_bits() -> None:
    disk = SimulatedDisk(random.Random(1), capacity_bytes=100)
    file = await disk.create("f")
    disk.fault = lambda kind, path: StorageError("EIO") if (kind, path) == ("sync", "f") else None
    await file.append([b"abc"])
    with pytest.raises(StorageError, match="EIO"):
        await file.sync()
    with pytest.raises(DiskFullError):
        await file.append([bytes(98)])
    disk.flip_bit("f", 1, 3)
    left = await disk.read_whole("f")
    assert left.rstrip(bytes(1)) == b"ajc"
    assert await disk.free_bytes() == 100 - len(left)


async def test_syncs_take_their_time() -> None:
    disk = SimulatedDisk(random.Random(1), sync_seconds=0.005)
    file = await disk.create("f")
    done: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    before = asyncio.get_running_loop().time()
    file.append_and_sync([b"x"], done.set_result)
    assert await done is None
    assert asyncio.get_running_loop().time() - before >= 0.004


def _refuse(kind: str) -> Callable[[str, str], StorageError | None]:
    return lambda seen, path: StorageError(f"{path}: EIO") if seen == kind else None


async def test_a_failed_sync_is_not_made_good_by_a_later_one() -> None:
    lengths = Counter()
    for seed in range(40):
        disk = SimulatedDisk(random.Random(seed))
        file = await disk.create("f")
        await disk.sync_directory("")
        await file.append([DATA])
        disk.fault = _refuse("sync")
        with pytest.raises(StorageError):
            await file.sync()
        disk.fault = None
        await file.append([b"behind"])
        await file.sync()
        disk.crash()
        left = await disk.after_crash().read_whole("f")
        assert left.endswith(b"behind")
        lengths["whole" if left == DATA + b"behind" else "lost"] += 1

    assert min(lengths["whole"], lengths["lost"]) > 3, lengths


async def test_a_failed_write_leaves_any_beginning_of_itself() -> None:
    seen = set()
    for seed in range(40):
        disk = SimulatedDisk(random.Random(seed))
        file = await disk.create("f")
        disk.fault = _refuse("append")
        with pytest.raises(StorageError):
            await file.append([b"abcd"])
        assert file.size_bytes == 0
        seen.add(await disk.read_whole("f"))

    assert seen == {b"", b"a", b"ab", b"abc", b"abcd"}


async def test_unsynced_writes_of_one_file_survive_in_any_order() -> None:
    seen = set()
    for seed in range(60):
        disk = SimulatedDisk(random.Random(seed))
        file = await disk.create("f")
        await disk.sync_directory("")
        await file.append([b"a" * 512])
        await file.append([b"b" * 512])
        disk.crash()
        seen.add(await disk.after_crash().read_whole("f"))

    assert {bytes(512) + b"b" * 512, b"a" * 512, b"a" * 512 + b"b" * 512, b""} == seen


async def test_reads_come_back_short_when_asked_to() -> None:
    disk = SimulatedDisk(random.Random(1))
    file = await disk.create("f")
    await file.append([b"abcdef"])
    disk.shorten = lambda path, length: length // 2

    assert await (await disk.open_read("f")).read_at(0, 6) == b"abc"


@pytest.mark.parametrize("is_journal", [False, True])
def test_slow_syncs_take_their_time(*, is_journal: bool) -> None:
    async def seconds() -> float:
        loop = asyncio.get_running_loop()
        disk = SimulatedDisk(random.Random(1))
        file = await disk.create("f")
        disk.slow = lambda path: 3.0
        if is_journal:
            done = loop.create_future()
            file.append_and_sync([b"a"], done.set_result)
            await done
        else:
            await file.sync()
        return loop.time()

    assert run_virtual(seconds()) == 3.0


async def killed_disk(chance: random.Random) -> SimulatedDisk:
    """A disk on which a killed process has left 1,100 bytes in `f`, and a name, unsynced."""
    disk = SimulatedDisk(chance)
    file = await disk.create("f")
    await disk.sync_directory("")
    await file.append([b"a" * 1100])
    await disk.create("g")
    disk.bury()
    return disk.after_kill()


async def test_a_killed_process_leaves_what_it_has_not_synced() -> None:
    disk = await killed_disk(random.Random(1))

    assert await disk.read_whole("f") == b"a" * 1100
    assert disk.paths() == ["f", "g"]


async def test_what_a_killed_process_has_not_synced_may_be_lost_in_a_crash() -> None:
    left: Counter[tuple[bool, bool]] = Counter()
    for seed in range(60):
        disk = (await killed_disk(random.Random(seed))).after_crash()
        left[await disk.read_whole("f") == b"a" * 1100, "g" in disk.paths()] += 1

    assert set(left) == {(False, False), (False, True), (True, False), (True, True)}


async def test_a_sync_by_path_keeps_what_a_killed_process_has_left() -> None:
    for seed in range(20):
        disk = await killed_disk(random.Random(seed))
        await disk.sync_file("f")
        assert await disk.after_crash().read_whole("f") == b"a" * 1100


async def test_a_killed_process_takes_the_end_of_a_direct_write_with_it() -> None:
    disk = SimulatedDisk(random.Random(1))
    file = await disk.create("f", is_direct=True)
    await file.append([b"a" * 600])
    disk.bury()
    disk = disk.after_kill()

    assert await disk.read_whole("f") == b"a" * 512
    await disk.sync_file("f")
    await disk.sync_directory("")
    assert await disk.after_crash().read_whole("f") == b"a" * 512


async def test_a_sync_by_path_shows_what_a_failed_sync_has_lost() -> None:
    left: set[bytes] = set()
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed))
        file = await disk.create("f")
        await disk.sync_directory("")
        await file.append([b"a" * 600])
        disk.fault = lambda kind, path: StorageError(path) if kind == "sync" else None
        with pytest.raises(StorageError):
            await file.sync()
        assert await disk.read_whole("f") == b"a" * 600
        disk.bury()
        disk = disk.after_kill()

        await disk.sync_file("f")

        found = await disk.read_whole("f")
        assert await disk.after_crash().read_whole("f") == found
        left.add(found)
    assert len(left) > 2
