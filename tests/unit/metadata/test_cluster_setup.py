"""cluster_setup: writes what Apache Pulsar's tool writes, and harms nothing when it is repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pulsar_py.metadata.cluster_setup import ClusterSetup, SetupStep, set_up_cluster
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.testing.clock import VirtualClock

RECORDED = json.loads(
    (Path(__file__).parents[2] / "recordings" / "initialized_cluster.json").read_text()
)["values"]
INSTANCE = "/ledgers/INSTANCEID"
SETUP = ClusterSetup(
    cluster="rec",
    addresses={"serviceUrl": "http://w:8080", "brokerServiceUrl": "pulsar://b:6650"},
    zookeeper_servers="127.0.0.1:44127",
    ledgers_path="/one/ledgers",
    instance_id=RECORDED[INSTANCE],
)


async def values(store: MemoryMetadataStore) -> Mapping[str, object]:
    """By path, JSON as it means."""
    found: dict[str, object] = {}
    todo = ["/"]
    while todo:
        path = todo.pop()
        todo += [f"{path.rstrip('/')}/{name}" for name in await store.children(path)]
        stored = await store.get(path)
        text = stored.value.decode() if stored is not None else ""
        found[path] = json.loads(text) if text.startswith("{") else text
    return found


async def test_it_writes_what_apaches_tool_writes() -> None:
    store = MemoryMetadataStore(VirtualClock())
    steps = await set_up_cluster(MetadataStores(store, store), SETUP)
    found = await values(store)
    ours = {path: value for path, value in found.items() if value}
    apaches = {path: value for path, value in RECORDED.items() if value}
    assert ours == apaches
    assert {"/ledgers", "/ledgers/available", "/ledgers/available/readonly"} <= found.keys()
    assert {step.outcome for step in steps} == {SetupStep.WRITTEN}


async def test_twice_changes_nothing_and_says_so() -> None:
    store = MemoryMetadataStore(VirtualClock())
    await set_up_cluster(MetadataStores(store, store), SETUP)
    before = await values(store)
    again = replace(SETUP, instance_id="another", addresses={"serviceUrl": "http://other"})
    steps = await set_up_cluster(MetadataStores(store, store), again)
    assert {step.outcome for step in steps} == {SetupStep.ALREADY}
    assert await values(store) == before


async def test_what_was_cut_short_is_completed() -> None:
    store = MemoryMetadataStore(VirtualClock())
    await store.put("/ledgers", b"")
    await store.put("/admin/clusters/rec", b"")
    await set_up_cluster(MetadataStores(store, store), SETUP)
    found = await values(store)
    assert found[INSTANCE] == SETUP.instance_id
    assert found["/admin/clusters/rec"] == RECORDED["/admin/clusters/rec"]


async def test_a_second_cluster_is_added_to_tenants_and_namespaces() -> None:
    shared = MemoryMetadataStore(VirtualClock())
    first, second = MemoryMetadataStore(VirtualClock()), MemoryMetadataStore(VirtualClock())
    await set_up_cluster(MetadataStores(first, shared), SETUP)
    await shared.put("/admin/policies/public", b'{"allowedClusters":["rec"],"more":1}')
    await set_up_cluster(MetadataStores(second, shared), replace(SETUP, cluster="two"))
    found = await values(shared)
    assert found["/admin/policies/public"] == {"allowedClusters": ["rec", "two"], "more": 1}
    namespace = found["/admin/policies/public/default"]
    assert isinstance(namespace, dict)
    assert namespace["replication_clusters"] == ["rec", "two"]
    assert "/admin/clusters" not in await values(second)
    assert "/ledgers" not in found


async def test_nothing_is_written_for_a_bookkeeper_that_is_there() -> None:
    store = MemoryMetadataStore(VirtualClock())
    await set_up_cluster(MetadataStores(store, store), replace(SETUP, has_bookkeeper=True))
    found = await values(store)
    assert "/ledgers" not in found
    assert "/pulsar/functions" not in found
    assert found["/bookies"] == {}
