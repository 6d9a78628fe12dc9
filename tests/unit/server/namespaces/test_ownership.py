from __future__ import annotations

import asyncio
import json

import pytest

from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.server.namespaces.lookup import BrokerAddresses, LocalAddresses
from pulsar_py.server.namespaces.ownership import BundleOwnership, OwnerRecord
from pulsar_py.testing.clock import VirtualClock

NAMESPACE = NamespaceName("public", "default")
BUNDLE = "0x00000000_0x40000000"
PATH = paths.bundle_owner(NAMESPACE, BUNDLE)


def addresses(host: str) -> LocalAddresses:
    return LocalAddresses(
        default=BrokerAddresses(broker_url=f"pulsar://{host}:1", http_url=f"http://{host}:2"),
        by_listener={"in": BrokerAddresses(broker_url=f"pulsar://{host}:3")},
    )


@pytest.fixture
async def store(virtual_clock: VirtualClock) -> MemoryMetadataStore:
    return MemoryMetadataStore(virtual_clock)


async def broker(store: MemoryMetadataStore) -> BundleOwnership:
    ownership = BundleOwnership(store)
    await ownership.start()
    return ownership


async def test_the_first_who_asks_owns_the_bundle(store: MemoryMetadataStore) -> None:
    first, second = await broker(store), await broker(store)
    mine = await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    other = await second.acquire(NAMESPACE, BUNDLE, addresses("b"))
    assert mine.addresses == other.addresses == addresses("a")
    assert first.owns(NAMESPACE, BUNDLE)
    assert not second.owns(NAMESPACE, BUNDLE)


async def test_of_many_who_ask_at_once_one_wins(store: MemoryMetadataStore) -> None:
    brokers = [await broker(store) for _ in range(3)]
    records = await asyncio.gather(
        *(each.acquire(NAMESPACE, BUNDLE, addresses(str(n))) for n, each in enumerate(brokers))
    )
    assert len({record.addresses.default for record in records}) == 1
    assert sum(each.owns(NAMESPACE, BUNDLE) for each in brokers) == 1


async def test_the_end_of_a_session_frees_its_bundles(store: MemoryMetadataStore) -> None:
    first, second = await broker(store), await broker(store)
    await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    await first.close()
    record = await second.acquire(NAMESPACE, BUNDLE, addresses("b"))
    assert record.addresses == addresses("b")


async def test_a_bundle_being_unloaded_says_so_and_can_be_released(
    store: MemoryMetadataStore,
) -> None:
    first, second = await broker(store), await broker(store)
    await first.acquire(NAMESPACE, BUNDLE, addresses("a"))
    await first.disable(NAMESPACE, BUNDLE)
    assert not first.owns(NAMESPACE, BUNDLE)
    assert (await second.acquire(NAMESPACE, BUNDLE, addresses("b"))).is_disabled
    await first.release(NAMESPACE, BUNDLE)
    assert first.owned_bundles() == []
    assert not await store.exists(PATH)


async def test_what_is_not_owned_can_be_disabled_and_released(store: MemoryMetadataStore) -> None:
    ownership = await broker(store)
    await ownership.disable(NAMESPACE, BUNDLE)
    await ownership.release(NAMESPACE, BUNDLE)
    assert ownership.owned_bundles() == []


async def test_records_have_pulsars_keys(store: MemoryMetadataStore) -> None:
    ownership = await broker(store)
    await ownership.acquire(NAMESPACE, BUNDLE, addresses("a"))
    stored = await store.get(PATH)
    assert stored is not None
    assert stored.is_ephemeral
    assert json.loads(stored.value) == {
        "nativeUrl": "pulsar://a:1",
        "httpUrl": "http://a:2",
        "disabled": False,
        "advertisedListeners": {"in": {"brokerServiceUrl": "pulsar://a:3"}},
    }
    assert OwnerRecord.decode(stored.value) == OwnerRecord(addresses("a"))
