"""A whole broker whose ledgers are on real bookies and whose metadata is in a real ZooKeeper."""

from __future__ import annotations

import asyncio

import pulsar
import pytest

from pulsar_py.common.clock import Clock
from pulsar_py.ledgers.ids import LedgerIds
from pulsar_py.ledgers.store import LedgerStore
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.store import MetadataStore
from pulsar_py.standalone import Broker
from pulsar_py.zookeeper.address import ZooKeeperAddress
from pulsar_py.zookeeper.store import ZooKeeperMetadataStore
from tests.cluster.bookie_process import BookKeeperCluster
from tests.cluster.replicated_ledgers import ReplicatedLedgers

COUNT = 500
TOPIC = "persistent://public/default/kept"


class OnZooKeeper:
    """A MetadataStoreFactory."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def __call__(self, clock: Clock) -> MetadataStores:
        store = await ZooKeeperMetadataStore.open(ZooKeeperAddress.parse(self.url), clock)
        return MetadataStores(local=store, configuration=store)


class OnBookKeeper:
    """A LedgerStoreFactory."""

    async def prepare(self) -> None:
        pass

    async def __call__(
        self, metadata: MetadataStore, ledger_ids: LedgerIds, clock: Clock
    ) -> LedgerStore:
        return await ReplicatedLedgers.connect(metadata, clock, ledger_ids)


def broker(cluster: BookKeeperCluster) -> Broker:
    return Broker(
        metadata_store_factory=OnZooKeeper(cluster.zookeeper.url),
        ledger_store_factory=OnBookKeeper(),
    )


def publish(url: str) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(TOPIC, "sub")
    producer = client.create_producer(TOPIC, batching_enabled=False)
    for number in range(COUNT):
        producer.send(b"%d" % number)
    for _ in range(COUNT // 2):
        consumer.acknowledge(consumer.receive(20_000))
    client.close()


def consume(url: str) -> list[bytes]:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(TOPIC, "sub")
    found = []
    for _ in range(COUNT // 2):
        message = consumer.receive(20_000)
        found.append(message.data())
        consumer.acknowledge(message)
    client.close()
    return found


@pytest.mark.interop
async def test_a_broker_without_state_of_its_own_goes_on_where_the_last_one_was(
    bookkeeper: BookKeeperCluster,
) -> None:
    async with broker(bookkeeper) as first:
        await asyncio.to_thread(publish, first.service_url)
    async with broker(bookkeeper) as second:
        found = await asyncio.to_thread(consume, second.service_url)
    assert found == [b"%d" % number for number in range(COUNT // 2, COUNT)]
