"""`GroupOutcomes`: updates memory when a group is synced or failed, and calls its listeners (edge).

When the journal has written a group, its entries go to the write cache and its records to their
ledgers, by the same code that replays the journal at the start; then the writers' owners are told,
once a group. When it could not, the ledgers of the group fail: their writers take nothing more.

Lent memory goes back to its owner with that news, and not while the group is still being written.

Source: Journal's callbacks and the write path of Bookie in Apache BookKeeper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from pulsar_py.common.errors import DiskFullError, StorageError, StoreUnavailableError
from pulsar_py.storage.journal.journal import Group
from pulsar_py.storage.journal.journal_format import Section
from pulsar_py.storage.shared.ledger_record import LedgerRecord
from pulsar_py.storage.shared.ledgers import Ledger
from pulsar_py.storage.shared.write_cache import AppendGate, WriteCache

logger = logging.getLogger(__name__)


class Housekeeping(Protocol):
    """The part of the `Housekeeper` that is called when groups end."""

    def on_group(self) -> None:
        """Called when a group was written and applied."""

    def on_disk_full(self, error: DiskFullError) -> None:
        """Called when a group was not written because the disk is full."""


class GroupOutcomes:
    """The ends of all groups of one engine. Owned by the Bookie."""

    def __init__(
        self,
        gate: AppendGate,
        cache: WriteCache,
        housekeeper: Housekeeping,
        group: Callable[[], Group | None],
        *,
        is_volatile: bool,
    ) -> None:
        """`group` is the one that is being written."""
        self._gate = gate
        self._cache = cache
        self._housekeeper = housekeeper
        self._group = group
        self._is_volatile = is_volatile

    def give_up(self, ledger: Ledger, error: StorageError) -> int:
        """Refuse further appends and drop the pending ones; returns how many those were."""
        # StoreUnavailableError means "try again", but this ledger takes no appends any more.
        is_unavailable = isinstance(error, StoreUnavailableError)
        refusal = (
            StorageError(f"ledger {ledger.ledger_id} failed: {error}") if is_unavailable else error
        )
        lent_count = ledger.lent_pending_count
        dropped = ledger.give_up(refusal)
        self._gate.give_back_entries(dropped, lent_count=lent_count)
        return len(dropped)

    def fail(self, ledger: Ledger, error: StorageError) -> None:
        """Refuse further appends, drop the pending ones, and tell the writer's owner, once."""
        self.give_up(ledger, error)
        self.report(ledger, error)

    def report(self, ledger: Ledger, error: StorageError) -> None:
        """Tell the writer's owner, once, when nothing of what it lent is being written."""
        group = self._group()
        if ledger.lent_taken_count and group is not None and not group.is_late:
            # Lent memory is being written. The owner may change it once it is told of the failure,
            # so it is told only when that write has ended.
            ledger.settled_callbacks.append(partial(self._tell_failed, ledger, error))
        else:
            self._tell_failed(ledger, error)

    def _tell_failed(self, ledger: Ledger, error: StorageError) -> None:
        listener, ledger.listener = ledger.listener, None
        if listener is not None:
            try:
                listener.on_failed(ledger.ledger_id, error)
            except Exception:  # An error of one listener must not reach other ledgers.
                logger.exception("listener failed", extra={"ledger_id": ledger.ledger_id})

    def on_group(self, group: Group, error: StorageError | None) -> None:
        """A group is written, or was not: apply it and tell its listeners."""
        if error is not None:
            self._on_group_failed(group, error)
            return
        parts = list(zip(group.ledgers, group.sections, strict=True))
        for ledger, section in parts:
            self.apply_section(ledger, section)
        changes = group.changes
        for change in changes:
            self.apply_record(change.ledger, change.record)
        assert self._is_volatile or group.end > self._cache.current.mark
        self._cache.current.mark = group.end
        # Only now, with the whole group applied: listeners may read or close any ledger of it.
        for ledger, section in parts:
            if ledger.listener is not None:
                try:
                    ledger.listener.on_confirmed(ledger.ledger_id, section.last_entry_id)
                except Exception:  # An error of one listener must not reach other ledgers.
                    logger.exception("listener failed", extra={"ledger_id": ledger.ledger_id})
            if ledger.settled_callbacks:
                ledger.notify_settled()
        for change in changes:
            if not change.done.done():
                change.done.set_result(None)
        self._housekeeper.on_group()

    def _on_group_failed(self, group: Group, error: StorageError) -> None:
        logger.error("journal write failed", extra={"error": str(error)})
        if isinstance(error, DiskFullError):
            self._housekeeper.on_disk_full(error)
        for ledger, section in zip(group.ledgers, group.sections, strict=True):
            self._gate.give_back_entries(section.entries, lent_count=len(section.lent))
            ledger.lent_taken_count -= len(section.lent)
            self.fail(ledger, error)
            ledger.take_back()
            ledger.notify_settled()
        for change in group.changes:
            if not change.done.done():
                change.done.set_exception(error)

    def apply_section(self, ledger: Ledger, section: Section) -> None:
        """Take in what a block has of a ledger."""
        kept_bytes = self._take_over(ledger, section) if section.lent else 0
        runs = section.placed_runs() if section.runs else ()
        self._cache.current.add(ledger, section.entries, section.size_bytes, kept_bytes, runs=runs)
        ledger.confirm(section.last_entry_id, section.size_bytes)

    def _take_over(self, ledger: Ledger, section: Section) -> int:
        """Replace lent entries by owned ones; returns the bytes kept alive beyond the entries."""
        all_kept_bytes = 0
        for place in section.lent:
            lent = section.entries[place]
            section.entries[place], kept_bytes = lent.owned()
            self._gate.give_back(self._gate.pins.remove(lent) - kept_bytes)
            all_kept_bytes += kept_bytes
        ledger.lent_taken_count -= len(section.lent)
        return all_kept_bytes

    def apply_record(self, ledger: Ledger, record: LedgerRecord) -> None:
        """Apply a record; nothing follows deletion, and only deletion follows the end."""
        if ledger.record.is_deleted or (ledger.record.is_closed and not record.is_deleted):
            return
        ledger.record = record
        self._gate.give_back(self._cache.current.set_record(ledger))
        if record.is_deleted and self._is_volatile:
            self._cache.current.forget(ledger.ledger_id)
