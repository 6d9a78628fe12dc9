"""cluster_checks: which clusters a broker joins, and that it writes nothing to find out."""

from __future__ import annotations

import json

import pytest

from pulsar_py.common.errors import UnsupportedClusterError
from pulsar_py.metadata.cluster_checks import MODULAR, check_cluster
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock

EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"


async def stores(values: dict[str, object]) -> MetadataStores:
    store = MemoryMetadataStore(VirtualClock())
    await store.put("/admin/clusters/c", b"{}")
    for path, value in values.items():
        await store.put(path, json.dumps(value).encode())
    return MetadataStores(local=store, configuration=store)


async def tree(store: object) -> list[tuple[str, object]]:
    assert isinstance(store, MemoryMetadataStore)
    found = []
    todo = ["/"]
    while todo:
        path = todo.pop()
        found.append((path, await store.get(path)))
        todo += [f"{path.rstrip('/')}/{name}" for name in await store.children(path)]
    return found


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"/loadbalance/brokers/a:8080": {"loadManagerClassName": MODULAR}},
        {"/loadbalance/brokers/a:8080": {"webServiceUrl": "http://a:8080"}},
        {"/admin/configuration": {"maxTenants": "3", "loadManagerClassName": MODULAR}},
        {"/pulsar/migration-coordinator/migration": {"phase": "NOT_STARTED"}},
    ],
)
async def test_it_may_be_joined(values: dict[str, object]) -> None:
    await check_cluster(await stores(values), "c")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"/loadbalance/brokers/a:8080": {"loadManagerClassName": EXTENSIBLE}},
            f"/loadbalance/brokers/a:8080: .* the load manager {EXTENSIBLE}",
        ),
        (
            {"/admin/configuration": {"loadManagerClassName": EXTENSIBLE}},
            f"/admin/configuration: .* {EXTENSIBLE}",
        ),
        (
            {"/loadbalance/extension/leader": {"brokerId": "a:8080"}},
            "/loadbalance/extension/leader: .* ExtensibleLoadManagerImpl",
        ),
        (
            {"/pulsar/migration-coordinator/migration": {"phase": "COPYING"}},
            "being moved to another store, its phase is COPYING",
        ),
        (
            {"/pulsar/migration-coordinator/migration": {}},
            "being moved to another store, its phase is None",
        ),
    ],
)
async def test_it_is_refused_and_nothing_is_written(values: dict[str, object], words: str) -> None:
    found = await stores(values)
    before = await tree(found.local)
    with pytest.raises(UnsupportedClusterError, match=words):
        await check_cluster(found, "c")
    assert await tree(found.local) == before


async def test_one_that_was_not_initialized_is_refused() -> None:
    with pytest.raises(
        UnsupportedClusterError, match=r"no cluster d .* which has c: run pulsar-py"
    ):
        await check_cluster(await stores({}), "d")
