"""Applies isolation policies and anti-affinity groups: which brokers may take a bundle (pure).

An isolation policy names namespaces by regular expressions, and brokers by regular expressions of
their hosts: primary brokers serve these namespaces and no others; secondary ones serve them, too,
when fewer than `min_limit` primary ones are registered. Brokers that are primary in no policy serve
the namespaces that no policy names. The expressions are RE2's: each lookup matches them, and one of
Python's own that backtracks would stop the broker.

Namespaces of an anti-affinity group are kept apart: a bundle goes to one of the failure domains
with the fewest of the group, and there to one of the brokers with the fewest.

Source: LoadManagerShared.applyNamespacePolicies, filterAntiAffinityGroupOwnedBrokers,
NamespaceIsolationPolicyImpl, MinAvailablePolicy in Pulsar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from pulsar_py.common.conditions import Pattern
from pulsar_py.common.linear_patterns import linear_pattern

_NO_DOMAIN: Final = ""
"""The domain of brokers that are in none."""


class IsolationPolicy(Struct, frozen=True, kw_only=True):
    """One policy of a cluster."""

    name: str
    namespaces: tuple[Pattern, ...]
    primary: tuple[Pattern, ...]
    secondary: tuple[Pattern, ...] = ()
    min_limit: int = 0
    """Primary brokers below which the secondary ones serve, too."""

    def concerns(self, namespace: str) -> bool:
        """Whether it is about a namespace."""
        return _matches(self.namespaces, namespace)

    def is_primary(self, broker_id: str) -> bool:
        """Whether a broker is meant for its namespaces alone."""
        return _matches(self.primary, host_of(broker_id))

    def is_secondary(self, broker_id: str) -> bool:
        """Whether a broker steps in where primary ones are missing."""
        return _matches(self.secondary, host_of(broker_id))


def host_of(broker_id: str) -> str:
    """The host of `host:port`."""
    return broker_id.rpartition(":")[0]


def _matches(patterns: Iterable[Pattern], text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in patterns)


def read_policies(document: object) -> tuple[IsolationPolicy, ...]:
    """The policies of a cluster as they are stored; what can't be read is left out."""
    if not isinstance(document, dict):
        return ()
    return tuple(
        _read_policy(str(name), data) for name, data in document.items() if isinstance(data, dict)
    )


def _read_policy(name: str, data: Mapping[str, Any]) -> IsolationPolicy:  # Any: JSON
    failover = data.get("auto_failover_policy")
    parameters = failover.get("parameters") if isinstance(failover, dict) else None
    limit = str(parameters.get("min_limit", "0")) if isinstance(parameters, dict) else "0"
    return IsolationPolicy(
        name=name,
        namespaces=_patterns(data.get("namespaces")),
        primary=_patterns(data.get("primary")),
        secondary=_patterns(data.get("secondary")),
        min_limit=int(limit) if limit.isascii() and limit.isdigit() else 0,
    )


def _patterns(texts: object) -> tuple[Pattern, ...]:
    found = []
    for text in texts if isinstance(texts, list) else ():
        try:
            found.append(linear_pattern(str(text)))
        except ValueError:
            continue
    return tuple(found)


def unreadable_patterns(document: object) -> list[tuple[str, str]]:
    """The policies' names and their patterns that are left out, because RE2 can't match them."""
    if not isinstance(document, dict):
        return []
    return [
        (str(name), str(text))
        for name, data in document.items()
        if isinstance(data, dict)
        for which in ("namespaces", "primary", "secondary")
        if isinstance(texts := data.get(which), list)
        for text in texts
        if not _patterns([text])
    ]


def policy_of(namespace: str, policies: Sequence[IsolationPolicy]) -> IsolationPolicy | None:
    """The first policy that names a namespace, None if none does."""
    return next((each for each in policies if each.concerns(namespace)), None)


def allowed_brokers(
    namespace: str, broker_ids: Iterable[str], policies: Sequence[IsolationPolicy]
) -> list[str]:
    """The brokers that may take bundles of the namespace, among those given."""
    policy = policy_of(namespace, policies)
    if policy is None:
        return [
            each for each in broker_ids if not any(other.is_primary(each) for other in policies)
        ]
    known = list(broker_ids)
    allowed = [each for each in known if policy.is_primary(each)]
    if len(allowed) < policy.min_limit:
        allowed += [
            each for each in known if policy.is_secondary(each) and not policy.is_primary(each)
        ]
    return allowed


def kept_apart(
    broker_ids: Collection[str],
    group_counts: Mapping[str, int],
    domains: Mapping[str, Collection[str]],
) -> list[str]:
    """The brokers with the fewest namespaces of the group, in the failure domains with the fewest.

    `group_counts` says for each broker how many namespaces of the group it serves now; `domains`
    the brokers of each failure domain, none where domains do not count.
    """
    ids = list(broker_ids)
    if domains:
        domain_of = {broker: name for name, some in domains.items() for broker in some}
        in_domain: Counter[str] = Counter()
        for broker, count in group_counts.items():
            in_domain[domain_of.get(broker, _NO_DOMAIN)] += count
        fewest = min(
            (in_domain[domain_of.get(each, _NO_DOMAIN)] for each in ids),
            default=0,
        )
        ids = [each for each in ids if in_domain[domain_of.get(each, _NO_DOMAIN)] == fewest]
    least = min((group_counts.get(each, 0) for each in ids), default=0)
    return [each for each in ids if group_counts.get(each, 0) == least]
