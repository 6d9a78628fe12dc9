"""Writes a new cluster's first metadata to ZooKeeper: initialize-cluster-metadata (edge).

In the cluster's own store: the place of BookKeeper's metadata with its instance id, unless there is
a BookKeeper already, the map of racks, and where functions keep their packages. In the store of all
clusters: the cluster, the tenants `public` and `pulsar` with a namespace each, and the topic by
which transaction coordinators are given out.

What is there stays as it is, but that tenants and namespaces learn of one more cluster. So it does
no harm to do it again, and one that was cut short is completed. BookKeeper's LAYOUT is not written:
the first bookie does.

Source: PulsarClusterMetadataSetup in Pulsar's broker, recorded in
tests/recordings/initialized_cluster.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from pulsar_py.common.errors import MetadataExistsError
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.documents import (
    ClusterData,
    NamespacePolicies,
    PartitionedTopicMetadata,
    TenantInfo,
    equal_boundaries,
)
from pulsar_py.metadata.embedded import MetadataStores
from pulsar_py.metadata.initialization import PUBLIC_NAMESPACE, SYSTEM_NAMESPACE
from pulsar_py.metadata.json_document import Json
from pulsar_py.metadata.policies_format import NAMESPACE_DEFAULTS
from pulsar_py.metadata.resources import Resources
from pulsar_py.metadata.settling import put_settled
from pulsar_py.metadata.store import MUST_NOT_EXIST, MetadataStore

DEFAULT_BUNDLES_COUNT: Final = 16
FUNCTIONS: Final = "/pulsar/functions"
COORDINATORS: Final = (
    f"{paths.PARTITIONED_TOPICS}/{SYSTEM_NAMESPACE}/persistent/transaction_coordinator_assign"
)

_CLUSTER_DEFAULTS: Final[Json] = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSetup:
    """The options of a new cluster."""

    cluster: str
    addresses: Json
    """The members of `ClusterData` that were given."""
    zookeeper_servers: str
    """Of BookKeeper's metadata, as `HOST:PORT,HOST:PORT`."""
    ledgers_path: str
    """From the real root of that ZooKeeper on."""
    ledgers_root: str = paths.LEDGERS
    """From the root of its store on."""
    has_bookkeeper: bool = False
    """There is a BookKeeper already, and nothing is written for it."""
    bundles_count: int = DEFAULT_BUNDLES_COUNT
    """Of `public/default`."""
    coordinators_count: int = 16
    instance_id: str
    """Of a new BookKeeper."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """The result for one key."""

    path: str
    outcome: str
    """One of those below."""

    WRITTEN: ClassVar = "written"
    CHANGED: ClassVar = "changed"
    ALREADY: ClassVar = "there already"


async def set_up_cluster(stores: MetadataStores, setup: ClusterSetup) -> Sequence[SetupStep]:
    """Write what is missing; returns what was done, in order.

    Raises:
        MetadataError: Something could not be written; doing it again goes on.
    """
    steps = []
    if not setup.has_bookkeeper:
        root = setup.ledgers_root
        for path, value in (
            (root, b""),
            (f"{root}/available", b""),
            (f"{root}/available/readonly", b""),
            (f"{root}/INSTANCEID", setup.instance_id.encode()),
        ):
            steps.append(await _write(stores.local, path, value))
        steps.append(await _write(stores.local, FUNCTIONS, _functions(setup)))
    steps.append(await _write(stores.local, paths.BOOKIE_RACKS, b"{}"))
    resources = Resources(stores.local, stores.configuration)
    try:
        steps += await _set_up_configuration(stores.configuration, resources, setup)
    finally:
        await resources.close()
    return steps


async def _set_up_configuration(
    store: MetadataStore, resources: Resources, setup: ClusterSetup
) -> Sequence[SetupStep]:
    cluster = ClusterData({**_CLUSTER_DEFAULTS, **setup.addresses})
    steps = [await _write(store, paths.cluster(setup.cluster), cluster.to_bytes())]
    for namespace, bundles_count in (
        (PUBLIC_NAMESPACE, setup.bundles_count),
        (SYSTEM_NAMESPACE, DEFAULT_BUNDLES_COUNT),
    ):
        steps.append(await _set_up_tenant(resources, namespace.tenant, setup.cluster))
        steps.append(await _set_up_namespace(resources, namespace, setup.cluster, bundles_count))
    topic = PartitionedTopicMetadata(partitions_count=setup.coordinators_count, is_deleted=False)
    steps.append(await _write(store, COORDINATORS, topic.to_bytes()))
    return steps


async def _set_up_tenant(resources: Resources, tenant: str, cluster: str) -> SetupStep:
    path = paths.tenant(tenant)
    try:
        await resources.tenants.create(
            tenant, TenantInfo(allowed_clusters=(cluster,), admin_roles=())
        )
    except MetadataExistsError:
        known = await resources.tenants.get(tenant)
        if known is not None and cluster in (known.allowed_clusters or ()):
            return SetupStep(path, SetupStep.ALREADY)
        await resources.tenants.update(
            tenant,
            lambda old: old.replace(allowed_clusters=_with(old.allowed_clusters, cluster)),
        )
        return SetupStep(path, SetupStep.CHANGED)
    return SetupStep(path, SetupStep.WRITTEN)


async def _set_up_namespace(
    resources: Resources, namespace: NamespaceName, cluster: str, bundles_count: int
) -> SetupStep:
    path = paths.namespace_policies(namespace)
    policies = NamespacePolicies(
        NAMESPACE_DEFAULTS,
        replication_clusters=(cluster,),
        boundaries=equal_boundaries(bundles_count),
    )
    try:
        await resources.namespaces.create(namespace, policies)
    except MetadataExistsError:
        known = await resources.namespaces.get(namespace)
        if known is not None and cluster in (known.replication_clusters or ()):
            return SetupStep(path, SetupStep.ALREADY)
        await resources.namespaces.update(
            namespace,
            lambda old: old.replace(replication_clusters=_with(old.replication_clusters, cluster)),
        )
        return SetupStep(path, SetupStep.CHANGED)
    return SetupStep(path, SetupStep.WRITTEN)


def _with(clusters: Sequence[str] | None, cluster: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(clusters or ()), cluster)))


async def _write(store: MetadataStore, path: str, value: bytes) -> SetupStep:
    """Create a key; one that has a value keeps it."""
    try:
        await put_settled(store, path, value, expected_version=MUST_NOT_EXIST)
    except MetadataExistsError:
        found = await store.get(path)
        if found is None or found.value or not value:
            return SetupStep(path, SetupStep.ALREADY)
        await put_settled(store, path, value, expected_version=found.version)
    return SetupStep(path, SetupStep.WRITTEN)


def _functions(setup: ClusterSetup) -> bytes:
    """Where DistributedLog keeps its logs, in three lines: version, kind, Thrift's JSON."""
    servers = {"str": setup.zookeeper_servers}
    config = {
        "1": servers,
        "2": {"str": setup.ledgers_path},
        "3": {"tf": 1},
        "4": {"tf": 0},
        "5": servers,
        "6": servers,
        "7": servers,
    }
    return f"1\nBKDL\n{json.dumps(config, separators=(',', ':'))}".encode()
