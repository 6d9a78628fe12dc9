"""The engine crashed at every write point of a random load: what it promised has to be there."""

from __future__ import annotations

from collections import Counter

import pytest

from pulsar_py.testing.network import run_simulated
from tests.crash.storage.harness import check, crash_run, killed_and_then_crashed

SEEDS = range(4)


async def crash_and_check(seed: int, crash_at: int | None) -> Counter[str]:
    disk, model = await crash_run(seed, crash_at)
    return await check(disk.after_crash(), model)


def write_points_count(seed: int) -> int:
    disk, _ = run_simulated(crash_run(seed, None))
    return disk.write_points_count


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_confirmed_survives_a_crash_at_any_write_point(seed: int) -> None:
    """Confirmed implies recovered; unconfirmed is all or nothing; positions are never reused."""
    held: Counter[str] = Counter()

    for crash_at in range(1, write_points_count(seed) + 1):
        held += run_simulated(crash_and_check(seed, crash_at))

    assert held["confirmed implies recovered"] > 1000, held
    assert held["deleted stays deleted"] > 0, held
    assert held["ends stay"] > 0, held


async def kill_crash_and_check(seed: int, kill_at: int | None) -> Counter[str]:
    disk, model = await crash_run(seed, kill_at)
    return await check(await killed_and_then_crashed(disk, model), model)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_killed_process_has_left_survives_a_crash_of_the_next(seed: int) -> None:
    """The next one goes on from what it reads, whether or not it was durable when it came."""
    for kill_at in range(1, write_points_count(seed) + 1):
        run_simulated(kill_crash_and_check(seed, kill_at))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_what_was_confirmed_survives_many_more_crashes(seed: int) -> None:
    for crash_at in range(1, write_points_count(seed) + 1):
        run_simulated(crash_and_check(seed, crash_at))


def test_a_run_replays_exactly_from_its_seed() -> None:
    async def end_state() -> tuple[int, list[str], object]:
        disk, model = await crash_run(1, 100)
        return disk.write_points_count, disk.after_crash().paths(), model.ledgers

    assert run_simulated(end_state()) == run_simulated(end_state())


def test_a_clean_stop_leaves_no_journal() -> None:
    disk, _ = run_simulated(crash_run(2, None))

    left = [path for path in disk.paths() if path.startswith("journal/")]
    assert left
    assert all(path.startswith("journal/spare-") for path in left)
