"""A broker killed inside every topic creation, deletion and ledger rollover, on both stores."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.crash.topics.harness import check, crash_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pulsar_py.metadata.store import MetadataStore

Open = Callable[[], AbstractAsyncContextManager["MetadataStore"]]
Checked = tuple[int, Counter[str]]
Run = Callable[[Coroutine[Any, Any, Checked]], Checked]


@asynccontextmanager
async def in_memory() -> AsyncIterator[MetadataStore]:
    store = MemoryMetadataStore(VirtualClock())
    yield store
    await store.close()


@asynccontextmanager
async def in_sqlite(directory: Path, numbers: Iterator[int]) -> AsyncIterator[MetadataStore]:
    path = directory / f"{next(numbers)}.sqlite"
    store = await SqliteMetadataStore.open(path, SystemClock())
    yield store
    await store.close()


async def crash_and_check(open_store: Open, crash_at: int | None) -> Checked:
    async with open_store() as store:
        disk, model = await crash_run(store, crash_at)
        return disk.write_points_count, await check(disk, store, model)


def sweep(open_store: Open, step: int, run: Run) -> Counter[str]:
    count, held = run(crash_and_check(open_store, None))
    for crash_at in range(1, count + 1, step):
        _, more = run(crash_and_check(open_store, crash_at))
        held += more
    held["crashes"] = len(range(1, count + 1, step))
    return held


def test_nothing_promised_is_lost_wherever_the_broker_is_killed() -> None:
    held = sweep(in_memory, 1, run_simulated)
    assert held["confirmed implies recovered"] > 1000
    assert held["deleted stays deleted"] > 10
    assert held["created implies recovered"] > 100
    assert held["terminated stays terminated"] > 10
    assert held["positions are never reused"] > 100


def test_the_same_on_the_durable_metadata_store(tmp_path: Path) -> None:
    held = sweep(partial(in_sqlite, tmp_path, itertools.count()), 7, asyncio.run)
    assert held["confirmed implies recovered"] > 100


@pytest.mark.slow
def test_every_point_on_the_durable_metadata_store(tmp_path: Path) -> None:
    sweep(partial(in_sqlite, tmp_path, itertools.count()), 1, asyncio.run)
