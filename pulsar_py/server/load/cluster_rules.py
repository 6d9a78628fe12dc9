"""`ClusterRules`: isolation policies, failure domains and anti-affinity groups of a cluster (edge).

Policies and domains are read at the start, and again when a bundle is placed after the watch said
that they may have changed. The anti-affinity group of a namespace stands in its local policies.

Source: SimpleResourceAllocationPolicies, ModularLoadManagerImpl.refreshBrokerToFailureDomainMap in
Pulsar's broker.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from pulsar_py.common.errors import InvalidNamespaceNameError
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.names import NamespaceName
from pulsar_py.metadata import paths
from pulsar_py.metadata.store import MetadataStore, Notification
from pulsar_py.server.load.broker_report import BrokerReport
from pulsar_py.server.load.isolation import (
    IsolationPolicy,
    allowed_brokers,
    policy_of,
    read_policies,
    unreadable_patterns,
)
from pulsar_py.server.load.placement import AntiAffinity

logger = logging.getLogger(__name__)

GroupOf = Callable[[NamespaceName], Awaitable[str | None]]
"""Reads the anti-affinity group of a namespace, None without one."""


class ClusterRules:
    """The rules of one cluster; its owner starts and closes it."""

    def __init__(self, configuration: MetadataStore, cluster: str, group_of: GroupOf) -> None:
        self._configuration = configuration
        self._cluster = cluster
        self._group_of = group_of
        self._policies: tuple[IsolationPolicy, ...] = ()
        self._domains: Mapping[str, list[str]] = {}
        self._changes_count = 0  # what the watch told so far, and one for the start
        self._read_count = -1  # of them when all was read
        self._stop_watching: Callable[[], None] | None = None

    async def start(self) -> None:
        """Watch, and read what is there.

        Raises:
            MetadataError: It can't be read now.
        """
        self._stop_watching = self._configuration.watch(
            paths.cluster(self._cluster), self._on_notification
        )
        await self._refresh()

    def _on_notification(self, notification: Notification) -> None:
        del notification
        self._changes_count += 1

    async def _refresh(self) -> None:
        while self._read_count != self._changes_count:
            changes_count = self._changes_count
            stored = await self._configuration.get(paths.isolation_policies(self._cluster))
            document = _document(None if stored is None else stored.value)
            policies = read_policies(document)
            for name, pattern in unreadable_patterns(document):
                logger.warning(
                    "isolation policy's pattern left out: RE2 has no look-around and no back "
                    "references; store the policy with another",
                    extra={"policy": name, "pattern": pattern[:100]},
                )
            parent = paths.failure_domains(self._cluster)
            domains = {}
            for name in await self._configuration.children(parent):
                domain = await self._configuration.get(f"{parent}/{name}")
                brokers = _document(None if domain is None else domain.value).get("brokers")
                domains[name] = [str(each) for each in brokers or ()]
            self._policies, self._domains = policies, domains
            self._read_count = changes_count

    async def allowed(self, bundle: str, brokers: Mapping[str, BrokerReport]) -> list[str]:
        """The brokers that may take `tenant/namespace/range` by the isolation policies.

        Raises:
            MetadataError: They can't be read now.
        """
        await self._refresh()
        return allowed_brokers(bundle.rpartition("/")[0], brokers, self._policies)

    async def apart(
        self, bundle: str, brokers: Mapping[str, BrokerReport], *, uses_domains: bool
    ) -> AntiAffinity | None:
        """Where the group of a bundle's namespace is now; None if it is in none.

        Raises:
            MetadataError: That can't be read now.
        """
        group = await self._group(bundle.rpartition("/")[0])
        if group is None:
            return None
        await self._refresh()
        counts: Counter[str] = Counter()
        for broker_id, report in brokers.items():
            namespaces = (name.rpartition("/")[0] for name in report.bundles if name != bundle)
            for namespace in dict.fromkeys(namespaces):
                counts[broker_id] += await self._group(namespace) == group
        return AntiAffinity(counts=counts, domains=self._domains if uses_domains else {})

    async def is_bound(self, bundle: str) -> bool:
        """Whether a policy or a group says where the bundle's namespace belongs.

        Raises:
            MetadataError: That can't be read now.
        """
        namespace = bundle.rpartition("/")[0]
        await self._refresh()
        if policy_of(namespace, self._policies) is not None:
            return True
        return await self._group(namespace) is not None

    async def _group(self, namespace: str) -> str | None:
        try:
            group = await self._group_of(NamespaceName.parse(namespace))
        except InvalidNamespaceNameError:
            return None  # of another broker, with names that are none here
        return group.lower() if group else None

    def close(self) -> None:
        """Stop watching."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None


def _document(value: bytes | None) -> dict[str, list[object]]:
    try:
        found = parse_json(value) if value else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
