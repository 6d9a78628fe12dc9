"""The same loads on a disk whose calls fail now and then, with a crash on top."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from pulsar_py.testing.network import run_simulated
from tests.crash.storage.harness import check, crash_run


async def run_and_check(seed: int, crash_at: int | None) -> tuple[int, Counter[str]]:
    disk, model = await crash_run(seed, crash_at, faults_share=0.04)
    return disk.write_points_count, await check(disk.after_crash(), model)


@pytest.mark.parametrize("seed", range(12))
def test_errors_of_the_disk_lose_nothing_confirmed(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    count, held = run_simulated(run_and_check(seed, None))

    for crash_at in range(1, count, 5):
        _, more = run_simulated(run_and_check(seed, crash_at))
        held += more

    assert held.total() > 0
