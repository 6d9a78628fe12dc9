"""A ledger that is written once: bounds of what is unconfirmed, a busy store, failures."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.whole_ledger import (
    BESIDE_OTHERS_BYTES,
    BUSY_PAUSE_SECONDS,
    BUSY_TRIES,
    MAX_UNCONFIRMED,
    MAX_UNCONFIRMED_BYTES,
    WholeLedgerWriter,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import settle
from tests.migration_parts import read, volatile_bookie, write


async def new_writer(store: SimulatedLedgerStore, clock: Clock | None = None) -> WholeLedgerWriter:
    writer = WholeLedgerWriter(store, clock or VirtualClock())
    await writer.create_with(LedgerOptions())
    return writer


@pytest.mark.parametrize(
    ("size_bytes", "most"), [(1, MAX_UNCONFIRMED), (MAX_UNCONFIRMED_BYTES // 4 + 1, 4)]
)
async def test_beyond_a_bound_it_waits_for_confirmations(size_bytes: int, most: int) -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    store.is_holding = True
    entry = bytes(size_bytes)

    async def write() -> None:
        for _ in range(most + 3):
            await writer.append(entry)
        await writer.close()

    writing = asyncio.get_running_loop().create_task(write())
    await settle()
    ledger = store.ledgers[writer.ledger_id]
    assert len(ledger.entries) == most
    store.release()
    await writing
    assert (len(ledger.entries), ledger.is_closed) == (most + 3, True)


async def test_a_writer_beside_others_has_a_bound_of_its_own() -> None:
    store = SimulatedLedgerStore()
    writer = WholeLedgerWriter(store, VirtualClock(), max_unconfirmed_bytes=BESIDE_OTHERS_BYTES)
    await writer.create_with(LedgerOptions())
    store.is_holding = True
    writing = [
        asyncio.get_running_loop().create_task(writer.append(bytes(BESIDE_OTHERS_BYTES // 2)))
        for _ in range(4)
    ]
    await settle()
    assert [task.done() for task in writing] == [True, True, False, False]
    store.release()
    await settle()
    store.release()
    await asyncio.gather(*writing)


async def test_a_busy_store_is_offered_the_entry_again(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store, virtual_clock)
    store.append_error = StoreBusyError("busy")
    writing = asyncio.get_running_loop().create_task(writer.append(b"x"))
    await virtual_clock.sleep(BUSY_PAUSE_SECONDS * 2.5)
    store.append_error = None
    await writing
    await writer.append(b"y")
    await writer.close()
    assert store.ledgers[writer.ledger_id].entries == [b"x", b"y"]


async def test_a_store_that_stays_busy_ends_it(virtual_clock: VirtualClock) -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store, virtual_clock)
    store.append_error = StoreBusyError("busy")
    began = virtual_clock.monotonic_seconds()
    with pytest.raises(StoreBusyError):
        await writer.append(b"x")
    waited = virtual_clock.monotonic_seconds() - began
    assert waited == pytest.approx(BUSY_TRIES * BUSY_PAUSE_SECONDS)


async def test_a_failure_wakes_who_waits_and_is_told_again() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    store.is_holding = True
    await writer.append(b"x")
    closing = asyncio.get_running_loop().create_task(writer.close())
    await settle()
    assert not closing.done()
    store.fail_writers(StorageError("lost"))
    with pytest.raises(StorageError, match="lost"):
        await closing
    with pytest.raises(StorageError, match="lost"):
        await writer.append(b"y")


async def test_it_goes_on_with_a_writer_of_a_ledger_that_has_entries() -> None:
    bookie = await volatile_bookie()
    await write(bookie, 7, [b"1", b"2"], {})
    writer = await write(bookie, 7, [b"3"], {})
    await writer.close()
    assert await read(bookie, 7) == [b"1", b"2", b"3"]
