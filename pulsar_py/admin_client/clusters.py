"""Calls about clusters, tenants, resource groups and quotas, bookies and isolation (declarations).

Source: Clusters, Tenants, ResourceGroups, ResourceQuotas and Bookies in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Sequence

from pulsar_py.admin_client.call import (
    Call,
    Json,
    as_json,
    as_names,
    as_record,
    as_records,
    delete,
    get,
    namespace_path,
    post,
    put,
    seg,
)
from pulsar_py.admin_client.records import (
    BookieInfo,
    ClusterData,
    ClusterUrl,
    FailureDomain,
    NamespaceIsolationData,
    ResourceGroup,
    ResourceQuota,
    TenantInfo,
)


def tenants() -> Call[list[str]]:
    """The names of all tenants."""
    return get("tenants", as_names)


def tenant(name: str) -> Call[TenantInfo]:
    """A tenant's admins and clusters."""
    return get(f"tenants/{seg(name)}", as_record(TenantInfo))


def create_tenant(name: str, info: TenantInfo) -> Call[None]:
    """Create a tenant."""
    return put(f"tenants/{seg(name)}", info)


def update_tenant(name: str, info: TenantInfo) -> Call[None]:
    """Replace a tenant's admins and clusters."""
    return post(f"tenants/{seg(name)}", info)


def delete_tenant(name: str, *, force: bool = False) -> Call[None]:
    """Delete a tenant; with `force`, all its namespaces and topics too."""
    return delete(f"tenants/{seg(name)}", destroys=f"tenant {name}", force=force)


def clusters() -> Call[list[str]]:
    """The names of all clusters."""
    return get("clusters", as_names)


def cluster(name: str) -> Call[ClusterData]:
    """A cluster's addresses."""
    return get(f"clusters/{seg(name)}", as_record(ClusterData))


def create_cluster(name: str, data: ClusterData) -> Call[None]:
    """Create a cluster."""
    return put(f"clusters/{seg(name)}", data)


def update_cluster(name: str, data: ClusterData) -> Call[None]:
    """Replace a cluster's addresses."""
    return post(f"clusters/{seg(name)}", data)


def delete_cluster(name: str) -> Call[None]:
    """Delete a cluster."""
    return delete(f"clusters/{seg(name)}", destroys=f"cluster {name}")


def peer_clusters(name: str) -> Call[list[str]]:
    """The clusters that may serve a cluster's topics."""
    return get(f"clusters/{seg(name)}/peers", as_names)


def set_peer_clusters(name: str, peers: Sequence[str]) -> Call[None]:
    """Replace a cluster's peers."""
    return post(f"clusters/{seg(name)}/peers", list(peers))


def migration(name: str) -> Call[Json]:
    """Whether a cluster has moved, and where to."""
    return get(f"clusters/{seg(name)}/migrate", as_json)


def set_migration(name: str, target: ClusterUrl, *, migrated: bool) -> Call[None]:
    """Tell the clients of a cluster where it has moved to."""
    return post(f"clusters/{seg(name)}/migrate", target, migrated=migrated)


def failure_domains(name: str) -> Call[dict[str, FailureDomain]]:
    """All failure domains of a cluster."""
    return get(f"clusters/{seg(name)}/failureDomains", as_records(FailureDomain))


def failure_domain(name: str, domain: str) -> Call[FailureDomain]:
    """One failure domain of a cluster."""
    return get(f"clusters/{seg(name)}/failureDomains/{seg(domain)}", as_record(FailureDomain))


def set_failure_domain(name: str, domain: str, data: FailureDomain) -> Call[None]:
    """Create a failure domain, or replace its brokers."""
    return post(f"clusters/{seg(name)}/failureDomains/{seg(domain)}", data)


def delete_failure_domain(name: str, domain: str) -> Call[None]:
    """Delete a failure domain."""
    return delete(
        f"clusters/{seg(name)}/failureDomains/{seg(domain)}", destroys=f"failure domain {domain}"
    )


