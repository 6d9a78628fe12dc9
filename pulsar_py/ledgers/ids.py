"""`LedgerIds`: the interface of the generator of ledger ids.

An id is greater than every id given before in the cluster, by whatever process, and never given
again, also not after a crash or the deletion of its ledger. Topics rely on it: their ledgers are
told apart and ordered by id alone. `metadata` implements the interface, ledger stores use it.

Source: LedgerIdGenerator, ZkLedgerIdGenerator in Apache BookKeeper.
"""

from __future__ import annotations

from typing import Protocol


class LedgerIds(Protocol):
    """Gives ids for new ledgers."""

    async def next(self) -> int:
        """An id greater than all given before, at least 1.

        Raises:
            MetadataError: The metadata store gave none; an id may be skipped.
        """
