"""`LedgerTrimmer`: deletes ledgers that neither retention nor a durable cursor needs (edge).

`LedgerState.trimmable` chooses them. First the list without them is written, then every cursor's
positions are moved over them, and only then are they deleted: a crash leaves ledgers that no
metadata names, which the `LedgerCollector` finds. A ledger is deleted only when the cursors'
positions beyond it are durable.

Source: internalTrimLedgers and asyncDeleteLedger in ManagedLedgerImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from pulsar_py.common.errors import ManagedLedgerError, MetadataError, StorageError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.loops.concurrently import each_result
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.managed_ledger.cursors.registry import CursorRegistry
from pulsar_py.managed_ledger.log.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.log.entry_cache import EntryCache
from pulsar_py.managed_ledger.log.ledger_list_store import LedgerListStore
from pulsar_py.managed_ledger.log.ledger_readers import LedgerReaders
from pulsar_py.managed_ledger.log.ledger_state import LedgerState, State

logger = logging.getLogger(__name__)


DELETIONS_AT_ONCE = 32
"""Ledgers of one topic that are deleted at the same time."""


class TrimmerOwner(Protocol):
    """The part of the ManagedLedger that trimming uses."""

    name: str
    config: ManagedLedgerConfig
    clock: Clock
    tasks: TaskOwner

    @property
    def is_closed(self) -> bool:
        """Whether it was closed or deleted, or is being closed."""


class LedgerTrimmer:
    """The deletions of one managed ledger. Owned by it."""

    def __init__(
        self,
        owner: TrimmerOwner,
        ledgers: LedgerState,
        *,
        ledger_list: LedgerListStore,
        ledger_store: LedgerStore,
        registry: CursorRegistry,
        readers: LedgerReaders,
        cache: EntryCache,
    ) -> None:
        self._owner = owner
        self._ledgers = ledgers
        self._ledger_list = ledger_list
        self._ledger_store = ledger_store
        self._registry = registry
        self._readers = readers
        self._cache = cache
        self._is_trimming = False  # a task that trims runs

    def maybe_trim(self) -> None:
        """Trim in a task of its own if any ledger can be deleted; for callers that don't wait."""
        if not self._is_trimming and not self._owner.is_closed and self._trimmable():
            self._is_trimming = True
            self._owner.tasks.spawn(self._trim_soon(), "trim")

    def _trimmable(self, *, keeps_retained: bool = True) -> list[int]:
        config = self._owner.config
        if not keeps_retained:
            config = config.without_retention()
        slowest = self._registry.slowest_durable()
        position = None if slowest is None else slowest.persistent_mark_delete_position
        return self._ledgers.trimmable(config, position, self._owner.clock.wall_time_millis())

    async def _trim_soon(self) -> None:
        try:
            await self.trim()
        except (ManagedLedgerError, MetadataError) as error:
            logger.warning("not trimmed", extra={"topic": self._owner.name, "error": str(error)})
        finally:
            self._is_trimming = False

    async def trim(self, *, keeps_retained: bool = True) -> None:
        """Delete the ledgers that are not needed any more; none once fenced or closed.

        Without `keeps_retained` no ledger is kept for retention alone.

        Raises:
            ManagedLedgerFencedError, MetadataError: Nothing was deleted.
        """
        async with self._ledger_list.lock:
            if self._ledgers.state in (State.FENCED, State.CLOSED):
                return
            ledger_ids = self._trimmable(keeps_retained=keeps_retained)
            if not ledger_ids:
                return
            await self._ledger_list.write(self._ledgers.without(ledger_ids))
            self._ledgers.ledgers_trimmed(ledger_ids)
            self._registry.on_ledgers_changed()
        self._cache.evict_below(self._ledgers.first_position)
        logger.info("ledgers trimmed", extra={"topic": self._owner.name, "ledgers": ledger_ids})
        await self.delete_ledgers(ledger_ids)

    async def delete_ledgers(self, ledger_ids: Sequence[int]) -> None:
        """Delete ledgers that metadata does not name; failures are left to the collector."""
        await self._readers.forget(ledger_ids)
        await each_result(self._delete_ledger, ledger_ids, at_once=DELETIONS_AT_ONCE)

    async def _delete_ledger(self, ledger_id: int) -> None:
        try:
            await self._ledger_store.delete(ledger_id)
        except (StorageError, MetadataError) as error:
            logger.warning("ledger left over", extra={"ledger_id": ledger_id, "error": str(error)})
