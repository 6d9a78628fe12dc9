"""A crash at any step of metadata or disk keeps what was promised; invariants are counted by name."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.crash.managed_ledger.harness import check, crash_run

SEEDS = range(4)
POINTS_PER_SEED = 60  # of some hundreds; `make test-all` takes all of them


async def one_life(seed, crash_at):
    """With metadata in memory, in virtual time."""
    clock = VirtualClock()
    metadata = MemoryMetadataStore(clock)
    disk, promises = await crash_run(seed, crash_at, metadata, clock)
    return disk.write_points_count, await check(disk, metadata, clock, promises)


def points_of(seed, count):
    total, _ = run_simulated(one_life(seed, None))
    step = max(1, total // count)
    return range(1 + seed % step, total + 1, step)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_any_point_keeps_the_promises(seed):
    held: Counter[str] = Counter()
    for crash_at in points_of(seed, POINTS_PER_SEED):
        try:
            held += run_simulated(one_life(seed, crash_at))[1]
        except Exception as error:
            raise AssertionError(f"seed {seed}, crash at {crash_at}: {error}") from error
    for name in (
        "confirmed implies recovered",
        "durable acks are recovered",
        "receipts last",
        "mark-delete never moves back",
        "no acks are invented",
        "cursors in segments are recovered",
        "positions are never reused",
        "cut off and usable",
    ):
        assert held[name], name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_crash_at_every_point_keeps_the_promises(seed):
    for crash_at in points_of(seed, 1 << 30):
        run_simulated(one_life(seed, crash_at))


async def one_life_on_sqlite(path, seed, crash_at):
    clock = SystemClock()
    metadata = await SqliteMetadataStore.open(path, clock)
    disk, promises = await crash_run(seed, crash_at, metadata, clock)
    await metadata.close()
    metadata = await SqliteMetadataStore.open(path, clock)
    held = await check(disk, metadata, clock, promises)
    await metadata.close()
    return disk.write_points_count, held


def test_the_same_with_metadata_in_sqlite(tmp_path):
    total, _ = asyncio.run(one_life_on_sqlite(str(tmp_path / "whole"), 7, None))
    for crash_at in range(1, total + 1, max(1, total // 25)):
        path = str(tmp_path / f"metadata-{crash_at}")
        asyncio.run(one_life_on_sqlite(path, 7, crash_at))
