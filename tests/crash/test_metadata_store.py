"""The durable metadata store and crashes.

Invariants: *what was confirmed is recovered*; *a group is recovered whole or not at all, in order*;
*numbers of a sequence are never given out twice*.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore

NAME = "metadata.sqlite"


def copy_files(source: Path, target: Path) -> None:
    """What a crash at this moment would leave, the page cache included."""
    target.mkdir()
    for each in (NAME, f"{NAME}-wal"):
        if (source / each).exists():
            shutil.copy(source / each, target / each)


async def test_what_was_confirmed_is_in_the_files(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    store = await SqliteMetadataStore.open(live / NAME, SystemClock())
    taken = 0
    for step in range(10):
        await asyncio.gather(*(store.put(f"/k{number}", b"%d" % step) for number in range(20)))
        session = await store.open_session()
        taken = paths.sequence_number(await store.create_sequential("/s/", b"", session))
        copy_files(live, tmp_path / str(step))
        copy = await SqliteMetadataStore.open(tmp_path / str(step) / NAME, SystemClock())
        for number in range(20):
            found = await copy.get(f"/k{number}")
            assert found is not None
            assert (found.value, found.version) == (b"%d" % step, step)
        following = await copy.create_sequential("/s/", b"")
        assert paths.sequence_number(following) == taken + 1
        await copy.close()
    await store.close()


async def test_a_torn_write_leaves_whole_groups_in_order(tmp_path: Path) -> None:
    live = tmp_path / "live"
    live.mkdir()
    store = await SqliteMetadataStore.open(live / NAME, SystemClock())
    for step in range(8):
        await asyncio.gather(*(store.put(f"/k{number}", b"%d" % step) for number in range(5)))
    copy_files(live, tmp_path / "whole")
    await store.close()
    wal = (tmp_path / "whole" / f"{NAME}-wal").read_bytes()
    chance = random.Random(7)
    steps_seen = set()
    for cut in [0, 31, 32, len(wal), *(chance.randrange(len(wal)) for _ in range(40))]:
        torn = tmp_path / f"torn-{cut}"
        copy_files(tmp_path / "whole", torn)
        (torn / f"{NAME}-wal").write_bytes(wal[:cut] + bytes(chance.randrange(64)))
        copy = await SqliteMetadataStore.open(torn / NAME, SystemClock())
        found = [await copy.get(f"/k{number}") for number in range(5)]
        await copy.close()
        assert len({each.value if each else None for each in found}) == 1, cut
        steps_seen.add(found[0].value if found[0] else None)
        shutil.rmtree(torn)
    assert len(steps_seen) > 3


WRITER = """
import asyncio, sys
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore

async def main():
    store = await SqliteMetadataStore.open(sys.argv[1], SystemClock())
    session = await store.open_session()
    step = 0
    while True:
        path = await store.create_sequential("/s/", b"", session)
        await store.delete(path)
        first = int(path[3:])
        await asyncio.gather(*(store.put(f"/k{number}", b"%d" % step) for number in range(10)))
        print(step, first, flush=True)
        step += 1

asyncio.run(main())
"""


def run_and_kill(path: Path, lines_before_kill: int) -> list[str]:
    """What a writer confirmed before it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(lines_before_kill)]
        process.kill()
        lines += process.stdout.readlines()
    return [line for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("lines_before_kill", [1, 7, 40])
async def test_a_killed_process_leaves_what_it_confirmed(
    tmp_path: Path, lines_before_kill: int
) -> None:
    path = tmp_path / NAME
    lines = run_and_kill(path, lines_before_kill)
    confirmed_step, first = map(int, lines[-1].split())
    store = await SqliteMetadataStore.open(path, SystemClock())
    for number in range(10):
        found = await store.get(f"/k{number}")
        assert found is not None
        assert int(found.value) in {confirmed_step, confirmed_step + 1}
    following = await store.create_sequential("/s/", b"")
    assert paths.sequence_number(following) > first
    await store.close()
