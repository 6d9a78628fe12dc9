"""Calls about namespaces: life cycle, bundles, permissions, properties (declarations).

Their policies are in `policies`.

Source: Namespaces in Pulsar's admin API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pulsar_py.admin_client.call import (
    NO_BODY,
    Call,
    Json,
    as_json,
    as_names,
    as_record,
    call,
    delete,
    get,
    namespace_path,
    post,
    put,
    seg,
)
from pulsar_py.admin_client.records import BundlesData


def namespaces(tenant: str) -> Call[list[str]]:
    """A tenant's namespaces, as `tenant/namespace`."""
    return get(f"namespaces/{seg(tenant)}", as_names)


def namespace_policies(namespace: str) -> Call[Json]:
    """All policies of a namespace."""
    return get(_path(namespace), as_json)


def topics_of_namespace(
    namespace: str, *, mode: str | None = None, system_topics: bool = False
) -> Call[list[str]]:
    """The topics of a namespace; `mode` is `PERSISTENT`, `NON_PERSISTENT` or `ALL`."""
    path = f"{_path(namespace)}/topics"
    return get(path, as_names, mode=mode, includeSystemTopic=system_topics)


def create_namespace(
    namespace: str, *, clusters: Sequence[str] = (), bundles_count: int = 0
) -> Call[None]:
    """Create a namespace; without clusters and a count, with the broker's defaults."""
    policies: dict[str, Json] = {}
    if clusters:
        policies["replication_clusters"] = list(clusters)
    if bundles_count:
        policies["bundles"] = {"numBundles": bundles_count}
    return put(_path(namespace), policies)


def delete_namespace(namespace: str, *, force: bool = False) -> Call[None]:
    """Delete a namespace; with `force`, all its topics too."""
    return delete(_path(namespace), destroys=f"namespace {namespace}", force=force)


def bundles(namespace: str) -> Call[BundlesData]:
    """The bundles of a namespace."""
    return get(f"{_path(namespace)}/bundles", as_record(BundlesData))


def unload_namespace(
    namespace: str, bundle: str | None = None, *, destination: str | None = None
) -> Call[None]:
    """Close the topics of a namespace or a bundle, so that they are served anew."""
    return put(f"{_path(namespace, bundle)}/unload", destinationBroker=destination)


def split_bundle(
    namespace: str,
    bundle: str,
    *,
    unload: bool = False,
    algorithm: str | None = None,
    boundaries: Sequence[int] = (),
) -> Call[None]:
    """Split a bundle; `boundaries` are for the algorithm `specified_positions_divide`."""
    return put(
        f"{_path(namespace, bundle)}/split",
        list(boundaries) if boundaries else NO_BODY,
        unload=unload,
        splitAlgorithmName=algorithm,
    )


def topic_positions(namespace: str, bundle: str, topics: Sequence[str] = ()) -> Call[Json]:
    """The hashes of topics in a bundle; without names, of all."""
    path = f"{_path(namespace, bundle)}/topicHashPositions"
    return get(path, as_json, topics=",".join(topics) or None)


def clear_backlog(
    namespace: str, *, subscription: str | None = None, bundle: str | None = None
) -> Call[None]:
    """Acknowledge all messages on all topics, for one subscription or all."""
    rest = "" if subscription is None else f"/{seg(subscription)}"
    path = f"{_path(namespace, bundle)}/clearBacklog{rest}"
    return call("POST", path, lambda _: None, destroys=f"the backlogs of namespace {namespace}")


def unsubscribe(namespace: str, subscription: str, *, bundle: str | None = None) -> Call[None]:
    """Delete a subscription on all topics."""
    return call(
        "POST",
        f"{_path(namespace, bundle)}/unsubscribe/{seg(subscription)}",
        lambda _: None,
        destroys=f"subscription {subscription} on all topics of namespace {namespace}",
    )


def permissions(namespace: str) -> Call[dict[str, list[str]]]:
    """What roles may do, by role."""
    return get(f"{_path(namespace)}/permissions", as_json)


def grant_permission(namespace: str, role: str, actions: Sequence[str]) -> Call[None]:
    """Let a role do something on all topics: `produce`, `consume` and so on."""
    return post(f"{_path(namespace)}/permissions/{seg(role)}", list(actions))


def revoke_permission(namespace: str, role: str) -> Call[None]:
    """Take all rights on the namespace from a role."""
    return delete(f"{_path(namespace)}/permissions/{seg(role)}")


def subscription_permissions(namespace: str) -> Call[dict[str, list[str]]]:
    """The roles that may use a subscription, by subscription."""
    return get(f"{_path(namespace)}/permissions/subscription", as_json)


def grant_subscription_permission(
    namespace: str, subscription: str, roles: Sequence[str]
) -> Call[None]:
    """Let only these roles use a subscription."""
    return post(f"{_path(namespace)}/permissions/subscription/{seg(subscription)}", list(roles))


def revoke_subscription_permission(namespace: str, subscription: str, role: str) -> Call[None]:
    """Take a subscription from a role."""
    return delete(f"{_path(namespace)}/permissions/{seg(subscription)}/{seg(role)}")


def property_of(namespace: str, key: str) -> Call[Json]:
    """The value of one property of a namespace."""
    return get(f"{_path(namespace)}/property/{seg(key)}", as_json)


def set_property(namespace: str, key: str, value: str) -> Call[None]:
    """Set one property."""
    return put(f"{_path(namespace)}/property/{seg(key)}/{seg(value)}")


def remove_property(namespace: str, key: str) -> Call[Json]:
    """Remove one property; gives its value."""
    return call("DELETE", f"{_path(namespace)}/property/{seg(key)}", as_json)


def properties(namespace: str) -> Call[dict[str, str]]:
    """All properties of a namespace."""
    return get(f"{_path(namespace)}/properties", as_json)


def set_properties(namespace: str, values: Mapping[str, str]) -> Call[None]:
    """Set these properties; others stay."""
    return put(f"{_path(namespace)}/properties", dict(values))


def clear_properties(namespace: str) -> Call[None]:
    """Remove all properties."""
    return delete(f"{_path(namespace)}/properties")


def anti_affinity_namespaces(
    cluster: str, group: str, *, tenant: str | None = None
) -> Call[list[str]]:
    """The namespaces that are kept on brokers apart from each other."""
    return get(f"namespaces/{seg(cluster)}/antiAffinity/{seg(group)}", as_names, tenant=tenant)


def set_resource_group(namespace: str, group: str) -> Call[None]:
    """Put a namespace into a resource group, whose rates its topics share."""
    return post(f"{_path(namespace)}/resourcegroup/{seg(group)}")


def set_migrated(namespace: str, *, migrated: bool) -> Call[None]:
    """Whether the clients of a namespace are sent to the cluster that it has moved to."""
    return post(f"{_path(namespace)}/migration", migrated)


def _path(namespace: str, bundle: str | None = None) -> str:
    return f"namespaces/{namespace_path(namespace)}" + (f"/{seg(bundle)}" if bundle else "")
