from __future__ import annotations

import json

import pytest

from pulsar_py.bookkeeper.placement.isolation import IsolationGroups, isolation_of
from pulsar_py.bookkeeper.placement.rack_map import RackMap
from pulsar_py.ledgers.labels import (
    ENSEMBLE_PLACEMENT_POLICY,
    ISOLATION_POLICY_CLASS,
    bookie_affinity,
)

ALL = ["a", "b", "c", "d", "e"]
RACKS = RackMap(groups={"one": ["a", "b"], "two": ["c"], "other": ["d"]})
DEFAULT = IsolationGroups(("one",))


def allowed(groups: IsolationGroups, wanted: int) -> str:
    return "".join(groups.allowed(ALL, RACKS, wanted=wanted))


def test_primary_groups_come_first_then_secondary_ones_then_bookies_of_no_group() -> None:
    groups = IsolationGroups(["one"], ["two"])
    assert [allowed(groups, wanted) for wanted in (1, 2, 3, 4, 5)] == [
        "ab", "ab", "abc", "abce", "abce",
    ]  # fmt: skip
    assert allowed(IsolationGroups(["unknown"], ["two"]), 1) == "c"


def test_without_a_group_and_with_the_group_of_all_every_bookie_is_allowed() -> None:
    assert allowed(IsolationGroups(), 1) == "abcde"
    assert allowed(IsolationGroups(["*"]), 1) == "abcde"


def test_the_label_of_a_ledger_counts_before_the_default() -> None:
    labels = bookie_affinity(["x", "y"], ["z"])
    assert isolation_of(labels, DEFAULT) == IsolationGroups(("x", "y"), ("z",))
    assert isolation_of(bookie_affinity(["x"]), DEFAULT) == IsolationGroups(("x",))
    assert isolation_of({"application": b"pulsar"}, DEFAULT) == DEFAULT


def test_groups_may_be_a_list_as_well() -> None:
    document = {
        "policyClass": ISOLATION_POLICY_CLASS,
        "properties": {"isolationBookieGroups": ["x", "y"]},
    }
    labels = {ENSEMBLE_PLACEMENT_POLICY: json.dumps(document).encode()}
    assert isolation_of(labels, DEFAULT) == IsolationGroups(("x", "y"))


@pytest.mark.parametrize(
    "value",
    [
        b"{", b"[]", b"{}", b'{"policyClass": "an.Other", "properties": {}}',
        b'{"policyClass": "%s", "properties": 5}' % ISOLATION_POLICY_CLASS.encode(),
        b'{"policyClass": "%s", "properties": {"isolationBookieGroups": 5}}'
        % ISOLATION_POLICY_CLASS.encode(),
    ],
)  # fmt: skip
def test_a_label_that_can_not_be_used_is_passed_over(value: bytes) -> None:
    assert isolation_of({ENSEMBLE_PLACEMENT_POLICY: value}, DEFAULT) == DEFAULT
