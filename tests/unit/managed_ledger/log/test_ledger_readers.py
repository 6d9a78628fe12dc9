"""LedgerReaders: handles are shared, bounded, and closed."""

import asyncio

import pytest

from pulsar_py.common.errors import LedgerNotFoundError, ManagedLedgerClosedError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.managed_ledger.log.ledger_readers import MAX_OPEN_READERS, LedgerReaders
from pulsar_py.testing.ledger_store import SimulatedLedgerStore


class Nobody:
    def on_confirmed(self, ledger_id, last_add_confirmed):
        pass


async def store_with(count):
    store = SimulatedLedgerStore()
    ledger_ids = []
    for _ in range(count):
        writer = await store.create(Nobody(), LedgerOptions())
        writer.append(b"x")
        await asyncio.sleep(0)
        await writer.close()
        ledger_ids.append(writer.ledger_id)
    return store, ledger_ids


async def test_a_ledger_is_opened_once_and_then_read_from_memory():
    store, (ledger_id,) = await store_with(1)
    readers = LedgerReaders(store, b"")
    assert readers.read_cached(ledger_id, 0, 0, 10) is None
    both = await asyncio.gather(*(readers.read(ledger_id, 0, 0, 10) for _ in range(2)))
    assert both == [[b"x"], [b"x"]]
    assert readers.read_cached(ledger_id, 0, 0, 10) == [b"x"]


async def test_open_handles_are_bounded():
    store, ledger_ids = await store_with(MAX_OPEN_READERS + 10)
    readers = LedgerReaders(store, b"")
    for ledger_id in ledger_ids:
        assert await readers.read(ledger_id, 0, 0, 10) == [b"x"]
    assert len(readers._open) <= MAX_OPEN_READERS
    assert ledger_ids[-1] in readers._open
    assert ledger_ids[0] not in readers._open


async def test_a_slow_opening_delays_no_other_ledger(monkeypatch):
    store, (slow, quick) = await store_with(2)
    readers = LedgerReaders(store, b"")
    may_open, original = asyncio.Event(), store.open

    async def open_slowly(ledger_id, **options):
        if ledger_id == slow:
            await may_open.wait()
        return await original(ledger_id, **options)

    monkeypatch.setattr(store, "open", open_slowly)
    reading = asyncio.ensure_future(readers.read(slow, 0, 0, 10))  # noqa: TID251  (a test's own)
    await asyncio.sleep(0)
    assert await asyncio.wait_for(readers.read(quick, 0, 0, 10), 30) == [b"x"]
    assert not reading.done()
    may_open.set()
    assert await reading == [b"x"]


async def test_forgotten_and_closed_ones_are_gone():
    store, (ledger_id,) = await store_with(1)
    readers = LedgerReaders(store, b"")
    await readers.read(ledger_id, 0, 0, 10)
    await readers.forget([ledger_id, 99])
    assert readers.read_cached(ledger_id, 0, 0, 10) is None
    await store.delete(ledger_id)
    with pytest.raises(LedgerNotFoundError):
        await readers.read(ledger_id, 0, 0, 10)
    await readers.close()
    with pytest.raises(ManagedLedgerClosedError):
        await readers.read(ledger_id, 0, 0, 10)
