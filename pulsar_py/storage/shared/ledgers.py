"""`Ledger`: one ledger in memory, shared by its handles, the journal and the write cache (pure).

A `Ledger` object exists while a handle or an unflushed generation of the write cache refers to it;
any other ledger is only a record in the index. `Ledgers` finds the object, so that there is never a
second one for the same ledger.

Invariant: `last_add_confirmed` <= `last_add_taken` <= `last_add_pushed`; `pending` are the entries
after `last_add_taken`; the journal is writing those that are taken and not confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from pulsar_py.common.errors import LedgerNotFoundError, StorageError
from pulsar_py.ledgers.store import LedgerListener
from pulsar_py.storage.shared.ledger_record import LedgerRecord, digest
from pulsar_py.storage.shared.lent import Lent


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
        # Stored state that changes seldom; its end only counts once the ledger is closed.
        self.record = record
        self.last_add_confirmed = record.last_entry_id
        self.length_bytes = record.length_bytes
        self.last_add_pushed = record.last_entry_id
        self.last_add_taken = record.last_entry_id
        # Entries waiting for the journal.
        self.pending: list[bytes | Lent] = []
        # The number of lent entries among them, and among those that the journal has taken.
        self.lent_pending_count = 0
        self.lent_taken_count = 0
        # The writer's owner; None without a writer, and after its `on_failed` was called.
        self.listener: LedgerListener | None = None
        # The error that refuses appends; None while they are accepted.
        self.refusal: StorageError | None = None
        # Called once when `is_settled` becomes true.
        self.settled_callbacks: list[Callable[[], None]] = []

    @property
    def is_settled(self) -> bool:
        """Whether every appended entry is confirmed or has failed."""
        return not self.pending and self.last_add_taken == self.last_add_confirmed

    def confirm(self, last_entry_id: int, size_bytes: int) -> None:
        """Note that entries up to `last_entry_id` are durable, `size_bytes` more than before."""
        assert self.last_add_confirmed < last_entry_id <= self.last_add_taken
        assert size_bytes >= 0
        self.last_add_confirmed = last_entry_id
        self.length_bytes += size_bytes

    def give_up(self, refusal: StorageError) -> Sequence[bytes | Lent]:
        """Refuse further entries and drop the pending ones; returns those.

        The journal goes on writing the entries that it has taken.
        """
        if self.refusal is None:
            self.refusal = refusal
        pending, self.pending = self.pending, []
        self.lent_pending_count = 0
        self.last_add_pushed = self.last_add_taken
        return pending

    def take_back(self) -> None:
        """Drop the entries that the journal took and failed to write; call `give_up` before."""
        assert not self.pending, f"ledger {self.ledger_id}: entries would follow lost ones"
        self.last_add_taken = self.last_add_pushed = self.last_add_confirmed

    def notify_settled(self) -> None:
        """Call `settled_callbacks` if `is_settled` is true now."""
        if self.settled_callbacks and self.is_settled:
            callbacks, self.settled_callbacks = self.settled_callbacks, []
            for callback in callbacks:
                callback()

    def check(self) -> None:
        """Assert the class's invariant."""
        assert self.last_add_confirmed <= self.last_add_taken <= self.last_add_pushed
        assert self.last_add_pushed - self.last_add_taken == len(self.pending)


ENTRY_OVERHEAD_BYTES = 64
"""Memory of an entry beside its bytes: the object's header, its place in a list, and what the
allocator adds. It is counted so that many tiny entries can't exceed a limit by far."""


def entries_cost(entries: Sequence[bytes | Lent]) -> int:
    """Bytes of memory that entries hold."""
    return sum(map(len, entries)) + ENTRY_OVERHEAD_BYTES * len(entries)


class Ledgers:
    """The `Ledger` objects that exist, by id; it keeps none of them alive."""

    def __init__(self) -> None:
        self._living: WeakValueDictionary[int, Ledger] = WeakValueDictionary()

    def find(self, ledger_id: int) -> Ledger | None:
        """The ledger's object; None if there is none."""
        return self._living.get(ledger_id)

    def adopt(self, ledger_id: int, record: LedgerRecord) -> Ledger:
        """The ledger's object, made from its record if there is none."""
        ledger = self._living.get(ledger_id)
        if ledger is None:
            ledger = self._living[ledger_id] = Ledger(ledger_id, record)
        return ledger

    def living(self) -> list[Ledger]:
        """All objects, in no order."""
        return list(self._living.values())


def check_password(ledger: Ledger, password: bytes) -> None:
    """Refuse a password other than the one that the ledger was created with.

    Raises:
        StorageError: The password does not match.
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
