"""SimulatedLedgerStore: its faults are those the interface allows."""

import asyncio

import pytest

from pulsar_py.common.errors import (
    EntryNotFoundError,
    LedgerClosedError,
    LedgerFencedError,
    LedgerNotFoundError,
    StorageError,
)
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.testing.ledger_store import SimulatedLedgerStore
from tests.ledger_parts import all_ledgers


class Listener:
    def __init__(self):
        self.confirmed = []
        self.failed = []

    def on_confirmed(self, ledger_id, last_add_confirmed):
        self.confirmed.append(last_add_confirmed)

    def on_failed(self, ledger_id, error):
        self.failed.append(error)


async def writer_of(store):
    listener = Listener()
    return await store.create(listener, LedgerOptions(custom_metadata={"a": b"b"})), listener


async def test_appends_are_confirmed_as_a_group_or_when_released():
    store = SimulatedLedgerStore()
    writer, listener = await writer_of(store)
    assert [writer.append(b"x"), writer.append(b"y")] == [0, 1]
    await asyncio.sleep(0)
    assert listener.confirmed == [1]
    store.is_holding = True
    writer.append(b"z")
    await asyncio.sleep(0)
    assert (writer.last_add_pushed, writer.last_add_confirmed) == (2, 1)
    store.release()
    await asyncio.sleep(0)
    assert listener.confirmed == [1, 2]
    assert await writer.read(0, 9, 2) == [b"x", b"y"]


async def test_closing_ends_at_the_last_confirmed_entry():
    store = SimulatedLedgerStore()
    writer, _ = await writer_of(store)
    store.is_holding = True
    writer.append(b"x")
    await writer.close()
    assert (await store.info(writer.ledger_id)).last_entry_id == -1
    with pytest.raises(LedgerClosedError):
        writer.append(b"y")


async def test_recovering_fences_the_writer():
    store = SimulatedLedgerStore()
    writer, listener = await writer_of(store)
    writer.append(b"x")
    reader = await store.recover(writer.ledger_id)
    assert reader.is_closed
    with pytest.raises(LedgerFencedError):
        writer.append(b"y")
    with pytest.raises(EntryNotFoundError):
        await (await store.open(writer.ledger_id)).read(5, 5, 1)
    assert listener.confirmed == [0]


async def test_a_failed_writer_takes_nothing_more():
    store = SimulatedLedgerStore()
    writer, listener = await writer_of(store)
    store.is_holding = True
    writer.append(b"x")
    store.fail_writers(StorageError("broken"))
    assert len(listener.failed) == 1
    with pytest.raises(StorageError):
        writer.append(b"y")


async def test_deleted_ledgers_are_gone():
    store = SimulatedLedgerStore()
    writer, _ = await writer_of(store)
    await store.delete(writer.ledger_id)
    await store.delete(writer.ledger_id)
    assert await all_ledgers(store) == []
    with pytest.raises(LedgerNotFoundError):
        await store.open(writer.ledger_id)
