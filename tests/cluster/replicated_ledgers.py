"""A store on real bookies that keeps each ledger on several of them."""

from __future__ import annotations

from msgspec.structs import replace

from pulsar_py.bookkeeper.store import BookKeeperLedgerStore
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerWriter


class ReplicatedLedgers(BookKeeperLedgerStore):
    """Keeps each ledger on three bookies, unless its owner says otherwise."""

    quorums = (3, 3, 2)

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        ensemble, write, ack = self.quorums
        options = replace(
            options, ensemble_size=ensemble, write_quorum_size=write, ack_quorum_size=ack
        )
        return await super().create(listener, options)
