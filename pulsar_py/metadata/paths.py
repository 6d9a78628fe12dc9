"""Paths of all kinds of objects in the metadata store, as Apache Pulsar has them (pure).

Local names of topics, cursor names and subscription names are encoded as HTML forms do it
(`names.url_form_encode`). Keys under `/ledgers` belong to the ledger store.

Source: PulsarResources and its parts in Pulsar's broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pulsar_py.common.errors import InvalidPathError
from pulsar_py.common.names import NamespaceName, TopicName, url_form_encode

CLUSTERS: Final = "/admin/clusters"
POLICIES: Final = "/admin/policies"
LOCAL_POLICIES: Final = "/admin/local-policies"
PARTITIONED_TOPICS: Final = "/admin/partitioned-topics"
DYNAMIC_CONFIGURATION: Final = "/admin/configuration"
RESOURCE_GROUPS: Final = "/admin/resourcegroups"
TOPIC_POLICIES: Final = "/admin/topic-policies"
MANAGED_LEDGERS: Final = "/managed-ledgers"
OWNERSHIP: Final = "/namespace"
BROKERS: Final = "/loadbalance/brokers"
LEADER: Final = "/loadbalance/leader"
EXTENSIBLE_LEADER: Final = "/loadbalance/extension/leader"
"""Of brokers with ExtensibleLoadManagerImpl."""
MIGRATION: Final = "/pulsar/migration-coordinator/migration"
"""How far the cluster's metadata has been moved to another store."""
BUNDLE_DATA: Final = "/loadbalance/bundle-data"
BROKER_AVERAGES: Final = "/loadbalance/broker-time-average"
RESOURCE_QUOTAS: Final = "/loadbalance/resource-quota"
SCHEMAS: Final = "/schemas"
PRODUCER_NAME_COUNTER: Final = "/counters/producer-name"
BOOKIE_RACKS: Final = "/bookies"
LEDGERS: Final = "/ledgers"
LEDGER_ID_COUNTER: Final = "/ledgers/idgen"
LEDGER_ID_PREFIX: Final = f"{LEDGER_ID_COUNTER}/ID-"
"""Sequential children that give ledgers their ids; deleted at once."""
PRODUCER_NAME_PREFIX: Final = f"{PRODUCER_NAME_COUNTER}/-"
"""Sequential children, one for each start of a broker."""
HEALTH: Final = "/pulsar_py/health"

