"""HostileLedgerStore: each fault alone, as its user sees it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pulsar_py.common.errors import (
    DiskFullError,
    LedgerFencedError,
    LedgerNotFoundError,
    NotEnoughBookiesError,
    StorageError,
    StoreBusyError,
    StoreUnavailableError,
)
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.testing.clock import run_virtual
from pulsar_py.testing.hostile_ledger_client import HostileLedgerStore, HostileWriter
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults
from tests.ledger_parts import all_ledgers
from tests.unit.testing.test_hostile_ledgers import Owner

TASKS = TaskOwner("test")


def virtual(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time."""

    def run() -> None:
        run_virtual(test())

    return run


def connected(faults: LedgerFaults | None = None, seed: int = 1) -> HostileLedgerStore:
    return HostileLedgers(random.Random(seed), faults).connect("broker")


async def writer_of(client: HostileLedgerStore) -> tuple[HostileWriter, Owner]:
    owner = Owner()
    writer = await client.create(owner, LedgerOptions())
    assert isinstance(writer, HostileWriter)
    return writer, owner


@virtual
async def test_an_idle_writer_does_not_learn_that_it_was_fenced() -> None:
    one = connected()
    other = one.service.connect("other")
    writer, owner = await writer_of(one)
    await other.recover(writer.ledger_id)
    await asyncio.sleep(3600)
    assert owner.failure is None

    writer.append(b"x")
    await asyncio.sleep(0.1)

    assert isinstance(owner.failure, LedgerFencedError)
    with pytest.raises(LedgerFencedError):
        writer.append(b"y")


@virtual
async def test_a_lost_refusal_is_learnt_at_the_time_out_at_the_latest() -> None:
    client = connected(LedgerFaults(late_fence_share=1.0))
    writer, owner = await writer_of(client)
    await client.recover(writer.ledger_id)

    writer.append(b"x")
    await asyncio.sleep(9.9)
    assert owner.failure is None
    await asyncio.sleep(0.2)

    assert isinstance(owner.failure, StoreUnavailableError)
    with pytest.raises(StorageError, match="ledger failed") as refused:
        writer.append(b"y")
    assert not isinstance(refused.value, StoreUnavailableError)


@virtual
async def test_a_frozen_client_neither_sends_nor_hears() -> None:
    client = connected(LedgerFaults(delay_seconds=0.1))
    writer, owner = await writer_of(client)
    writer.append(b"sent")
    client.freeze()
    writer.append(b"held")
    asking = TASKS.spawn(client.info(writer.ledger_id), "info")
    await asyncio.sleep(9)
    ledger = client.service.ledgers[writer.ledger_id]
    assert (sorted(ledger.entries), owner.confirmed, asking.done()) == ([0], -1, False)

    client.thaw()
    await asyncio.sleep(0.9)

    assert (owner.confirmed, asking.done()) == (1, True)


@virtual
async def test_a_client_that_wakes_up_too_late_was_fenced_meanwhile() -> None:
    one = connected()
    other = one.service.connect("other")
    writer, owner = await writer_of(one)
    writer.append(b"in time")
    await asyncio.sleep(0.1)
    one.freeze()
    writer.append(b"held")
    reader = await other.recover(writer.ledger_id)
    assert reader.last_add_confirmed == 0
    await asyncio.sleep(5)
    assert owner.failure is None

    one.thaw()
    await asyncio.sleep(0.1)

    assert isinstance(owner.failure, LedgerFencedError)
    assert owner.confirmed == 0


@virtual
async def test_a_time_out_is_not_heard_while_frozen() -> None:
    client = connected()
    writer, owner = await writer_of(client)
    client.freeze()
    writer.append(b"held")
    asking = TASKS.spawn(client.info(writer.ledger_id), "info")
    await asyncio.sleep(60)
    assert owner.failure is None
    assert not asking.done()

    client.thaw()
    await asyncio.sleep(0.1)

    assert owner.failure is not None or owner.confirmed == 0
    assert isinstance(asking.exception(), StoreUnavailableError)


@virtual
async def test_a_client_that_is_cut_off_does_nothing_more() -> None:
    client = connected(LedgerFaults(delay_seconds=0.1))
    writer, owner = await writer_of(client)
    writer.append(b"x")
    client.cut_off()
    await asyncio.sleep(60)

    assert (owner.confirmed, owner.failure) == (-1, None)
    reader = await client.service.connect("next").recover(writer.ledger_id)
    assert reader.last_add_confirmed == 0


@virtual
async def test_a_creation_of_unknown_outcome_may_leave_a_ledger() -> None:
    left = set()
    for seed in range(20):
        client = connected(LedgerFaults(create_unknown_share=1.0), seed)
        with pytest.raises(StoreUnavailableError, match="outcome is unknown"):
            await writer_of(client)
        left.add(len(await all_ledgers(client)))

    assert left == {0, 1}


