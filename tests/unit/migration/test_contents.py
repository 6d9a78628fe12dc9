from __future__ import annotations

from dataclasses import replace

import pytest

from pulsar_py.common.errors import MigrationError
from pulsar_py.ledgers import labels
from pulsar_py.migration.contents import own_cluster
from tests.migration_parts import small_contents


async def test_the_fingerprint_changes_with_keys_and_ledgers() -> None:
    contents = await small_contents()
    others = [
        replace(contents, keys={**contents.keys, "/a": b"1"}),
        replace(contents, keys={**contents.keys, "/a": b"2"}),
        replace(contents, ledgers={**contents.ledgers, 99: {}}),
    ]
    found = {each.fingerprint for each in (contents, *others)}
    assert len(found) == 4
    assert (await small_contents()).fingerprint == contents.fingerprint


def test_the_own_cluster_is_that_of_the_ledgers_else_the_only_one_known() -> None:
    keys = {"/admin/clusters/one": b"", "/admin/clusters/global": b"", "/admin/policies/t": b""}
    mine = {1: labels.schema("mine", "s"), 2: {}, 3: labels.schema("mine", "t")}
    assert own_cluster(keys, mine) == "mine"
    assert own_cluster(keys, {1: {}}) == "one"
    for unclear in ({}, {**keys, "/admin/clusters/two/failureDomain": b""}):
        with pytest.raises(MigrationError, match="--source-cluster"):
            own_cluster(unclear, {})
