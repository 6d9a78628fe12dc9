"""ManagedLedgerOpener: one ManagedLedger a name, and what all of them share (edge)."""

from __future__ import annotations

import random
from typing import Any

from pulsar_py.common.clock import Clock
from pulsar_py.managed_ledger.config import ManagedLedgerConfig
from pulsar_py.managed_ledger.managed_ledger import ManagedLedger
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.storage.ledger_store import LedgerStore

DEFAULT_CACHE_SIZE_BYTES = 64 * 1024 * 1024


class ManagedLedgerOpener:
    """Opens, shares, closes and deletes managed ledgers. One a broker.

    Pulsar's ManagedLedgerFactoryImpl.
    """

    def __init__(
        self,
        ledger_store: LedgerStore,
        metadata: MetadataStore,
        clock: Clock,
        *,
        chance: random.Random,
        cache_size_bytes: int = DEFAULT_CACHE_SIZE_BYTES,
        cache_eviction_watermark: float = 0.9,
        cache_max_age_seconds: float = 1.0,
        cache_eviction_interval_seconds: float = 0.05,
    ) -> None:
        """`cache_size_bytes` bounds the entry caches of all ledgers together; 0 switches them off.

        `chance` spreads the rollover times.
        """
        raise NotImplementedError

    async def open(
        self,
        name: str,
        config: ManagedLedgerConfig,
        *,
        create_if_missing: bool = True,
    ) -> ManagedLedger[Any]:  # Any: the context type belongs to who sets the listener
        """The managed ledger `tenant/namespace/persistent/local`; the same object while it is open.

        Raises:
            MetadataNotFoundError: It does not exist and must not be created.
            ManagedLedgerFencedError: Another owner opened it at the same time.
            StorageError, MetadataError: It could not be opened; trying again may help.
        """
        raise NotImplementedError

    async def delete(self, name: str) -> None:
        """Delete a managed ledger for good, open or not.

        Raises:
            MetadataNotFoundError: There is none.
        """
        raise NotImplementedError

    async def exists(self, name: str) -> bool:
        """Whether it exists."""
        raise NotImplementedError

    async def list_names(self, prefix: str) -> list[str]:
        """Full names of those directly below `tenant/namespace/persistent`, sorted."""
        raise NotImplementedError

    async def named_ledgers(self) -> set[int]:
        """Ids of all ledgers that metadata names, for a collector to compare with the store's."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close all managed ledgers; refuses to open any more."""
        raise NotImplementedError