@virtual
async def test_a_closing_of_unknown_outcome_can_be_tried_again() -> None:
    written = set()
    for seed in range(20):
        client = connected(seed=seed)
        writer, _ = await writer_of(client)
        client.service.faults = LedgerFaults(close_unknown_share=1.0)
        with pytest.raises(StorageError, match="outcome is unknown"):
            await writer.close()
        written.add((await client.info(writer.ledger_id)).is_closed)
        client.service.faults = LedgerFaults()
        await writer.close()
        assert (await client.info(writer.ledger_id)).last_entry_id == -1

    assert written == {False, True}


@virtual
async def test_a_repairer_fences_a_living_writer() -> None:
    client = connected(LedgerFaults(repair_share=1.0))
    writer, owner = await writer_of(client)
    for _ in range(10):
        if owner.failure is None:
            writer.append(b"x")
        await asyncio.sleep(0.1)

    assert isinstance(owner.failure, LedgerFencedError)
    assert (await client.recover(writer.ledger_id)).last_add_confirmed >= owner.confirmed


@virtual
async def test_a_busy_connection_leaves_the_ledger_as_it_is() -> None:
    client = connected(LedgerFaults(busy_share=1.0))
    writer, owner = await writer_of(client)
    with pytest.raises(StoreBusyError):
        writer.append(b"x")
    client.service.faults = LedgerFaults()

    assert writer.append(b"y") == 0
    await asyncio.sleep(0.1)

    assert owner.confirmed == 0
    assert client.pending_bytes == client.pins.rest_bytes == 0


@virtual
async def test_without_room_nothing_is_written_and_nothing_breaks() -> None:
    client = connected()
    writer, owner = await writer_of(client)
    client.service.faults = LedgerFaults(no_room_share=1.0)
    kinds = set()
    for _ in range(20):
        with pytest.raises((DiskFullError, NotEnoughBookiesError)) as refusal:
            writer.append(b"x")
        kinds.add(refusal.type)
    with pytest.raises((DiskFullError, NotEnoughBookiesError)):
        await client.create(owner, LedgerOptions())
    client.service.faults = LedgerFaults()

    assert writer.append(b"y") == 0
    await asyncio.sleep(0.1)

    assert kinds == {DiskFullError, NotEnoughBookiesError}
    assert owner.confirmed == 0
    assert client.pending_bytes == client.pins.rest_bytes == 0


@virtual
async def test_a_reader_hears_of_the_end_late() -> None:
    client = connected(LedgerFaults(lag_share=1.0))
    writer, _ = await writer_of(client)
    for _ in range(10):
        writer.append(b"x")
    await asyncio.sleep(0.1)
    reader = await client.open(writer.ledger_id)

    assert 6 <= reader.last_add_confirmed < 9
    assert reader.last_add_confirmed <= await reader.read_last_add_confirmed() < 9
    client.service.faults = LedgerFaults()
    assert await reader.read_last_add_confirmed() == 9


@virtual
async def test_a_deleted_ledger_is_read_for_a_while() -> None:
    client = connected(LedgerFaults(deleted_readable_seconds=100.0))
    writer, _ = await writer_of(client)
    writer.append(b"x")
    await asyncio.sleep(0.1)
    await client.delete(writer.ledger_id)

    assert await all_ledgers(client) == []
    assert list(await writer.read(0, 0, 1)) == [b"x"]
    await asyncio.sleep(100)
    with pytest.raises(LedgerNotFoundError):
        await writer.read(0, 0, 1)


@virtual
async def test_lent_memory_that_changes_too_early_is_found() -> None:
    client = connected(LedgerFaults(delay_seconds=1.0))
    writer, _ = await writer_of(client)
    memory = bytearray(b"lent")
    writer.append(memoryview(memory))
    memory[0] = 0
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await asyncio.sleep(10)

    with pytest.raises(AssertionError, match="lent memory of entry 0 has changed"):
        client.service.check()


@virtual
async def test_a_listing_may_be_cut_off() -> None:
    client = connected()
    for _ in range(3):
        await writer_of(client)
    client.service.faults = LedgerFaults(listing_cut_share=1.0)

    with pytest.raises(StoreUnavailableError, match="can't be listed"):
        await all_ledgers(client)


@virtual
async def test_a_closed_store_takes_no_calls() -> None:
    client = connected()
    writer, _ = await writer_of(client)
    await client.close()

    with pytest.raises(StorageError, match="the store is closed"):
        writer.append(b"x")
    with pytest.raises(StorageError, match="the store is closed"):
        await client.open(writer.ledger_id)
