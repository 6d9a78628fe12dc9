"""The objects of the REST API, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import records
from pulsar_py.admin_client.call import JsonRecord
from pulsar_py.admin_client.records import (
    ClusterData,
    NamespaceIsolationData,
    PersistencePolicies,
    ResetCursorData,
    RetentionPolicies,
)
from tests.unit.admin_client.recorded_calls import recording

RECORDS = [
    each
    for each in vars(records).values()
    if isinstance(each, type) and issubclass(each, JsonRecord) and each is not JsonRecord
]


def fields_of_bodies() -> set[str]:
    """Names of fields in all bodies and answers of the recording."""
    found: set[str] = set()
    left: list[Any] = [call["requests"] for call in recording()["calls"]]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            found |= set(value)
            left += value.values()
        elif isinstance(value, list):
            left += value
    return found


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_what_is_written_is_read_back(kind: type[Any]) -> None:
    required = {name: 1 for name in kind.FIELDS if not hasattr(kind, name)}
    value = kind(**required)
    assert kind.of(value.to_json()) == value


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        (ClusterData, {"peerClusterNames"}),
        (RetentionPolicies, set()),
        (PersistencePolicies, set()),
        (NamespaceIsolationData, set()),
        (ResetCursorData, set()),
    ],
)
def test_fields_have_the_names_that_pulsar_admin_sends(
    kind: type[JsonRecord], left_out: set[str]
) -> None:
    names = {kind.json_name(each) for each in kind.FIELDS}
    assert names - left_out <= fields_of_bodies()
