"""`LedgerListStore`: a managed ledger's list of ledgers in the metadata store (edge).

The list is written by compare-and-set: a version that this owner has not written means another
owner; then `on_lost` is called, and no later write can succeed. Every change holds `lock` from its
decision until the decision is stored.

A write that fails may have been stored. The next write finds out; a caller that relies on the
stored list awaits `settled`, which writes the list in memory once more.

A list that is about to be deleted is marked first: a deletion cut short, which leaves the list and
some of its cursors, is finished by the next opening.

Source: MetaStoreImpl.asyncUpdateLedgerIds in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pulsar_py.common.errors import ManagedLedgerFencedError
from pulsar_py.managed_ledger.log.ledger_format import LedgerList, encode_ledger_list, ledger_path
from pulsar_py.managed_ledger.log.list_deletion import remove_marked
from pulsar_py.managed_ledger.log.owned_record import OwnedRecord, nobody_else
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore


class LedgerListStore:
    """The record of one managed ledger. Owned by it."""

    def __init__(
        self,
        name: str,
        metadata: MetadataStore,
        *,
        version: int,
        owner_mark: str,
        current: Callable[[], LedgerList],
        on_lost: Callable[[Exception], None],
        check_owner: Callable[[], None] | None = None,
        written: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """`version` is that of the stored value; MUST_NOT_EXIST if there is none.

        `owner_mark` is written with each list, and no other owner has the same: otherwise a new
        owner that writes an unchanged list could be mistaken for the former one, whose own write of
        it got no answer.

        `written` makes the value to store of an encoded list: it may be compressed.

        `current` returns the list in memory; `check_owner` is called before each write.
        """
        self.lock = asyncio.Lock()  # held while the list of ledgers changes
        self._metadata = metadata
        self._record = OwnedRecord(
            metadata, ledger_path(name), version=version, check_owner=check_owner
        )
        self._check_owner = check_owner or nobody_else
        self._current = current
        self._written = written
        self._on_lost = on_lost
        self._owner_mark = owner_mark
        self.names_open_ledger = False
        """Whether the list that was written last has an end that only memory may know by now."""

    async def write(self, stored: LedgerList) -> None:
        """Compare-and-set the list. The caller holds the lock.

        Raises:
            ManagedLedgerFencedError: Another owner changed it; `on_lost` was called.
            MetadataError: It could not be stored, or the outcome is unknown.
        """
        try:
            stored.owner_mark = self._owner_mark
            names_open_ledger = bool(stored.ledgers) and not stored.ledgers[-1].is_closed
            if self._record.version != MUST_NOT_EXIST:
                # The version alone is not enough: after a deletion another owner may have created
                # the list again, and versions start at 0.
                await self._record.confirm()
            await self._record.write(self._written(encode_ledger_list(stored)))
            self.names_open_ledger = names_open_ledger
        except ManagedLedgerFencedError as error:
            self._on_lost(error)
            raise

    @asynccontextmanager
    async def settled(self) -> AsyncIterator[None]:
        """Hold the lock with the list in memory known to be the stored one.

        Raises:
            ManagedLedgerFencedError: Another list is stored; `on_lost` was called.
            MetadataError: That can't be found out now.
        """
        async with self.lock:
            if self._record.is_in_doubt:
                await self.write(self._current())
            yield

    async def confirm(self) -> None:
        """Check that no other owner has changed the list; needs no lock.

        Raises:
            ManagedLedgerFencedError: Another owner changed it; `on_lost` was called.
            MetadataError: That can't be found out now.
        """
        try:
            await self._record.confirm()
        except ManagedLedgerFencedError as error:
            self._on_lost(error)
            raise

    async def delete(self, stored: LedgerList) -> None:
        """Remove the list and all cursors' records. The caller holds the lock.

        Raises:
            ManagedLedgerFencedError: Another owner changed it; `on_lost` was called.
            MetadataError: Some of it may still be there; opening it removes the rest.
        """
        # This compare-and-set proves that the list is still ours, and marks it, so that an
        # interrupted deletion is finished by the next opening.
        stored.is_being_deleted = True
        await self.write(stored)
        await remove_marked(self._metadata, self._record, self._check_owner)
