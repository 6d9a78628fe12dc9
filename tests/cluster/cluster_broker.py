"""Brokers of ours on real ZooKeepers and bookies, with short sessions, for tests of failures."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pulsar_py.bookkeeper.bookies.connection import ConnectionLimits
from pulsar_py.bookkeeper.store import BookKeeperLedgerStore, BookKeeperSettings
from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerListener, LedgerOptions, LedgerStore, LedgerWriter
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore, SessionEvent
from pulsar_py.standalone import Broker
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.settings import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore

ZOOKEEPER = ZooKeeperSettings(
    session_timeout_millis=6_000, operation_timeout_seconds=10.0, connect_timeout_seconds=2.0
)
BOOKKEEPER = BookKeeperSettings(
    answer_timeout_seconds=15.0,
    connection=ConnectionLimits(connect_timeout_seconds=2.0, request_timeout_seconds=3.0),
)


class Metadata:
    """A MetadataStoreFactory that keeps the store in reach of a test, and what its session tells."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.events: list[SessionEvent] = []

    async def __call__(self, clock: Clock) -> MetadataStores:
        self.store = await ZooKeeperMetadataStore.open(
            ZooKeeperAddress.parse(self.url), clock, chance=Random(7), settings=ZOOKEEPER
        )
        self.session = await self.store.open_session()
        self.session.listen(self.events.append)
        return MetadataStores(local=self.store, configuration=self.store)


class ThreeTimes(BookKeeperLedgerStore):
    """Keeps each ledger on three bookies, of which two have to answer."""

    async def create(self, listener: LedgerListener, options: LedgerOptions) -> LedgerWriter:
        options = replace(options, ensemble_size=3, write_quorum_size=3, ack_quorum_size=2)
        return await super().create(listener, options)


class Ledgers:
    """A LedgerStoreFactory."""

    async def prepare(self) -> None:
        pass

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        return await ThreeTimes.connect(
            metadata, clock, ledger_ids, chance=Random(7), settings=BOOKKEEPER
        )


def cluster_broker(metadata: Metadata, *, port: int = 0) -> Broker:
    """A broker whose ledgers are full after 200 entries."""
    return Broker(
        config={
            "managedLedgerMaxEntriesPerLedger": 200,
            "managedLedgerMinLedgerRolloverTimeMinutes": 0,
            "managedLedgerDefaultMarkDeleteRateLimit": 10.0,
        },
        port=port,
        metadata_store_factory=metadata,
        ledger_store_factory=Ledgers(),
    )
