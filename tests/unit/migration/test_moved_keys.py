from __future__ import annotations

import pytest

from pulsar_py.common.errors import CorruptDataError
from pulsar_py.migration.cluster_names import ClusterNames
from pulsar_py.migration.moved_keys import (
    ROOTS,
    Existing,
    Fate,
    Home,
    Rewriting,
    fate_of,
    moved,
    root_of,
)
from pulsar_py.migration.renumbering import Renumbering
from tests.migration_parts import TOPIC, keys

LEFT = (
    "/admin/clusters/own",
    "/admin/clusters/own/namespaceIsolationPolicies",
    "/counters/producer-name",
    "/ledgers/INSTANCEID",
    "/loadbalance/bundle-data/t/n/0x0_0x1",
    "/namespace/t/n/0x0_0x1",
    "/pulsar_py/health",
    "/pulsar_py/migration",
)
MOVED = (
    "/admin/clusters/far",
    "/admin/configuration",
    "/admin/local-policies/t/n",
    "/admin/partitioned-topics/t/n/persistent/p",
    "/admin/policies/t",
    "/admin/policies/t/n",
    "/admin/resourcegroups/r",
    "/admin/topic-policies/global/t/n/persistent/p",
    "/admin/topic-policies/local/t/n/persistent/p",
    "/managed-ledgers/t/n/persistent/p",
    "/managed-ledgers/t/n/persistent/p/sub",
    "/schemas/t/n/p",
)


def test_what_says_what_there_is_goes_along_parents_first() -> None:
    given = dict.fromkeys(reversed((*LEFT, *MOVED)), b"x")
    assert tuple(moved(given, "own")) == MOVED


def test_a_name_that_only_begins_alike_is_no_part_of_a_root() -> None:
    assert root_of("/schemas") == "/schemas"
    assert root_of("/schemas-of-others/x") is None


def test_what_clusters_share_goes_into_the_store_that_they_share() -> None:
    homes = {path: ROOTS[root_of(path) or ""] for path in MOVED}
    shared = {path for path, home in homes.items() if home is Home.CONFIGURATION}
    assert shared == {
        "/admin/clusters/far",
        "/admin/partitioned-topics/t/n/persistent/p",
        "/admin/policies/t",
        "/admin/policies/t/n",
        "/admin/resourcegroups/r",
        "/admin/topic-policies/global/t/n/persistent/p",
    }


def test_each_kind_of_value_is_rewritten_in_its_way() -> None:
    rewriting = Rewriting(Renumbering(10), ClusterNames("small", "large"))
    wanted = keys(10, "large")
    for path, value in keys().items():
        assert rewriting.value(path, value) == wanted[path]
    assert rewriting.value("/admin/configuration", b'{"small":1}') == b'{"small":1}'
    policies = b'{"replicationClusters":["small"]}'
    path = "/admin/topic-policies/local/t/n/persistent/p"
    assert rewriting.value(path, policies) == policies.replace(b"small", b"large")


def test_a_value_that_can_not_be_read_is_named() -> None:
    rewriting = Rewriting(Renumbering(10), ClusterNames("small", "large"))
    with pytest.raises(CorruptDataError, match=TOPIC):
        rewriting.value(TOPIC, b"\xff\xff")


@pytest.mark.parametrize(
    ("path", "found", "existing", "fate"),
    [
        ("/admin/policies/t", None, Existing.REFUSE, Fate.CREATE),
        ("/admin/policies/t", b"", Existing.REFUSE, Fate.CREATE),
        ("/admin/policies/t", b"new", Existing.REFUSE, Fate.THERE),
        ("/admin/policies/t", b"old", Existing.REFUSE, Fate.REFUSE),
        ("/admin/policies/t", b"old", Existing.KEEP, Fate.KEEP),
        ("/admin/policies/t", b"old", Existing.REPLACE, Fate.REPLACE),
        (TOPIC, b"old", Existing.REPLACE, Fate.REFUSE),
        ("/schemas/t/n/p", b"old", Existing.KEEP, Fate.REFUSE),
        ("/admin/partitioned-topics/t/n/persistent/p", b"old", Existing.KEEP, Fate.REFUSE),
    ],
)
def test_what_happens_to_a_key_that_is_there(
    path: str, found: bytes | None, existing: Existing, fate: Fate
) -> None:
    assert fate_of(path, b"new", found, existing) is fate


def test_a_partition_that_nobody_opened_is_there_without_a_value() -> None:
    assert fate_of(TOPIC, b"", None, Existing.REFUSE) is Fate.CREATE
    assert fate_of(TOPIC, b"", b"", Existing.REFUSE) is Fate.THERE
    assert fate_of(TOPIC, b"", b"old", Existing.REPLACE) is Fate.REFUSE
