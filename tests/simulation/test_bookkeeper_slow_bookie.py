"""One bookie that answers after five seconds, for minutes of writing at full rate."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.cluster.settings import BookKeeperSettings
from pulsar_py.bookkeeper.protocol.frames import BookieCode
from pulsar_py.common.errors import StoreBusyError
from pulsar_py.testing.network import SimulatedLoop, run_simulated
from tests.unit.bookkeeper.scripted_bookie import ScriptedBookie
from tests.unit.bookkeeper.scripted_cluster import THREE, Listener, ScriptedCluster

MINUTES = (2, pytest.param(10, marks=pytest.mark.slow))
ENTRY = bytes(16_000)
PAUSE_SECONDS = 0.02  # of the writer: 800 kB/s, four times what may wait within an answer's time
SETTINGS = BookKeeperSettings(
    max_pinned_bytes=4_000_000,
    connection=ConnectionLimits(request_timeout_seconds=8.0, max_waiting_bytes=1_000_000),
)


def confirms_only(bookie: ScriptedBookie) -> None:
    """Minutes of entries are too much to keep."""
    bookie.says = lambda _operation, _ledger, _entry: BookieCode.EOK


def buffered_bytes() -> int:
    """What transports keep because the other end does not read."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return max((each.get_write_buffer_size() for each in loop.network.connections), default=0)


@pytest.mark.parametrize("minutes", MINUTES)
@pytest.mark.parametrize("bookies_count", [3, 4])
def test_memory_stays_within_its_bounds_and_writing_goes_on(
    bookies_count: int, minutes: int
) -> None:
    async def work() -> None:
        cluster = ScriptedCluster(bookies_count)
        await cluster.start()
        for bookie in cluster.bookies:
            confirms_only(bookie)
        store = await cluster.connect(settings=SETTINGS)
        listener = Listener()
        writer = await store.create(listener, THREE)
        slow = (await cluster.ensemble(1))[1]
        slow.delay_seconds = 5.0
        loop = asyncio.get_running_loop()
        end_seconds, refused_count = loop.time() + 60 * minutes, 0
        most_pinned = most_waiting = 0.0
        while loop.time() < end_seconds:
            try:
                writer.append(ENTRY)
            except StoreBusyError:
                refused_count += 1
            most_pinned = max(most_pinned, store.figures()["pinned_bytes"])
            most_waiting = max(most_waiting, *(each.pending_bytes for each in store.bookies()), 0)
            assert buffered_bytes() <= SETTINGS.connection.max_waiting_bytes
            await asyncio.sleep(PAUSE_SECONDS)
        assert not listener.failures
        assert most_waiting <= SETTINGS.connection.max_waiting_bytes
        assert most_pinned <= SETTINGS.max_pinned_bytes
        if bookies_count == 4:
            assert slow not in await cluster.ensemble(1)
            assert not refused_count
            assert listener.last >= 60 * minutes / PAUSE_SECONDS - 10
            assert store.figures()["pinned_bytes"] < 10 * len(ENTRY)
        else:
            assert refused_count, "nobody could take its place"
            most = SETTINGS.connection.max_waiting_bytes / len(ENTRY) / slow.delay_seconds
            assert listener.last > 0.8 * 60 * minutes * most, "as fast as the slow one lets it"
        await cluster.close()

    run_simulated(work(), latency_seconds=0.0005)


@pytest.mark.parametrize("minutes", MINUTES)
def test_publishers_with_a_window_are_slowed_down_and_none_is_refused(minutes: int) -> None:
    async def work() -> None:
        cluster = ScriptedCluster(3)
        await cluster.start()
        for bookie in cluster.bookies:
            confirms_only(bookie)
        store = await cluster.connect(settings=SETTINGS)
        listener = Listener()
        writer = await store.create(listener, THREE)
        (await cluster.ensemble(1))[1].delay_seconds = 5.0
        loop = asyncio.get_running_loop()
        end_seconds = loop.time() + 60 * minutes
        window_count = SETTINGS.connection.max_waiting_bytes // 3 // len(ENTRY)
        while loop.time() < end_seconds:
            if writer.last_add_pushed - listener.last < window_count:
                writer.append(ENTRY)
            await asyncio.sleep(PAUSE_SECONDS)
        assert not listener.failures
        assert store.figures()["busy_refusals_count"] == 0
        rate = SETTINGS.connection.max_waiting_bytes / 2 / len(ENTRY) / 5.0
        assert listener.last > 0.8 * 60 * minutes * rate
        await cluster.close()

    run_simulated(work(), latency_seconds=0.0005)
