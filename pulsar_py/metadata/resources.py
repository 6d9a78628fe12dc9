"""`Resources`: clusters, tenants, namespaces and topics as typed objects of the metadata stores.

A store has one of two roles: `configuration` holds what all clusters share (clusters, tenants,
policies, partitioned topics), `local` what belongs to this cluster (bundles); one store may have
both roles. Each kind is a `Resource`, which reads through a cache and writes with compare-and-set.

Source: PulsarResources in Pulsar's broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from pulsar_py.common.errors import (
    InvalidNamespaceNameError,
    InvalidTopicNameError,
    MetadataBadVersionError,
    MetadataExistsError,
    MetadataNotFoundError,
)
from pulsar_py.common.loops.work import NAMES_A_TURN, in_turns
from pulsar_py.common.names import DOMAINS, NamespaceName, TopicName
from pulsar_py.metadata import paths
from pulsar_py.metadata.cache import MISSING, MetadataCache
from pulsar_py.metadata.documents import (
    ClusterData,
    DynamicConfiguration,
    LocalPolicies,
    NamespacePolicies,
    PartitionedTopicMetadata,
    ResourceGroup,
    TenantInfo,
    TopicPolicies,
    equal_boundaries,
)
from pulsar_py.metadata.json_document import JsonDocument
from pulsar_py.metadata.settling import delete_if_there, put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore

K = TypeVar("K")
V = TypeVar("V", bound=JsonDocument)

GLOBAL_CLUSTER: Final = "global"
"""A name beside those of clusters in the metadata of old Pulsar clusters; no list shows it."""


class Resource(Generic[K, V]):
    """Objects of one kind, by key."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        prefix: str,
        kind: type[V],
        path_of: Callable[[K], str],
        key_of: Callable[[str], K | None],
    ) -> None:
        """`key_of` gives None for paths of other kinds below the same prefix."""
        self._store = store
        self._kind = kind
        self._path_of = path_of
        self._key_of = key_of
        self._cache: MetadataCache[V] = MetadataCache(store, prefix, kind.from_bytes)

    async def get(self, key: K) -> V | None:
        """The object, None if there is none; from the cache if it is fresh."""
        return await self._cache.get(self._path_of(key))

    def get_cached(self, key: K) -> V | None:
        """The object as last read, without waiting; None also if it was never read."""
        return self._cache.get_cached(self._path_of(key))

    async def exists(self, key: K) -> bool:
        """Whether the object exists."""
        return await self.get(key) is not None

    async def create(self, key: K, value: V) -> None:
        """Store a new object.

        Raises:
            MetadataExistsError: There is one already.
        """
        path = self._path_of(key)
        version = await put_settled(
            self._store, path, value.to_bytes(), expected_version=MUST_NOT_EXIST
        )
        self._cache.note_written(path, value, version)

    async def update(self, key: K, change: Callable[[V], V]) -> V:
        """Change an object; `change` runs again if another writer was faster.

        Raises:
            MetadataNotFoundError: There is none.
        """

        def change_existing(value: V | None) -> V:
            if value is None:
                raise MetadataNotFoundError(f"{self._path_of(key)} does not exist")
            return change(value)

        return await self.update_or_create(key, change_existing)

    async def update_or_create(self, key: K, change: Callable[[V | None], V]) -> V:
        """Change an object, or make it: `change` gets None if there is none.

        Nothing is written if `change` returns an equal object.
        """
        path = self._path_of(key)
        while True:
            known = await self._cache.get_versioned(path)
            value = change(known.value)
            if value == known.value:
                return value
            expected = MUST_NOT_EXIST if known.version == MISSING else known.version
            try:
                version = await put_settled(
                    self._store, path, value.to_bytes(), expected_version=expected
                )
            except (MetadataBadVersionError, MetadataExistsError):
                self._cache.forget(path)
                # Without the sync the next read might return the same old version for ever.
                await self._store.sync(path)
                continue
            self._cache.note_written(path, value, version)
            return value

    async def delete(self, key: K) -> None:
        """Delete an object; fine if there is none."""
        path = self._path_of(key)
        if await delete_if_there(self._store, path):
            self._cache.note_deleted(path)

    def watch(self, listener: Callable[[K, V | None], None]) -> Callable[[], None]:
        """Call `listener` for every change, once `get_cached` has it; returns what ends that."""

        def tell(path: str, value: V | None) -> None:
            key = self._key_of(path)
            if key is not None:
                listener(key, value)

        return self._cache.listen(tell)

    async def close(self) -> None:
        """Stop watching."""
        await self._cache.close()


