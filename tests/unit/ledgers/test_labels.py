from __future__ import annotations

import json

import pytest

from pulsar_py.ledgers import labels

NAME = "public/default/persistent/a%2Fb"


def test_labels_are_those_that_apache_pulsar_sets_and_the_cluster() -> None:
    assert labels.managed_ledger("c", NAME) == {
        "application": b"pulsar",
        "component": b"managed-ledger",
        "pulsar/managed-ledger": NAME.encode(),
        "pulsar/cluster": b"c",
    }
    assert labels.cursor("c", NAME, "s%2F1") == {
        **labels.managed_ledger("c", NAME),
        "pulsar/cursor": b"s%2F1",
    }
    assert labels.schema("c", "a/b/c") == {
        "application": b"pulsar",
        "component": b"schema",
        "pulsar/schemaId": b"a/b/c",
        "pulsar/cluster": b"c",
    }
    assert labels.compacted_ledger("c", "t", b"\x01") == {
        "application": b"pulsar",
        "component": b"compacted-ledger",
        "pulsar/compactedTopic": b"t",
        "pulsar/compactedTo": b"\x01",
        "pulsar/cluster": b"c",
    }
    assert labels.delayed_index_bucket("c", "t", "s", "k") == {
        "application": b"pulsar",
        "component": b"delayed-index-bucket",
        "pulsar/delayedIndexTopic": b"t",
        "pulsar/delayedIndexCursor": b"s",
        "pulsar/delayedIndexBucketKey": b"k",
        "pulsar/cluster": b"c",
    }


@pytest.mark.parametrize(
    ("custom_metadata", "is_ours"),
    [
        (labels.schema("c", "a/b/c"), True),
        ({"application": b"pulsar", "component": b"new", "pulsar/cluster": b"c"}, True),
        (labels.schema("other", "a/b/c"), False),
        ({"application": b"pulsar", "component": b"schema"}, False),
        ({"application": b"other", "pulsar/cluster": b"c"}, False),
        ({"pulsar/cluster": b"c"}, False),
        ({}, False),
    ],
)
def test_only_what_names_the_cluster_is_ours(
    custom_metadata: dict[str, bytes], *, is_ours: bool
) -> None:
    assert labels.is_ours(custom_metadata, "c") is is_ours


def test_a_bookie_affinity_is_pulsars_document() -> None:
    (label,) = labels.bookie_affinity(["a", "b"], ["c"]).items()
    assert label[0] == "EnsemblePlacementPolicyConfig"
    assert json.loads(label[1]) == {
        "policyClass": (
            "org.apache.pulsar.bookie.rackawareness.IsolatedBookieEnsemblePlacementPolicy"
        ),
        "properties": {"isolationBookieGroups": "a,b", "secondaryIsolationBookieGroups": "c"},
    }
