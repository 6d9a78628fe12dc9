"""How a broker of ours comes to a ZooKeeper and to bookies."""

from __future__ import annotations

from pulsar_py.common.loops.clock import Clock
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.client import ZooKeeperSettings
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.replicated_ledgers import Quorums, ReplicatedLedgers


class OnZooKeeper:
    """A MetadataStoreFactory."""

    def __init__(self, url: str, session_timeout_millis: int = 30_000) -> None:
        self.address = ZooKeeperAddress.parse(url)
        self.settings = ZooKeeperSettings(session_timeout_millis=session_timeout_millis)

    async def __call__(self, clock: Clock) -> MetadataStores:
        store = await ZooKeeperMetadataStore.open(self.address, clock, settings=self.settings)
        return MetadataStores(local=store, configuration=store)


class OnBookKeeper:
    """A LedgerStoreFactory."""

    def __init__(self, quorums: Quorums = ReplicatedLedgers.quorums) -> None:
        self._quorums = quorums

    async def prepare(self) -> None:
        pass

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        store = await ReplicatedLedgers.connect(metadata, clock, ledger_ids)
        assert isinstance(store, ReplicatedLedgers)
        store.quorums = self._quorums
        return store
