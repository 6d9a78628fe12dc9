"""Ledger: one ledger in memory, shared by its handles, the journal and the write cache.

A `Ledger` lives while a handle or an unflushed generation of the write cache holds it; any other
ledger is a record in the index. `Ledgers` finds the living one, so that there is never a second.
Nothing here waits or writes.

Invariant: `last_add_confirmed` <= `last_add_taken` <= `last_add_pushed`; `pending` are the entries
after `last_add_taken`; the journal is writing those that are taken and not confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from pulsar_py.common.errors import LedgerNotFoundError, StorageError
from pulsar_py.ledgers.store import LedgerListener
from pulsar_py.storage.ledger_record import LedgerRecord, digest
from pulsar_py.storage.lent import Lent


class Ledger:
    """One ledger's state; touched by the loop alone."""

    __slots__ = (
        "__weakref__",
        "last_add_confirmed",
        "last_add_pushed",
        "last_add_taken",
        "ledger_id",
        "length_bytes",
        "lent_pending_count",
        "lent_taken_count",
        "listener",
        "pending",
        "record",
        "refusal",
        "settled_callbacks",
    )

    def __init__(self, ledger_id: int, record: LedgerRecord) -> None:
        self.ledger_id = ledger_id
        # What changes seldom; its end only counts once the ledger is closed.
        self.record = record
        self.last_add_confirmed = record.last_entry_id
        self.length_bytes = record.length_bytes
        self.last_add_pushed = record.last_entry_id
        self.last_add_taken = record.last_entry_id
        # Entries waiting for the journal.
        self.pending: list[bytes | Lent] = []
        # Lent ones among them, and among those that the journal has taken.
        self.lent_pending_count = 0
        self.lent_taken_count = 0
        # The writer's owner; None without a writer, and after its `on_failed` was called.
        self.listener: LedgerListener | None = None
        # Why nothing can be appended; None while it can.
        self.refusal: StorageError | None = None
        # Called when nothing is pending any more, nor taken by the journal.
        self.settled_callbacks: list[Callable[[], None]] = []

    @property
    def is_settled(self) -> bool:
        """Whether every appended entry is confirmed or was given up."""
        return not self.pending and self.last_add_taken == self.last_add_confirmed

    def confirm(self, last_entry_id: int, size_bytes: int) -> None:
        """Note that entries up to `last_entry_id` are durable, `size_bytes` more than before."""
        assert self.last_add_confirmed < last_entry_id <= self.last_add_taken
        assert size_bytes >= 0
        self.last_add_confirmed = last_entry_id
        self.length_bytes += size_bytes

    def give_up(self, refusal: StorageError) -> Sequence[bytes | Lent]:
        """Refuse further entries and drop the pending ones; returns those.

        Entries that the journal has taken stay with it.
        """
        if self.refusal is None:
            self.refusal = refusal
        pending, self.pending = self.pending, []
        self.lent_pending_count = 0
        self.last_add_pushed = self.last_add_taken
        return pending

    def take_back(self) -> None:
        """The journal failed to write what it had taken; `give_up` came before."""
        assert not self.pending, f"ledger {self.ledger_id}: entries would follow a hole"
        self.last_add_taken = self.last_add_pushed = self.last_add_confirmed

    def notify_settled(self) -> None:
        """Call those who wait for `is_settled`, if it holds now."""
        if self.settled_callbacks and self.is_settled:
            callbacks, self.settled_callbacks = self.settled_callbacks, []
            for callback in callbacks:
                callback()

    def check(self) -> None:
        """Assert the class's invariant."""
        assert self.last_add_confirmed <= self.last_add_taken <= self.last_add_pushed
        assert self.last_add_pushed - self.last_add_taken == len(self.pending)


ENTRY_OVERHEAD_BYTES = 64
"""Cost of an entry in memory beside its bytes: the object's header, its place in a list, and
what the allocator adds. Counted, so that a hundred thousand tiny entries can't exceed a limit."""


def entries_cost(entries: Sequence[bytes | Lent]) -> int:
    """Bytes of memory that entries hold."""
    return sum(map(len, entries)) + ENTRY_OVERHEAD_BYTES * len(entries)


class Ledgers:
    """The living ledgers by id."""

    def __init__(self) -> None:
        self._living: WeakValueDictionary[int, Ledger] = WeakValueDictionary()

    def find(self, ledger_id: int) -> Ledger | None:
        """The living ledger of that id."""
        return self._living.get(ledger_id)

    def adopt(self, ledger_id: int, record: LedgerRecord) -> Ledger:
        """The living ledger of that id, made from its record if there is none."""
        ledger = self._living.get(ledger_id)
        if ledger is None:
            ledger = self._living[ledger_id] = Ledger(ledger_id, record)
        return ledger

    def living(self) -> list[Ledger]:
        """All of them, in no order."""
        return list(self._living.values())


def check_password(ledger: Ledger, password: bytes) -> None:
    """Refuse another password than the ledger was created with.

    Raises:
        StorageError: It is another one.
    """
    if ledger.record.password_digest != digest(password):
        raise StorageError(f"ledger {ledger.ledger_id}: the password does not match")


def check_exists(ledger: Ledger) -> None:
    """Refuse a deleted ledger.

    Raises:
        LedgerNotFoundError: It was deleted.
    """
    if ledger.record.is_deleted:
        raise LedgerNotFoundError(f"ledger {ledger.ledger_id} was deleted")
