"""LedgerListStore: a managed ledger's list of ledgers in metadata, by compare-and-set (edge).

Every write names the version that it expects to replace. Losing means that another owner wrote:
that is told, and no later write can succeed. Whoever changes the list holds `lock` from its
decision until the decision is stored.

A write that fails may have been stored all the same. The next write finds out; who wants to rely on
what the list had before asks `settled`.

Source: MetaStoreImpl.asyncUpdateLedgerIds in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataBadVersionError,
    MetadataExistsError,
)
from pulsar_py.managed_ledger.ledger_format import LedgerList, encode_ledger_list, ledger_path
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore


class LedgerListStore:
    """The record of one managed ledger. Owned by it."""

    def __init__(
        self,
        name: str,
        metadata: MetadataStore,
        *,
        version: int,
        on_lost: Callable[[Exception], None],
    ) -> None:
        """`version` is what is stored now; MUST_NOT_EXIST if nothing is."""
        self.lock = asyncio.Lock()  # held while the list of ledgers changes
        self._name = name
        self._metadata = metadata
        self._version = version  # of the list in metadata
        self._is_in_doubt = False  # a write has begun and not succeeded
        self._on_lost = on_lost

    async def write(self, stored: LedgerList) -> None:
        """Compare and set the list. Under the lock.

        Raises:
            ManagedLedgerFencedError: Someone else changed it; `on_lost` was told.
            MetadataError: It could not be stored, or that is not known.
        """
        self._is_in_doubt = True
        try:
            self._version = await self._metadata.put(
                ledger_path(self._name), encode_ledger_list(stored), expected_version=self._version
            )
        except (MetadataBadVersionError, MetadataExistsError) as error:
            self._on_lost(error)
            raise ManagedLedgerFencedError(f"{self._name}: {error}") from error
        self._is_in_doubt = False

    @asynccontextmanager
    async def settled(self) -> AsyncIterator[None]:
        """The lock, once it is known that the list in memory is the one that is stored.

        Raises:
            ManagedLedgerFencedError: Another list is stored; `on_lost` was told.
            MetadataError: It can't be found out now.
        """
        async with self.lock:
            if self._is_in_doubt:
                await self._settle()
            yield

    async def _settle(self) -> None:
        found = await self._metadata.get(ledger_path(self._name))
        version = MUST_NOT_EXIST if found is None else found.version
        if version != self._version:
            error = ManagedLedgerFencedError(
                f"{self._name}: the list of ledgers has version {version}, not {self._version}"
            )
            self._on_lost(error)
            raise error
        self._is_in_doubt = False

    async def delete(self, stored: LedgerList) -> None:
        """Remove the list and all cursors' records. Under the lock.

        Raises:
            ManagedLedgerFencedError: Someone else changed it; `on_lost` was told.
            MetadataError: It may still be there.
        """
        # A last compare-and-set proves that it is still ours to delete.
        await self.write(stored)
        await self._metadata.delete_recursive(ledger_path(self._name))
