"""initialize_cluster: what a fresh standalone holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.metadata import paths
from pulsar_py.metadata.initialization import (
    PUBLIC_NAMESPACE,
    SYSTEM_NAMESPACE,
    initialize_cluster,
)
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.sqlite_file import SqliteFile
from pulsar_py.metadata.sqlite_store import SqliteMetadataStore
from pulsar_py.metadata.store import MetadataStore, Session


async def initialize(store: MetadataStore, *, port: int = 8080) -> Resources:
    resources = Resources(store, store)
    await initialize_cluster(
        resources,
        "standalone",
        service_url=f"http://localhost:{port}",
        broker_service_url="pulsar://localhost:6650",
        bundles_count=4,
    )
    return resources


async def test_a_fresh_cluster_has_its_tenants_and_namespaces() -> None:
    resources = await initialize(MemoryMetadataStore(SystemClock()))
    assert await resources.clusters.list() == ["standalone"]
    assert await resources.tenants.list() == ["public", "pulsar"]
    assert await resources.namespaces.list("public") == [PUBLIC_NAMESPACE]
    assert await resources.namespaces.list("pulsar") == [SYSTEM_NAMESPACE]
    policies = await resources.namespaces.get(PUBLIC_NAMESPACE)
    assert policies is not None
    assert policies.replication_clusters == ("standalone",)
    assert len(policies.boundaries or ()) == 5
    await resources.close()


async def test_a_second_start_changes_only_the_addresses() -> None:
    store = MemoryMetadataStore(SystemClock())
    resources = await initialize(store)
    await resources.namespaces.update(
        PUBLIC_NAMESPACE, lambda old: old.replace(message_ttl_seconds=3)
    )
    await resources.clusters.update(
        "standalone", lambda old: old.replace(peer_cluster_names=("p",))
    )
    await resources.close()
    resources = await initialize(store, port=8081)
    policies = await resources.namespaces.get(PUBLIC_NAMESPACE)
    assert policies is not None
    assert policies.message_ttl_seconds == 3
    cluster = await resources.clusters.get("standalone")
    assert cluster is not None
    assert cluster.service_url == "http://localhost:8081"
    assert cluster.peer_cluster_names == ("p",)
    await resources.close()


class MakesParents(MemoryMetadataStore):
    """As ZooKeeper's: the first key below a missing one makes it, empty; tenants take a while."""

    async def put(
        self,
        path: str,
        value: bytes,
        *,
        expected_version: int | None = None,
        session: Session | None = None,
    ) -> int:
        parent = paths.parent(path)
        if parent != "/" and not await self.exists(parent):
            await self.put(parent, b"")
        if path in {"/admin/policies/public", "/admin/policies/pulsar"} and value:
            for _ in range(10):
                await asyncio.sleep(0)
        return await super().put(path, value, expected_version=expected_version, session=session)


async def test_tenants_have_their_records_where_parents_are_made_for_children() -> None:
    resources = await initialize(MakesParents(SystemClock()))
    for name in ("public", "pulsar"):
        tenant = await resources.tenants.get(name)
        assert tenant is not None
        assert tenant.allowed_clusters == ("standalone",)
    await resources.close()


async def test_it_is_two_commits_or_three_and_none_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[None] = []
    commit = SqliteFile.commit

    def counted(file: SqliteFile) -> None:
        commits.append(None)
        commit(file)

    monkeypatch.setattr(SqliteFile, "commit", counted)
    store = await SqliteMetadataStore.open(tmp_path / "metadata.sqlite", SystemClock())
    resources = await initialize(store)
    # Tenants, then namespaces; the thread may take the first before the last one is queued.
    assert len(commits) in {2, 3}
    commits.clear()
    await resources.close()
    resources = await initialize(store)
    assert not commits
    await resources.close()
    await store.close()