def isolation_policies(name: str) -> Call[dict[str, NamespaceIsolationData]]:
    """The isolation policies of a cluster, by name."""
    path = f"clusters/{seg(name)}/namespaceIsolationPolicies"
    return get(path, as_records(NamespaceIsolationData))


def isolation_policy(name: str, policy: str) -> Call[NamespaceIsolationData]:
    """One isolation policy."""
    return get(_isolation(name, policy), as_record(NamespaceIsolationData))


def set_isolation_policy(name: str, policy: str, data: NamespaceIsolationData) -> Call[None]:
    """Create or replace an isolation policy."""
    return post(_isolation(name, policy), data)


def delete_isolation_policy(name: str, policy: str) -> Call[None]:
    """Delete an isolation policy."""
    return delete(_isolation(name, policy), destroys=f"isolation policy {policy}")


def isolated_brokers(name: str) -> Call[Json]:
    """The brokers of a cluster, each with the namespaces that policies give it."""
    return get(f"{_isolation(name, 'brokers')}", as_json)


def isolated_broker(name: str, broker: str) -> Call[Json]:
    """The namespaces that policies give one broker."""
    return get(f"{_isolation(name, 'brokers')}/{seg(broker)}", as_json)


def resource_groups() -> Call[list[str]]:
    """The names of all resource groups."""
    return get("resourcegroups", as_names)


def resource_group(name: str) -> Call[ResourceGroup]:
    """The rates of a resource group."""
    return get(f"resourcegroups/{seg(name)}", as_record(ResourceGroup))


def set_resource_group(name: str, group: ResourceGroup) -> Call[None]:
    """Create a resource group, or change the rates that are given."""
    return put(f"resourcegroups/{seg(name)}", group)


def delete_resource_group(name: str) -> Call[None]:
    """Delete a resource group."""
    return delete(f"resourcegroups/{seg(name)}", destroys=f"resource group {name}")


def default_quota() -> Call[ResourceQuota]:
    """The default resource quota of bundles: the load that one is expected to bring."""
    return get("resource-quotas", as_record(ResourceQuota))


def set_default_quota(quota: ResourceQuota) -> Call[None]:
    """Replace the default resource quota of bundles."""
    return post("resource-quotas", quota)


def bundle_quota(namespace: str, bundle: str) -> Call[ResourceQuota]:
    """The resource quota of one bundle: the load that it is expected to bring."""
    return get(_quota(namespace, bundle), as_record(ResourceQuota))


def set_bundle_quota(namespace: str, bundle: str, quota: ResourceQuota) -> Call[None]:
    """Set the resource quota of one bundle."""
    return post(_quota(namespace, bundle), quota)


def reset_bundle_quota(namespace: str, bundle: str) -> Call[None]:
    """Remove the resource quota of one bundle, so that the default applies."""
    return delete(_quota(namespace, bundle))


def bookies() -> Call[Json]:
    """All bookies."""
    return get("bookies/all", as_json)


def bookie_racks() -> Call[Json]:
    """The racks of all bookies, by group and bookie."""
    return get("bookies/racks-info", as_json)


def bookie_rack(bookie: str) -> Call[BookieInfo]:
    """The rack of one bookie."""
    return get(f"bookies/racks-info/{seg(bookie)}", as_record(BookieInfo))


def set_bookie_rack(bookie: str, info: BookieInfo, *, group: str = "default") -> Call[None]:
    """Set the rack of one bookie."""
    return post(f"bookies/racks-info/{seg(bookie)}", info, group=group)


def delete_bookie_rack(bookie: str) -> Call[None]:
    """Delete the rack of one bookie."""
    return delete(f"bookies/racks-info/{seg(bookie)}", destroys=f"the rack of bookie {bookie}")


def _isolation(name: str, policy: str) -> str:
    return f"clusters/{seg(name)}/namespaceIsolationPolicies/{seg(policy)}"


def _quota(namespace: str, bundle: str) -> str:
    return f"resource-quotas/{namespace_path(namespace)}/{seg(bundle)}"
