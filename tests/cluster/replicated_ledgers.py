"""A store on real bookies that keeps each ledger on three of them."""

from __future__ import annotations

from dataclasses import replace

from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerWriter


class ReplicatedLedgers(BookKeeperLedgerStore):
    """Keeps each ledger on three bookies."""

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        options = replace(options, ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)
        return await super().create(listener, options)
