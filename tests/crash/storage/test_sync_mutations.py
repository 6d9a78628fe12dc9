"""Leaving out any one sync makes the crash sweep fail: each is needed, and the sweep would notice."""

from __future__ import annotations

import logging

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.testing.network import run_simulated
from tests.crash.storage import test_crash_points
from tests.crash.storage.harness import (
    InvariantError,
    check,
    crash_run,
    killed_and_then_crashed,
)
from tests.crash.storage.sync_mutations import KILL_SWEEP, SYNC_MUTATIONS


async def survives(seed: int, crash_at: int, mutation: str) -> bool:
    disk, model = await crash_run(seed, crash_at, {mutation})
    try:
        if SYNC_MUTATIONS[mutation] == KILL_SWEEP:
            left = await killed_and_then_crashed(disk, model, {mutation})
        else:
            left = disk.after_crash()
        await check(left, model)
    except (InvariantError, CorruptDataError):
        return False
    return True


@pytest.mark.parametrize("mutation", SYNC_MUTATIONS)
def test_a_missing_sync_is_found(mutation: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    assert hasattr(test_crash_points, SYNC_MUTATIONS[mutation])

    failures = (
        (seed, crash_at)
        for seed in test_crash_points.SEEDS
        for crash_at in range(1, test_crash_points.write_points_count(seed) + 1)
        if not run_simulated(survives(seed, crash_at, mutation))
    )

    assert next(failures, None) is not None, f"nobody misses the sync {mutation!r}"


async def syncs_of(seed: int) -> set[str]:
    disk, _ = await crash_run(seed, None)
    middle = disk.write_points_count // 2
    killed, model = await crash_run(seed, middle)
    await killed_and_then_crashed(killed, model)
    return disk.syncs_seen | killed.syncs_seen


def test_the_list_has_every_sync_that_the_engine_makes() -> None:
    seen: set[str] = set()
    for seed in test_crash_points.SEEDS:
        seen |= run_simulated(syncs_of(seed))

    assert seen == set(SYNC_MUTATIONS)