class ClusterResources(Resource[str, ClusterData]):
    """The clusters that are known here."""

    def __init__(self, store: MetadataStore) -> None:
        super().__init__(
            store,
            prefix=paths.CLUSTERS,
            kind=ClusterData,
            path_of=paths.cluster,
            key_of=lambda path: _single(path, paths.CLUSTERS),
        )

    async def delete(self, key: str) -> None:
        """Delete a cluster with its isolation policies and failure domains."""
        parent = paths.failure_domains(key)
        for name in await self._store.children(parent):
            await delete_if_there(self._store, f"{parent}/{name}")
        for path in (parent, paths.isolation_policies(key)):
            await delete_if_there(self._store, path)
        await super().delete(key)

    async def list(self) -> list[str]:
        """Sorted names."""
        names = await self._store.children(paths.CLUSTERS)
        return [name for name in names if name != GLOBAL_CLUSTER]


class TenantResources(Resource[str, TenantInfo]):
    """The tenants."""

    def __init__(self, store: MetadataStore) -> None:
        super().__init__(
            store,
            prefix=paths.POLICIES,
            kind=TenantInfo,
            path_of=paths.tenant,
            key_of=lambda path: _single(path, paths.POLICIES),
        )

    async def list(self) -> list[str]:
        """Sorted names."""
        return await self._store.children(paths.POLICIES)


class NamespaceResources(Resource[NamespaceName, NamespacePolicies]):
    """The namespaces and their policies; their bundles are `local_policies`."""

    def __init__(self, configuration: MetadataStore, local: MetadataStore) -> None:
        super().__init__(
            configuration,
            prefix=paths.POLICIES,
            kind=NamespacePolicies,
            path_of=paths.namespace_policies,
            key_of=lambda path: _namespace(path, paths.POLICIES),
        )
        self.local_policies: Resource[NamespaceName, LocalPolicies] = Resource(
            local,
            prefix=paths.LOCAL_POLICIES,
            kind=LocalPolicies,
            path_of=paths.local_policies,
            key_of=lambda path: _namespace(path, paths.LOCAL_POLICIES),
        )

    async def list(self, tenant: str) -> list[NamespaceName]:
        """A tenant's namespaces, sorted; none if there is no such tenant."""
        namespaces: list[NamespaceName] = []
        async for names in in_turns(await self._store.children(paths.tenant(tenant))):
            namespaces += [NamespaceName(tenant, name) for name in names]
        return namespaces

    async def create_with_bundles(
        self, namespace: NamespaceName, policies: NamespacePolicies, bundles_count: int
    ) -> None:
        """Create a namespace of `bundles_count` bundles, unless its policies have boundaries.

        Policies and bundles may be in two stores, and a crash may leave one of them. The policies
        are written first and have the boundaries, too, from which `bundles_of` restores missing
        bundles. Bundles without policies belong to a deleted namespace, and are replaced.

        Raises:
            MetadataExistsError: There is one already.
        """
        boundaries = policies.boundaries or equal_boundaries(bundles_count)
        await self.create(namespace, policies.replace(boundaries=boundaries))
        await self._set_bundles(namespace, lambda known: known.replace(boundaries=boundaries))

    async def bundles_of(self, namespace: NamespaceName) -> tuple[int, ...] | None:
        """The boundaries of a namespace's bundles; None if neither store has them.

        Raises:
            MetadataError: It can't be read.
        """
        local = await self.local_policies.get(namespace)
        if local is not None and local.boundaries is not None:
            return local.boundaries
        policies = await self.get(namespace)
        if policies is None or policies.boundaries is None:
            return None
        boundaries = policies.boundaries
        await self._set_bundles(
            namespace,
            lambda known: known if known.boundaries else known.replace(boundaries=boundaries),
        )
        return boundaries

    async def _set_bundles(
        self, namespace: NamespaceName, change: Callable[[LocalPolicies], LocalPolicies]
    ) -> None:
        try:
            await self.local_policies.create(namespace, change(LocalPolicies()))
        except MetadataExistsError:
            await self.local_policies.update(namespace, change)

    async def delete(self, key: NamespaceName) -> None:
        """Delete a namespace's policies and bundles; its topics have to be deleted before."""
        await asyncio.gather(super().delete(key), self.local_policies.delete(key))

    async def close(self) -> None:
        """Stop watching."""
        await super().close()
        await self.local_policies.close()


class PartitionedTopicResources(Resource[TopicName, PartitionedTopicMetadata]):
    """The partitioned topics and the counts of their partitions."""

    def __init__(self, store: MetadataStore) -> None:
        super().__init__(
            store,
            prefix=paths.PARTITIONED_TOPICS,
            kind=PartitionedTopicMetadata,
            path_of=paths.partitioned_topic,
            key_of=lambda path: _topic(path, paths.PARTITIONED_TOPICS),
        )

    async def list(
        self, namespace: NamespaceName, domains: Sequence[str] = DOMAINS
    ) -> list[TopicName]:
        """A namespace's partitioned topics of those domains, sorted within each."""
        topics: list[TopicName] = []
        for domain in domains:
            prefix = paths.partitioned_topics(namespace, domain)
            async for names in in_turns(await self._store.children(prefix), NAMES_A_TURN):
                topics += [
                    TopicName.from_managed_ledger_name(f"{namespace}/{domain}/{name}")
                    for name in names
                ]
        return topics


