"""AnswerWatch: a disk that does not answer is no reason to wait for ever."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest
from msgspec.structs import replace

from pulsar_py.common.errors import LedgerNotFoundError, StorageError, StoreUnavailableError
from pulsar_py.common.packed_entries import LENT_BYTES
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.bookie import Bookie
from pulsar_py.testing.clock import VirtualClock, run_virtual
from pulsar_py.testing.disk import SimulatedDisk
from pulsar_py.testing.ledger_ids import CountedLedgerIds
from tests.unit.storage.support import SMALL, Listener, turns

SETTINGS = replace(SMALL, answer_timeout_seconds=8.0, disk_check_interval_seconds=1e9)


async def started(disk: SimulatedDisk, ids: CountedLedgerIds | None = None) -> Bookie:
    return await Bookie.start(
        disk, clock=VirtualClock(), ledger_ids=ids or CountedLedgerIds(), settings=SETTINGS
    )


def hang(disk: SimulatedDisk, seconds: float) -> None:
    """Syncs of the journal take that long."""
    disk.slow = lambda path: seconds if path.startswith("journal/") else 0.0


async def failed_after(listener: Listener) -> float:
    before = asyncio.get_running_loop().time()
    await listener.until(1 << 30)  # or a failure
    return asyncio.get_running_loop().time() - before


def test_what_is_not_answered_in_time_fails(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    async def scenario(wait_seconds: float) -> float:
        disk = SimulatedDisk(random.Random(1))
        bookie = await started(disk)
        listener, second = Listener(), Listener()
        writer = await bookie.create(listener, LedgerOptions())
        behind = await bookie.create(second, LedgerOptions())
        await asyncio.sleep(wait_seconds)
        hang(disk, 1000.0)
        writer.append(b"in the journal's hands")
        await turns()
        behind.append(b"waits behind it")
        seconds = await failed_after(listener)
        await failed_after(second)
        assert [type(each) for each in listener.failures] == [StoreUnavailableError]
        assert [type(each) for each in second.failures] == [StoreUnavailableError]
        with pytest.raises(StorageError, match=r"ledger \d+ failed") as refused:
            writer.append(b"more")
        assert not isinstance(refused.value, StoreUnavailableError), "it is lost for good"
        disk.slow = None
        await asyncio.sleep(1000)
        assert listener.confirmed == -1
        reader = await bookie.recover(writer.ledger_id)
        assert reader.last_add_confirmed == -1
        await bookie.close()
        return seconds

    for tenths in range(0, 40, 7):
        assert 6.0 <= run_virtual(scenario(tenths / 10)) <= 8.2


def test_memory_that_was_given_back_too_early_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)

    async def scenario() -> None:
        disk, ids = SimulatedDisk(random.Random(1)), CountedLedgerIds()
        bookie = await started(disk, ids)
        listener = Listener()
        writer = await bookie.create(listener, LedgerOptions())
        memory = bytearray(LENT_BYTES)
        hang(disk, 100.0)
        writer.append(memoryview(memory))
        await failed_after(listener)
        memory[:] = b"x" * LENT_BYTES
        disk.slow = None
        await asyncio.sleep(200)
        later = Listener()
        other = await bookie.create(later, LedgerOptions())
        other.append(b"later")
        await later.until(0)
        disk.bury()
        bookie._housekeeper.stop()
        bookie._watch.stop()

        again = await started(disk.after_crash(), ids)
        assert (await again.recover(writer.ledger_id)).last_add_confirmed == -1
        reader = await again.recover(other.ledger_id)
        assert list(await reader.read(0, 0, 100)) == [b"later"]
        await again.close()

    run_virtual(scenario())


def test_calls_end_too() -> None:
    async def scenario() -> None:
        disk = SimulatedDisk(random.Random(1))
        bookie = await started(disk)
        writer = await bookie.create(Listener(), LedgerOptions())
        hang(disk, 100.0)
        for call in (
            lambda: bookie.create(Listener(), LedgerOptions()),
            writer.close,
            lambda: bookie.recover(writer.ledger_id),
            lambda: bookie.delete(writer.ledger_id),
        ):
            before = asyncio.get_running_loop().time()
            with pytest.raises(StoreUnavailableError, match=r"no answer of the disk within 8\.0"):
                await call()
            assert asyncio.get_running_loop().time() - before <= 8.1
        disk.slow = None
        await asyncio.sleep(1000)
        with pytest.raises(LedgerNotFoundError):
            await writer.close()  # asked again, it tells what has become of it
        await bookie.close()

    run_virtual(scenario())


def test_a_slow_disk_that_answers_fails_nobody() -> None:
    async def scenario() -> None:
        disk = SimulatedDisk(random.Random(1))
        bookie = await started(disk)
        listener = Listener()
        writer = await bookie.create(listener, LedgerOptions())
        hang(disk, 5.0)
        for entry_id in range(20):
            writer.append(b"x")
            await listener.until(entry_id)
        assert not listener.failures
        disk.slow = None
        await bookie.close()

    run_virtual(scenario())


def test_closing_ends_although_the_disk_hangs(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> float:
        disk = SimulatedDisk(random.Random(1))
        bookie = await started(disk)
        writer = await bookie.create(Listener(), LedgerOptions())
        hang(disk, 1000.0)
        writer.append(b"in the journal's hands")
        await turns()
        before = asyncio.get_running_loop().time()
        await bookie.close()
        return asyncio.get_running_loop().time() - before

    assert run_virtual(scenario()) <= 2 * SETTINGS.answer_timeout_seconds
    assert "the disk hangs" in caplog.text
