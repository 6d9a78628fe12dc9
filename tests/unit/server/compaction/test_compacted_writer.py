"""Writing of a compacted ledger: labels, bounds of what is unconfirmed, a busy store, failures."""

from __future__ import annotations

import asyncio

import pytest

from pulsar_py.common.errors import StorageError, StoreBusyError
from pulsar_py.ledgers import labels
from pulsar_py.ledgers.store import DigestType
from pulsar_py.server.compaction.compacted_writer import (
    BUSY_PAUSE_SECONDS,
    BUSY_TRIES,
    MAX_UNCONFIRMED,
    MAX_UNCONFIRMED_BYTES,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.managed_ledger_parts import settle
from tests.unit.server.compaction.stored import new_writer


async def test_the_ledger_has_the_labels_and_the_digest_of_pulsar() -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    options = store.ledgers[writer.ledger_id].options
    assert (options.digest_type, options.password) == (DigestType.CRC32, b"")
    assert options.custom_metadata == labels.compacted_ledger("here", "topic", b"to")


@pytest.mark.parametrize(
    ("size_bytes", "most"), [(1, MAX_UNCONFIRMED), (MAX_UNCONFIRMED_BYTES // 4 + 1, 4)]
)
async def test_beyond_a_bound_it_waits_for_confirmations(size_bytes: int, most: int) -> None:
    store = SimulatedLedgerStore()
    writer = await new_writer(store)
    store.is_holding = True
    record = bytes(size_bytes)

    async def write() -> None:
        for _ in range(most + 3):
            await writer.append(record)
        await writer.close()

    writing = asyncio.get_running_loop().create_task(write())
    await settle()
    ledger = store.ledgers[writer.ledger_id]
    assert len(ledger.entries) == most
    store.release()
    await writing
    assert (len(ledger.entries), ledger.is_closed) == (most + 3, True)


async def test_a_busy_store_is_offered_the_record_again(virtual_clock: VirtualClock) -> None:
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
