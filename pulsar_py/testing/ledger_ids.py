"""`CountedLedgerIds`: ids for the ledgers of a store under test, without a metadata store."""

from __future__ import annotations

from pulsar_py.ledgers.ids import LedgerIds


class CountedLedgerIds(LedgerIds):
    """Counts up. If ledgers outlive a store, give the same object to the next one."""

    def __init__(self, first: int = 1) -> None:
        """`first` is the first id given."""
        self.last = first - 1

    async def next(self) -> int:
        """One more than the last."""
        self.last += 1
        return self.last
