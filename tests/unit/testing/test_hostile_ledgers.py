"""HostileLedgers: uses all the freedom of the contract, keeps to it, and tells who breaks it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import fields

import pytest

from pulsar_py.common.errors import LedgerNotFoundError, MetadataError, StorageError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.testing.clock import run_virtual
from pulsar_py.testing.hostile_ledgers import HostileLedgers, LedgerFaults

SEEDS_COUNT = 150


class Owner:
    """Remembers what its writer confirmed."""

    def __init__(self) -> None:
        self.confirmed = -1
        self.failure: StorageError | None = None

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        assert self.failure is None
        assert last_add_confirmed > self.confirmed
        self.confirmed = last_add_confirmed

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        assert self.failure is None
        self.failure = error


def value(ledger_id: int, entry_id: int) -> bytes:
    return b"%d:%d" % (ledger_id, entry_id)


async def live(service: HostileLedgers, name: str, log: list[str]) -> None:
    """One broker: make a ledger, append, end it in one way or another, read it, delete it."""
    chance, client = service.chance, service.connect(name)
    for _ in range(6):
        owner = Owner()
        try:
            writer = await client.create(owner, LedgerOptions())
        except StorageError as error:
            log.append(f"{name} create {error}")
            continue
        for _ in range(chance.randint(0, 30)):
            try:
                writer.append(value(writer.ledger_id, writer.last_add_pushed + 1))
            except StorageError as error:
                log.append(f"{name} append {error}")
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.01, 0.2)))
            if chance.random() < 0.05:
                client.freeze()
                asyncio.get_running_loop().call_later(chance.uniform(0, 15), client.thaw)
        if chance.random() < 0.7:
            try:
                await writer.close()
            except StorageError as error:
                log.append(f"{name} close {error}")
        try:
            reader = await client.recover(writer.ledger_id)
            assert reader.last_add_confirmed >= owner.confirmed
            read: list[bytes] = []
            while len(read) <= reader.last_add_confirmed:
                read += await reader.read(len(read), reader.last_add_confirmed, 50)
            assert read == [value(writer.ledger_id, each) for each in range(len(read))]
            await client.delete(writer.ledger_id)
        except (StorageError, MetadataError) as error:
            log.append(f"{name} end {error}")
        log.append(
            f"{name} {writer.ledger_id} {owner.confirmed} {asyncio.get_running_loop().time()}"
        )


def run(seed: int) -> tuple[HostileLedgers, list[str]]:
    async def world() -> tuple[HostileLedgers, list[str]]:
        service = HostileLedgers(random.Random(seed), LedgerFaults.storm())
        log: list[str] = []
        await asyncio.gather(live(service, "a", log), live(service, "b", log))
        service.check()
        return service, log

    return run_virtual(world())


def test_a_storm_breaks_no_promise_and_has_everything_in_it() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS_COUNT):
        service, _ = run(seed)
        seen.update(service.counts)

    wanted = {
        "slow", "silent", "silent append", "unavailable", "busy", "unknown outcome", "late fence",
        "repair", "lost tail", "short read",
    }  # fmt: skip
    assert wanted <= seen.keys(), wanted - seen.keys()


def test_a_seed_replays_exactly() -> None:
    assert run(3)[1] == run(3)[1]
    assert run(3)[1] != run(4)[1]


def test_by_default_nothing_goes_wrong_and_nothing_is_drawn() -> None:
    service = HostileLedgers(random.Random(1))
    before = service.chance.getstate()

    assert all(getattr(service.faults, each.name) == 0 for each in fields(LedgerFaults))
    assert service.delay_seconds() == 0
    assert not service.happens(service.faults.busy_share, "busy")
    assert service.chance.getstate() == before


def test_an_id_given_twice_is_found() -> None:
    service = HostileLedgers(random.Random(1))
    service.create(7, LedgerOptions())

    with pytest.raises(AssertionError, match="id 7 was given to two ledgers"):
        service.create(7, LedgerOptions())
    with pytest.raises(AssertionError, match="id 7"):
        service.check()


def test_an_entry_written_twice_is_found() -> None:
    service = HostileLedgers(random.Random(1))
    ledger = service.create(7, LedgerOptions())
    service.store_entry(ledger, 0, b"a")
    service.store_entry(ledger, 0, b"a")

    with pytest.raises(AssertionError, match="entry 0 was written twice"):
        service.store_entry(ledger, 0, b"b")


def test_a_confirmed_entry_beyond_the_end_is_found() -> None:
    service = HostileLedgers(random.Random(1))
    ledger = service.create(7, LedgerOptions())
    for entry_id in range(3):
        service.store_entry(ledger, entry_id, b"x")
        service.answer_entry(ledger, entry_id)
    service.on_told(ledger, 2)

    with pytest.raises(AssertionError, match="2 was confirmed, it ends at 1"):
        service.close(ledger, 1)


def test_a_second_end_is_found() -> None:
    service = HostileLedgers(random.Random(1))
    ledger = service.create(7, LedgerOptions())
    service.close(ledger, -1)
    service.close(ledger, -1)

    with pytest.raises(AssertionError, match="ended at -1, now at 0"):
        service.close(ledger, 0)


def test_a_confirmation_without_an_answer_is_found() -> None:
    service = HostileLedgers(random.Random(1))
    ledger = service.create(7, LedgerOptions())
    service.store_entry(ledger, 0, b"x")

    with pytest.raises(AssertionError, match="0 is not confirmed"):
        service.on_told(ledger, 0)


def test_a_recovery_finds_what_was_answered_and_perhaps_more() -> None:
    ends = set()
    for seed in range(50):
        service = HostileLedgers(random.Random(seed), LedgerFaults(lost_tail_share=0.5))
        ledger = service.create(7, LedgerOptions())
        for entry_id in (0, 1, 2, 3, 5):  # 4 did not come
            service.store_entry(ledger, entry_id, b"x")
        service.answer_entry(ledger, 1)
        service.answer_entry(ledger, 0)
        service.recover(ledger)
        service.recover(ledger)
        assert ledger.end is not None
        ends.add(ledger.end)
        assert sorted(ledger.entries) == list(range(ledger.end + 1))

    assert ends == {1, 2, 3}


async def test_pages_leave_deleted_ledgers_out() -> None:
    service = HostileLedgers(random.Random(1))
    for ledger_id in range(1, 251):
        service.create(ledger_id, LedgerOptions())
    service.delete(101)

    assert list(service.page(0)) == list(range(1, 101))
    assert list(service.page(100)) == list(range(102, 202))
    assert service.page(250) == []
    with pytest.raises(LedgerNotFoundError):
        service.find(101)