class TopicPoliciesResources(Resource[TopicName, TopicPolicies]):
    """The policies of single topics, by the name of the whole topic."""

    def __init__(self, store: MetadataStore, *, is_global: bool) -> None:
        prefix = f"{paths.TOPIC_POLICIES}/{'global' if is_global else 'local'}"
        self._prefix = prefix
        super().__init__(
            store,
            prefix=prefix,
            kind=TopicPolicies,
            path_of=lambda topic: paths.topic_policies(topic, is_global=is_global),
            key_of=lambda path: _topic(path, prefix),
        )

    async def list(self, namespace: NamespaceName) -> list[TopicName]:
        """The topics of a namespace that have policies, sorted within each domain."""
        topics: list[TopicName] = []
        for domain in DOMAINS:
            parent = f"{self._prefix}/{namespace}/{domain}"
            async for names in in_turns(await self._store.children(parent), NAMES_A_TURN):
                topics += [
                    TopicName.from_managed_ledger_name(f"{namespace}/{domain}/{name}")
                    for name in names
                ]
        return topics

    async def modified_millis(self, topic: TopicName) -> int:
        """When a topic's policies were written last, by the store's clock; 0 if it has none."""
        found = await self._store.get(self._path_of(topic))
        return 0 if found is None else found.modified_millis


class DynamicConfigurationResource(Resource[str, DynamicConfiguration]):
    """The settings that were changed while brokers run: one object, for every key."""

    def __init__(self, store: MetadataStore) -> None:
        super().__init__(
            store,
            prefix=paths.DYNAMIC_CONFIGURATION,
            kind=DynamicConfiguration,
            path_of=lambda _: paths.DYNAMIC_CONFIGURATION,
            key_of=lambda path: path,
        )


class ResourceGroupResources(Resource[str, ResourceGroup]):
    """The resource groups."""

    def __init__(self, store: MetadataStore) -> None:
        super().__init__(
            store,
            prefix=paths.RESOURCE_GROUPS,
            kind=ResourceGroup,
            path_of=paths.resource_group,
            key_of=lambda path: _single(path, paths.RESOURCE_GROUPS),
        )

    async def list(self) -> list[str]:
        """Sorted names."""
        return await self._store.children(paths.RESOURCE_GROUPS)


class Resources:
    """All kinds of objects; its maker closes it before the stores."""

    def __init__(self, local: MetadataStore, configuration: MetadataStore) -> None:
        self.local = local
        self.configuration = configuration
        self.clusters = ClusterResources(configuration)
        self.tenants = TenantResources(configuration)
        self.namespaces = NamespaceResources(configuration, local)
        self.local_policies = self.namespaces.local_policies
        self.partitioned_topics = PartitionedTopicResources(configuration)
        self.topic_policies = TopicPoliciesResources(local, is_global=False)
        self.global_topic_policies = TopicPoliciesResources(configuration, is_global=True)
        self.resource_groups = ResourceGroupResources(configuration)
        self.dynamic_configuration = DynamicConfigurationResource(local)

    async def policies_of_topic(self, name: TopicName) -> TopicPolicies | None:
        """What a topic has for this cluster and for all clusters; None without any.

        Raises:
            MetadataError: It can't be read.
        """
        local = await self.topic_policies.get(name.base)
        shared = await self.global_topic_policies.get(name.base)
        if local is None or shared is None:
            return local or shared
        return local.over(shared)

    async def close(self) -> None:
        """Stop watching the stores."""
        await self.clusters.close()
        await self.tenants.close()
        await self.namespaces.close()
        await self.partitioned_topics.close()
        await self.topic_policies.close()
        await self.global_topic_policies.close()
        await self.resource_groups.close()
        await self.dynamic_configuration.close()


def _single(path: str, prefix: str) -> str | None:
    name = path.removeprefix(prefix + "/")
    return None if "/" in name else name


def _namespace(path: str, prefix: str) -> NamespaceName | None:
    try:
        return NamespaceName.parse(path.removeprefix(prefix + "/"))
    except InvalidNamespaceNameError:
        return None


def _topic(path: str, prefix: str) -> TopicName | None:
    try:
        return TopicName.from_managed_ledger_name(path.removeprefix(prefix + "/"))
    except InvalidTopicNameError:
        return None
