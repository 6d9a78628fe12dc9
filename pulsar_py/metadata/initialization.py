"""Creates the metadata of a new cluster: its record, two tenants, a namespace each (edge).

Source: PulsarStandalone.createSampleNameSpace; PulsarClusterMetadataSetup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final

from pulsar_py.common.errors import MetadataExistsError
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata.documents import ClusterData, NamespacePolicies, TenantInfo
from pulsar_py.metadata.resources import Resources

PUBLIC_NAMESPACE: Final = NamespaceName("public", "default")
SYSTEM_NAMESPACE: Final = NamespaceName("pulsar", "system")


async def initialize_cluster(
    resources: Resources,
    cluster: str,
    *,
    service_url: str | None,
    broker_service_url: str | None,
    service_url_tls: str | None = None,
    broker_service_url_tls: str | None = None,
    bundles_count: int,
    admin_roles: Sequence[str] = (),
) -> None:
    """Create the objects that are missing; store the cluster's addresses if they changed.

    `admin_roles` are those of the tenants: Apache Pulsar's standalone makes its super-users that.

    Tenants are created before their namespaces: a store may create an empty parent for the first
    key below it, and the tenant would then exist without a value. Tenants and namespaces that exist
    stay as they are, also if somebody changed them.
    """
    addresses = ClusterData(
        service_url=service_url,
        service_url_tls=service_url_tls,
        broker_service_url=broker_service_url,
        broker_service_url_tls=broker_service_url_tls,
    )
    tenant = TenantInfo(admin_roles=tuple(admin_roles), allowed_clusters=(cluster,))
    policies = NamespacePolicies(replication_clusters=(cluster,))
    await asyncio.gather(
        _note_addresses(resources, cluster, addresses),
        *(
            _unless_it_exists(resources.tenants.create(name, tenant))
            for name in (PUBLIC_NAMESPACE.tenant, SYSTEM_NAMESPACE.tenant)
        ),
    )
    await asyncio.gather(
        *(
            _unless_it_exists(
                resources.namespaces.create_with_bundles(name, policies, bundles_count)
            )
            for name in (PUBLIC_NAMESPACE, SYSTEM_NAMESPACE)
        ),
    )


async def _note_addresses(resources: Resources, cluster: str, addresses: ClusterData) -> None:
    try:
        await resources.clusters.create(cluster, addresses)
    except MetadataExistsError:
        known = await resources.clusters.get(cluster)
        if known is None or {**known.json, **addresses.json} != known.json:
            await resources.clusters.update(
                cluster, lambda old: ClusterData({**old.json, **addresses.json})
            )


async def _unless_it_exists(creation: Awaitable[None]) -> None:
    try:
        await creation
    except MetadataExistsError:
        return
