"""LedgerListStore: a managed ledger's list of ledgers in metadata, by compare-and-set (edge).

Every write names the version that it expects to replace. Losing means that another owner wrote:
that is told, and no later write can succeed. Whoever changes the list holds `lock` from its
decision until the decision is stored.

Source: MetaStoreImpl.asyncUpdateLedgerIds in Pulsar's managed-ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pulsar_py.common.errors import (
    ManagedLedgerFencedError,
    MetadataBadVersionError,
    MetadataExistsError,
)
from pulsar_py.managed_ledger.ledger_format import LedgerList, encode_ledger_list, ledger_path
from pulsar_py.metadata.store import MetadataStore


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
        self._on_lost = on_lost

    async def write(self, stored: LedgerList) -> None:
        """Compare and set the list. Under the lock.

        Raises:
            ManagedLedgerFencedError: Someone else changed it; `on_lost` was told.
            MetadataError: It could not be stored.
        """
        try:
            self._version = await self._metadata.put(
                ledger_path(self._name), encode_ledger_list(stored), expected_version=self._version
            )
        except (MetadataBadVersionError, MetadataExistsError) as error:
            self._on_lost(error)
            raise ManagedLedgerFencedError(f"{self._name}: {error}") from error

    async def delete(self, stored: LedgerList) -> None:
        """Remove the list and all cursors' records. Under the lock.

        Raises:
            ManagedLedgerFencedError: Someone else changed it; `on_lost` was told.
            MetadataError: It may still be there.
        """
        # A last compare-and-set proves that it is still ours to delete.
        await self.write(stored)
        await self._metadata.delete_recursive(ledger_path(self._name))
