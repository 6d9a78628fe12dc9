from __future__ import annotations

import pytest

from pulsar_py.common.errors import DiskFullError, StorageError, StoreBusyError
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from pulsar_py.storage.shared.location import Location
from pulsar_py.storage.shared.write_cache import (
    LEDGER_OVERHEAD_BYTES,
    AppendGate,
    WriteCache,
    cut,
)


def add(cache: WriteCache, ledger: Ledger, entries: list[bytes]) -> None:
    size = sum(map(len, entries))
    cache.current.add(ledger, entries, size)
    ledger.last_add_pushed = ledger.last_add_taken = ledger.last_add_confirmed + len(entries)
    ledger.confirm(ledger.last_add_taken, size)


def test_entries_are_found_in_both_generations() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"0", b"1"])
    add(cache, ledger, [b"2"])
    cache.seal(1.0)
    add(cache, ledger, [b"3", b"4"])

    assert cache.find(5, 2) == ([b"0", b"1", b"2"], 2)
    assert cache.find(5, 3) == ([b"3", b"4"], 0)
    assert cache.find(5, 5) is None
    assert cache.find(6, 0) is None


def test_a_sealed_generation_keeps_the_state_of_its_time() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"0", b"1"])
    sealed = cache.seal(1.0)
    add(cache, ledger, [b"22"])
    ledger.record = ledger.record.closed(is_fenced=False, last_entry_id=2, length_bytes=4)
    cache.current.set_record(ledger)

    old = sealed.ledgers[5].final_record()
    new = cache.current.ledgers[5].final_record()

    assert (old.is_closed, old.last_entry_id, old.length_bytes) == (False, 1, 2)
    assert (new.is_closed, new.last_entry_id, new.length_bytes) == (True, 2, 4)


def test_deletion_frees_what_is_not_flushed() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"x" * 100] * 10)
    ledger.record = TOMBSTONE

    freed = cache.current.set_record(ledger)

    assert freed == 10 * 164
    assert cache.current.entries_cost_bytes == 0
    assert cache.find(5, 0) is None
    assert cache.current.ledgers[5].final_record().is_deleted


def test_a_flush_takes_the_bytes_of_living_entries() -> None:
    cache = WriteCache(0.0, (1, 0))
    kept, late, gone = (Ledger(ledger_id, LedgerRecord()) for ledger_id in (5, 6, 7))
    add(cache, kept, [b"0" * 10, b"1" * 20])
    cache.current.add(kept, [b"2" * 30], 30, kept_bytes=1000)
    add(cache, late, [b"4" * 500])
    add(cache, gone, [b"3" * 700])
    gone.record = TOMBSTONE
    cache.current.set_record(gone)
    sealed = cache.seal(1.0)
    assert sealed.flush_bytes() == 3 * LEDGER_OVERHEAD_BYTES + 560

    late.record = TOMBSTONE

    assert sealed.flush_bytes() == 3 * LEDGER_OVERHEAD_BYTES + 60


def test_dropping_the_sealed_generation_gives_its_cost() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"x" * 36])
    cache.current.mark = (1, 500)
    cache.seal(1.0)

    assert cache.current.mark == (1, 500)
    assert cache.drop_sealed().entries_cost_bytes == 100
    assert cache.sealed is None


def test_the_disks_room_is_used_up_by_appends_and_comes_back_by_a_look() -> None:
    gate = AppendGate(1000)
    gate.room_bytes -= 300
    assert not gate.is_disk_bound
    gate.set_disk_room(500)
    gate.room_bytes -= 450
    assert (gate.room_bytes, gate.disk_room_bytes, gate.waiting_bytes) == (50, 50, 750)

    gate.give_back(600)
    assert gate.is_disk_bound
    assert (gate.room_bytes, gate.waiting_bytes) == (50, 150)
    with pytest.raises(DiskFullError, match=r"150 bytes wait for the disk, .* room for 50 more"):
        raise gate.refusal()

    gate.shut(DiskFullError("full"))
    gate.set_disk_room(2000)
    assert (gate.disk_room_bytes, gate.waiting_bytes) == (2000, 150)
    gate.reopen()
    assert (gate.room_bytes, gate.is_disk_bound) == (850, False)


def test_the_gate_refuses_while_shut_and_counts_on() -> None:
    gate = AppendGate(1000)
    gate.room_bytes -= 300
    gate.shut(DiskFullError("no room on the disk"))
    gate.shut(DiskFullError("still none"))
    assert gate.room_bytes < 0
    with pytest.raises(DiskFullError, match="still none"):
        raise gate.refusal()

    gate.room_bytes += 300
    gate.reopen()
    gate.reopen()

    assert gate.room_bytes == 1000
    with pytest.raises(StoreBusyError, match="0 of 1000 bytes wait"):
        raise gate.refusal()
    gate.shut(StorageError("closed"))
    assert type(gate.refusal()) is StorageError


def test_cut_gives_at_least_one_then_what_fits() -> None:
    entries = [b"x" * 10 for _ in range(1000)]

    assert len(cut(entries, 0, 1000, 1)) == 1
    assert len(cut(entries, 5, 3, 1000)) == 3
    assert len(cut(entries, 0, 1000, 99)) == 9
    assert len(cut(entries, 0, 1000, 100)) == 10
    assert len(cut(entries, 0, 1000, 2565)) == 256
    assert len(cut(entries, 0, 1000, 9_999)) == 999
    assert len(cut(entries, 990, 1000, 10**9)) == 10


def test_entries_follow_the_last_confirmed_one_and_no_deletion() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"0", b"1"])
    ledger.last_add_confirmed = 2
    with pytest.raises(AssertionError):
        cache.current.add(ledger, [b"3"], 1)

    ledger.last_add_confirmed, ledger.record = 1, TOMBSTONE
    cache.current.set_record(ledger)
    with pytest.raises(AssertionError, match="entries after its end"):
        cache.current.add(ledger, [b"2"], 1)


def test_no_more_comes_back_to_the_gate_than_was_taken() -> None:
    gate = AppendGate(1000)
    gate.room_bytes -= 100
    gate.give_back(100)
    with pytest.raises(AssertionError, match="more came back"):
        gate.give_back(1)


def test_stretches_are_what_has_to_be_written_and_the_runs_that_were() -> None:
    cache, ledger = WriteCache(0.0, (1, 0)), Ledger(5, LedgerRecord())
    add(cache, ledger, [b"0", b"1"])
    places = [(2, Location(1, 32, 50, 2)), (4, Location(1, 82, 50, 1))]
    cache.current.add(ledger, [b"2", b"3", b"4"], 3, runs=places)
    ledger.last_add_pushed = ledger.last_add_taken = 4
    ledger.confirm(4, 3)
    cached = cache.current.ledgers[5]
    assert list(cached.stretches()) == [range(2), *places]
    add(cache, ledger, [b"5"])
    assert list(cached.stretches()) == [range(2), *places, range(5, 6)]

    ledger.record = TOMBSTONE
    assert list(cached.stretches()) == []
    cache.current.set_record(ledger)
    assert cached.runs == []
