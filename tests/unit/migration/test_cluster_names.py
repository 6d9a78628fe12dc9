from __future__ import annotations

import json

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.migration.cluster_names import ClusterNames

NAMES = ClusterNames("standalone", "large")


def renamed(document: object) -> object:
    return json.loads(NAMES.document("/path", json.dumps(document).encode()))


def test_lists_of_clusters_and_rates_by_cluster_get_the_new_name() -> None:
    rate = {"dispatchThrottlingRateInMsg": 1}
    assert renamed(
        {
            "replication_clusters": ["standalone", "far"],
            "allowed_clusters": ["standalone"],
            "topicDispatchRate": {"standalone": rate, "far": rate},
            "clusterSubscribeRate": {},
            "properties": {"standalone": "standalone"},
        }
    ) == {
        "replication_clusters": ["large", "far"],
        "allowed_clusters": ["large"],
        "topicDispatchRate": {"large": rate, "far": rate},
        "clusterSubscribeRate": {},
        "properties": {"standalone": "standalone"},
    }
    assert renamed({"adminRoles": [], "allowedClusters": ["standalone"]}) == {
        "adminRoles": [],
        "allowedClusters": ["large"],
    }
    assert renamed({"replicationClusters": None}) == {"replicationClusters": None}


def test_what_does_not_change_keeps_its_bytes() -> None:
    for value in (b'{ "a" : 1 }', b"", b"[1]"):
        assert NAMES.document("/path", value) == value
    same = ClusterNames("standalone", "standalone")
    assert same.document("/path", b"no JSON") == b"no JSON"


def test_what_is_no_json_is_an_error_with_its_path() -> None:
    with pytest.raises(CorruptDataError, match="/path: expected JSON"):
        NAMES.document("/path", b"{")


def test_ledgers_get_the_new_name() -> None:
    assert NAMES.labels({"pulsar/cluster": b"standalone", "a": b"b"}) == {
        "pulsar/cluster": b"large",
        "a": b"b",
    }
    assert NAMES.labels({}) == {"pulsar/cluster": b"large"}
