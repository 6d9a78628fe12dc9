from __future__ import annotations

from array import array

import pytest

from pulsar_py.common.errors import DiskFullError, StorageError, StoreUnavailableError
from pulsar_py.ledgers.store import LedgerOptions
from pulsar_py.storage.journal.group_outcomes import GroupOutcomes
from pulsar_py.storage.journal.journal import Group
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.ledger_record import TOMBSTONE, LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger, entries_cost
from pulsar_py.storage.shared.write_cache import AppendGate, WriteCache

LIMIT_BYTES = 10_000


class Listener:
    """Remembers what it is told, and may be at fault."""

    def __init__(self, *, fails: bool = False) -> None:
        self.told: list[object] = []
        self.fails = fails

    def on_confirmed(self, ledger_id: int, last_add_confirmed: int) -> None:
        self.told.append((ledger_id, last_add_confirmed))
        if self.fails:
            raise ValueError("its own fault")

    def on_failed(self, ledger_id: int, error: StorageError) -> None:
        self.told.append((ledger_id, type(error)))
        if self.fails:
            raise ValueError("its own fault")


class World:
    def __init__(self) -> None:
        self.gate = AppendGate(LIMIT_BYTES)
        self.cache = WriteCache(0.0, (0, 0))
        self.group: Group | None = None
        self.groups_count = 0
        self.full: list[DiskFullError] = []
        self.outcomes = GroupOutcomes(
            self.gate, self.cache, self, lambda: self.group, is_volatile=False
        )

    def on_group(self) -> None:
        self.groups_count += 1

    def on_disk_full(self, error: DiskFullError) -> None:
        self.full.append(error)

    def taken(self, ledger_id: int, listener: Listener) -> tuple[Ledger, Section]:
        """A ledger of which the journal has taken two entries."""
        ledger = Ledger(ledger_id, LedgerRecord.created(LedgerOptions()))
        ledger.listener = listener
        ledger.last_add_pushed = ledger.last_add_taken = 1
        section = Section(ledger_id, 0, [b"ab", b"c"], array("I", [2, 1]), 3)
        self.gate.room_bytes -= entries_cost(section.entries)
        return ledger, section

    def ends(self, *taken: tuple[Ledger, Section], error: StorageError | None = None) -> None:
        group = Group([ledger for ledger, _ in taken], [section for _, section in taken], [], 3)
        group.end = (1, 100)
        self.outcomes.on_group(group, error)


def test_a_written_group_is_readable_before_anybody_is_told_and_a_fault_stays_with_its_owner() -> (
    None
):
    world = World()
    faulty, sound = Listener(fails=True), Listener()
    one, other = world.taken(1, faulty), world.taken(2, sound)
    world.ends(one, other)
    assert (faulty.told, sound.told) == ([(1, 1)], [(2, 1)])
    for ledger_id in (1, 2):
        found = world.cache.find(ledger_id, 1)
        assert found is not None
        entries, place = found
        assert entries[place] == b"c"
    assert world.cache.current.mark == (1, 100)
    assert world.groups_count == 1


@pytest.mark.parametrize("error", [StorageError("broken"), DiskFullError("full")])
def test_a_group_that_was_not_written_fails_its_ledgers_once_and_for_good(
    error: StorageError,
) -> None:
    world = World()
    faulty, sound = Listener(fails=True), Listener()
    one, other = world.taken(1, faulty), world.taken(2, sound)
    world.ends(one, other, error=error)
    world.outcomes.fail(one[0], StorageError("later"))
    assert (faulty.told, sound.told) == ([(1, type(error))], [(2, type(error))])
    assert one[0].last_add_pushed == -1
    assert world.gate.waiting_bytes == 0
    assert world.cache.find(1, 0) is None
    assert bool(world.full) == isinstance(error, DiskFullError)
    assert not world.groups_count
    refusal = one[0].refusal
    assert refusal is not None
    assert not isinstance(refusal, StoreUnavailableError), "nobody appends here again"


def test_who_lent_memory_that_is_being_written_is_told_when_it_is_not_any_more() -> None:
    world = World()
    listener = Listener()
    ledger, section = world.taken(1, listener)
    ledger.lent_taken_count = 1
    world.group = Group([ledger], [section], [], 3)
    world.outcomes.fail(ledger, StorageError("late"))
    assert not listener.told
    ledger.last_add_taken = ledger.last_add_confirmed
    ledger.notify_settled()
    assert listener.told == [(1, StorageError)]


def test_nothing_follows_deletion_and_only_deletion_follows_the_end() -> None:
    world = World()
    ledger, _ = world.taken(1, Listener())
    created = ledger.record
    closed = created.closed(is_fenced=False, last_entry_id=1, length_bytes=3)
    for record, then in (
        (closed, closed), (created, closed), (TOMBSTONE, TOMBSTONE), (closed, TOMBSTONE),
    ):  # fmt: skip
        world.outcomes.apply_record(ledger, record)
        assert ledger.record is then