_REFUSED: Final = re.compile(
    r"//|/\.\.?(?:/|\Z)|[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)
"""Empty parts, `.` and `..`, control characters, and characters that ZooKeeper refuses."""

MAX_CHARACTERS: Final = 1 << 20
"""Of a path: no more fit a packet of ZooKeeper's, and looking through more keeps others waiting."""


def check(path: str) -> None:
    """Refuse a text that is not a path of the metadata store.

    Raises:
        InvalidPathError: It does not start with `/`, ends with one, has a part that is empty, `.`
            or `..`, has control characters or characters beyond the basic multilingual plane, or
            has more than `MAX_CHARACTERS`.

    Source: PathUtils.validatePath in ZooKeeper.
    """
    if len(path) > MAX_CHARACTERS:
        raise InvalidPathError(
            f"{path[:50]!r}… is not a path of the metadata store: it has {len(path)} characters, "
            f"at most {MAX_CHARACTERS} are allowed"
        )
    if not path.startswith("/") or (path.endswith("/") and path != "/") or _REFUSED.search(path):
        raise InvalidPathError(
            f"{path!r} is not a path of the metadata store: expected /names/between/slashes"
        )


def _one(name: str) -> str:
    """A name that is one part of a path; one with a slash would lead below or beside it.

    Raises:
        InvalidPathError: It has one.
    """
    if "/" in name:
        raise InvalidPathError(f"{name!r} is not a name: expected one without a slash")
    return name


def check_sequential(prefix: str) -> None:
    """Refuse a prefix that is not a path once a number follows; unlike a path it may end with `/`.

    Raises:
        ValueError: As `check`.
    """
    check(f"{prefix}0")


def sequence_number(path: str) -> int:
    """The number at the end of a path that `create_sequential` gave."""
    return int(path[len(path.rstrip("0123456789")) :])


def parent(path: str) -> str:
    """The path one level up; for `/` it is `/`."""
    return path[: path.rindex("/")] or "/"


def ancestors(path: str) -> Iterator[str]:
    """`path`, then all above it up to `/`."""
    while path != "/":
        yield path
        path = parent(path)
    yield path


def cluster(name: str) -> str:
    """A cluster's addresses."""
    return f"{CLUSTERS}/{_one(name)}"


def cluster_policies(name: str) -> str:
    """The cluster that the clients of a cluster are redirected to."""
    return f"{LOCAL_POLICIES}/{_one(name)}"


def tenant(name: str) -> str:
    """A tenant's roles and clusters."""
    return f"{POLICIES}/{_one(name)}"


def namespace_policies(namespace: NamespaceName) -> str:
    """A namespace's policies; there is no namespace without them."""
    return f"{POLICIES}/{namespace}"


def local_policies(namespace: NamespaceName) -> str:
    """A namespace's bundles."""
    return f"{LOCAL_POLICIES}/{namespace}"


def partitioned_topics(namespace: NamespaceName, domain: str) -> str:
    """The parent of a namespace's partitioned topics."""
    return f"{PARTITIONED_TOPICS}/{namespace}/{domain}"


def partitioned_topic(topic: TopicName) -> str:
    """The count of a topic's partitions."""
    return f"{PARTITIONED_TOPICS}/{topic.managed_ledger_name}"


def topic_policies(topic: TopicName, *, is_global: bool = False) -> str:
    """A topic's own policies, those for this cluster or those for all.

    Apache Pulsar's default keeps them in the topic `__change_events` instead.
    """
    scope = "global" if is_global else "local"
    return f"{TOPIC_POLICIES}/{scope}/{topic.base.managed_ledger_name}"


def managed_ledgers(namespace: NamespaceName) -> str:
    """The parent of a namespace's persistent topics."""
    return f"{MANAGED_LEDGERS}/{namespace}/persistent"


def managed_ledger(name: str) -> str:
    """A managed ledger's list of ledgers; its cursors lie below."""
    return f"{MANAGED_LEDGERS}/{name}"


def managed_cursor(managed_ledger_name: str, cursor_name: str) -> str:
    """A cursor's state, or the ledger that holds it."""
    return f"{MANAGED_LEDGERS}/{managed_ledger_name}/{url_form_encode(cursor_name)}"


def schema(topic: TopicName) -> str:
    """The locator of the versions of a topic's schema."""
    base = topic.base
    return f"{SCHEMAS}/{base.namespace_name}/{url_form_encode(base.local_name)}"


def bundle_owners(namespace: NamespaceName) -> str:
    """The parent of the ownership records of a namespace's bundles."""
    return f"{OWNERSHIP}/{namespace}"


def bundle_owner(namespace: NamespaceName, bundle_range: str) -> str:
    """The ephemeral record of a bundle's owner; the range is such as `0x00000000_0x40000000`."""
    return f"{OWNERSHIP}/{namespace}/{bundle_range}"


def broker(broker_id: str) -> str:
    """The ephemeral report of a broker, named host:port of its HTTP service."""
    return f"{BROKERS}/{broker_id}"


def broker_average(broker_id: str) -> str:
    """The mean load of a broker, as the leader knows it."""
    return f"{BROKER_AVERAGES}/{broker_id}"


def bundle_data(bundle: str) -> str:
    """The mean load of `tenant/namespace/range`, as the leader knows it."""
    return f"{BUNDLE_DATA}/{bundle}"


def bundle_quota(bundle: str) -> str:
    """The load that `tenant/namespace/range` is expected to bring."""
    return f"{RESOURCE_QUOTAS}/namespace/{bundle}"


def broker_health(broker_id: str) -> str:
    """The last record of a broker's health check."""
    return f"{HEALTH}/{broker_id}"


def resource_group(name: str) -> str:
    """A resource group's rates."""
    return f"{RESOURCE_GROUPS}/{_one(name)}"


def failure_domains(cluster_name: str) -> str:
    """The parent of a cluster's failure domains."""
    return f"{CLUSTERS}/{_one(cluster_name)}/failureDomain"


def isolation_policies(cluster_name: str) -> str:
    """A cluster's rules for which brokers serve which namespaces."""
    return f"{CLUSTERS}/{_one(cluster_name)}/namespaceIsolationPolicies"
