"""Lists calls, stored values and command fields that have no effect yet, each with its reason.

There are five tables. `CALLS` are answered with 501 and the reason. Values that are stored and
returned, but change nothing yet, are named by document and key. Fields of commands that are
accepted and change nothing are named by command and field. Fields of statistics that always have
one value, since nobody measures what they mean, are named, too. Tests compare the tables with the
code and with `docs/WITHOUT_EFFECT.md`, which `make docs` writes.

Settings without effect have a list of their own, `server/ignored_settings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

from pulsar_py.admin.http_messages import HttpError

REFERENCE_PATH: Final = Path("docs/WITHOUT_EFFECT.md")

_BAR: Final = "\\|"  # a `|` within a cell of a Markdown table

_REPLICATION: Final = "there is no replication in this version: all is one cluster"
_CLUSTERS: Final = "no other cluster is connected to in this version"
_OFFLOAD: Final = "nothing is offloaded in this version"
_ALONE: Final = (
    "a standalone broker has no others to choose from; it counts with `pulsar-py broker`"
)
_ACKS: Final = (
    "every acknowledgement is stored, however many ranges there are, so dispatch never has to wait "
    "for it"
)
_TRANSACTIONS: Final = "there are no transactions in this version"

CALLS: Final[Mapping[str, str]] = {}
"""Calls that are answered with 501: the reason, by method and template."""

VALUES: Final[Mapping[str, str]] = {
    "ClusterData.serviceUrl": _CLUSTERS,
    "ClusterData.serviceUrlTls": _CLUSTERS,
    "ClusterData.brokerServiceUrl": _CLUSTERS,
    "ClusterData.brokerServiceUrlTls": _CLUSTERS,
    "ClusterData.peerClusterNames": _CLUSTERS,
    "ClusterData.listenerName": _CLUSTERS,
    "NamespacePolicies.replication_clusters": _REPLICATION,
    "NamespacePolicies.allowed_clusters": _REPLICATION,
    "NamespacePolicies.replicatorDispatchRate": _REPLICATION,
    "NamespacePolicies.schema_auto_update_compatibility_strategy": (
        "the old form of schema_compatibility_strategy, which counts"
    ),
    "NamespacePolicies.migrated": "clients are not sent to another cluster in this version",
    "NamespacePolicies.dispatcherPauseOnAckStatePersistentEnabled": _ACKS,
    "NamespacePolicies.offload_policies": _OFFLOAD,
    "TopicPolicies.offloadPolicies": _OFFLOAD,
    "TopicPolicies.shadowTopics": _REPLICATION,
    "NamespacePolicies.allowed_topic_property_keys_for_metrics": (
        "`/metrics` has a fixed selection of labels"
    ),
    "TopicPolicies.replicationClusters": _REPLICATION,
    "TopicPolicies.replicatorDispatchRate": _REPLICATION,
    "TopicPolicies.dispatcherPauseOnAckStatePersistentEnabled": _ACKS,
}
"""Stored values without effect: the reason, by class in `metadata.documents` and key."""

PARTS: Final[Mapping[str, str]] = {
    "persistence: bookkeeperEnsemble, bookkeeperWriteQuorum, bookkeeperAckQuorum": (
        "the embedded store keeps one copy of each ledger; its mark-delete rate counts. They count "
        "with `pulsar-py broker`"
    ),
    "persistence/bookieAffinity": (
        "a standalone broker has no bookies to choose from; it counts with `pulsar-py broker`"
    ),
    "dispatchRate and subscriptionDispatchRate, of non-persistent topics": (
        "what a consumer has no permits for is dropped, so nothing is held back"
    ),
    "namespaceIsolationPolicies and failureDomains of a cluster": _ALONE,
    "resource-quotas": _ALONE,
    "migrate of a cluster": "clients are not sent to another cluster in this version",
    "antiAffinity of a namespace": _ALONE,
    "createLocalTopicOnly, of PUT partitions": _REPLICATION,
}
"""Parts of values, and parameters of calls, without effect, although the others have one."""

FIELDS: Final[Mapping[str, str]] = {
    "CommandSubscribe.replicate_subscription_state": (
        f"{_REPLICATION}; kept with the subscription and shown"
    ),
    "CommandProducer.txn_enabled": f"{_TRANSACTIONS}: a SEND of one is refused",
}
"""Fields of commands without effect: the reason, by message and field."""


STATISTICS: Final[Mapping[str, str]] = {
    "nonContiguousDeletedMessagesRangesSerializedSize": (
        "0: of many ranges only what has changed is written, so all of them have no size together"
    ),
    "underReplicated": (
        "false, as it is where the broker stores by itself; which ledgers on bookies lack copies "
        "is known to BookKeeper's auditor alone"
    ),
    "offloaded": _OFFLOAD,
    "offloadedStorageSize": _OFFLOAD,
    "ongoingTxnCount": _TRANSACTIONS,
    "abortedTxnCount": _TRANSACTIONS,
    "committedTxnCount": _TRANSACTIONS,
    "replication": _REPLICATION,
}
"""Fields of statistics that have one value whatever happens: the reason, by field."""


def not_implemented(call: str) -> HttpError:
    """The 501 for a call in `CALLS`."""
    return HttpError(HTTPStatus.NOT_IMPLEMENTED, CALLS[call])


def render_reference() -> str:
    """The text of `docs/WITHOUT_EFFECT.md`."""
    lines = [
        "# Without effect",
        "",
        "Made from the tables in `pulsar_py/admin/without_effect.py` by `make docs`. Settings that",
        "are taken without effect are named in [SETTINGS](SETTINGS.md).",
    ]
    for heading, column, table in (
        ("Calls that are answered 501", "call", CALLS),
        ("Values that are stored and shown", "document and key", VALUES),
        ("Parts of values, and parameters", "part", PARTS),
        ("Fields of commands that are taken", "message and field", FIELDS),
        ("Fields of statistics with one value", "field", STATISTICS),
    ):
        lines += ["", f"## {heading}", "", f"| {column} | why |", "| --- | --- |"]
        for name, why in table.items():
            lines.append(f"| `{name.replace('|', _BAR)}` | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write `docs/WITHOUT_EFFECT.md`."""
    REFERENCE_PATH.write_text(render_reference(), "utf-8")


if __name__ == "__main__":
    main()
