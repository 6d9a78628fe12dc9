"""Labels of ledgers: custom metadata that says which cluster, topic and cursor a ledger belongs to.

They are those that Apache Pulsar sets, so that its tools and ours know each other's ledgers, and
one of ours: the name of the cluster. The ledger collector deletes only ledgers with its own
cluster's name: one of another cluster, of another program or without labels is left alone.

    application        pulsar
    component          managed-ledger | compacted-ledger | delayed-index-bucket | schema
    pulsar/cluster     name of the cluster (of ours alone)
    pulsar/managed-ledger, pulsar/cursor, pulsar/schemaId, pulsar/compactedTopic, ...
    EnsemblePlacementPolicyConfig    JSON: which groups of bookies it is bound to

Source: LedgerMetadataUtils in Pulsar's managed-ledger; BookkeeperSchemaStorage;
EnsemblePlacementPolicyConfig.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

APPLICATION: Final = "application"
COMPONENT: Final = "component"
CLUSTER: Final = "pulsar/cluster"
"""The label that Pulsar does not have: the cluster whose metadata names the ledger."""

MANAGED_LEDGER: Final = "managed-ledger"
COMPACTED_LEDGER: Final = "compacted-ledger"
DELAYED_INDEX_BUCKET: Final = "delayed-index-bucket"
SCHEMA: Final = "schema"
SEQUENCE_IDS: Final = "pulsar-py-sequence-ids"
"""The components; the last one is not of Pulsar."""

CURSOR: Final = "pulsar/cursor"
"""The name of a cursor ledger's cursor."""
COMPACTED_TO: Final = "pulsar/compactedTo"
"""A serialized message id: how far a compacted ledger goes."""
BUCKET_KEY: Final = "pulsar/delayedIndexBucketKey"
"""The property of the cursor that names a bucket of delayed messages."""

ENSEMBLE_PLACEMENT_POLICY: Final = "EnsemblePlacementPolicyConfig"
"""Pulsar's: how its bookies are chosen. Stores that keep one copy pass over it."""
ISOLATION_POLICY_CLASS: Final = (
    "org.apache.pulsar.bookie.rackawareness.IsolatedBookieEnsemblePlacementPolicy"
)
ISOLATION_GROUPS: Final = "isolationBookieGroups"
SECONDARY_ISOLATION_GROUPS: Final = "secondaryIsolationBookieGroups"

_PULSAR: Final = b"pulsar"


def managed_ledger(cluster: str, name: str) -> dict[str, bytes]:
    """Labels of a data ledger; `name` is the managed ledger's, encoded as in its path."""
    return {**_labels(cluster, MANAGED_LEDGER), "pulsar/managed-ledger": name.encode()}


def cursor(cluster: str, name: str, cursor_name: str) -> dict[str, bytes]:
    """Labels of a cursor ledger; both names as in their paths."""
    return {**managed_ledger(cluster, name), CURSOR: cursor_name.encode()}


def schema(cluster: str, schema_id: str) -> dict[str, bytes]:
    """Labels of a ledger that holds a schema's version; `tenant/namespace/topic`."""
    return {**_labels(cluster, SCHEMA), "pulsar/schemaId": schema_id.encode()}


def compacted_ledger(cluster: str, topic: str, compacted_to: bytes) -> dict[str, bytes]:
    """Labels of what compaction kept of a topic, up to the position in `compacted_to`."""
    return {
        **_labels(cluster, COMPACTED_LEDGER),
        "pulsar/compactedTopic": topic.encode(),
        COMPACTED_TO: compacted_to,
    }


def delayed_index_bucket(
    cluster: str, topic: str, subscription: str, bucket_key: str
) -> dict[str, bytes]:
    """Labels of a bucket of the delayed-message index; the key is its property of the cursor."""
    return {
        **_labels(cluster, DELAYED_INDEX_BUCKET),
        "pulsar/delayedIndexTopic": topic.encode(),
        "pulsar/delayedIndexCursor": subscription.encode(),
        BUCKET_KEY: bucket_key.encode(),
    }


def sequence_ids(cluster: str, topic: str) -> dict[str, bytes]:
    """Labels of a ledger with sequence ids of a topic's producers; Apache Pulsar has none."""
    return {
        **_labels(cluster, SEQUENCE_IDS),
        "pulsar/managed-ledger": topic.encode(),
    }


def bookie_affinity(primary: Sequence[str], secondary: Sequence[str] = ()) -> dict[str, bytes]:
    """The label that binds a ledger to groups of bookies (`bookieAffinityGroup` of a namespace)."""
    properties = {ISOLATION_GROUPS: ",".join(primary)}
    if secondary:
        properties[SECONDARY_ISOLATION_GROUPS] = ",".join(secondary)
    document = {"policyClass": ISOLATION_POLICY_CLASS, "properties": properties}
    return {ENSEMBLE_PLACEMENT_POLICY: json.dumps(document).encode()}


def is_ours(custom_metadata: Mapping[str, bytes], cluster: str) -> bool:
    """Whether a ledger belongs to this cluster's metadata, and may be collected."""
    return (
        custom_metadata.get(APPLICATION) == _PULSAR
        and custom_metadata.get(CLUSTER) == cluster.encode()
    )


def _labels(cluster: str, component: str) -> dict[str, bytes]:
    return {APPLICATION: _PULSAR, COMPONENT: component.encode(), CLUSTER: cluster.encode()}
