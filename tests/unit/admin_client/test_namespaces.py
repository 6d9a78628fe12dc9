"""Calls about namespaces are those of pulsar-admin."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin_client import namespaces
from pulsar_py.admin_client.call import NO_BODY, Call
from tests.unit.admin_client.recorded_calls import BUNDLE, NAMESPACE, SUBSCRIPTION, was_recorded

CALLS: list[Call[Any]] = [
    namespaces.namespaces("t"),
    namespaces.namespace_policies(NAMESPACE),
    namespaces.topics_of_namespace(NAMESPACE),
    namespaces.topics_of_namespace(NAMESPACE, mode="ALL", system_topics=True),
    namespaces.create_namespace(NAMESPACE),
    namespaces.create_namespace(NAMESPACE, clusters=["c1", "c2"], bundles_count=8),
    namespaces.delete_namespace(NAMESPACE, force=True),
    namespaces.bundles(NAMESPACE),
    namespaces.unload_namespace(NAMESPACE),
    namespaces.unload_namespace(NAMESPACE, BUNDLE, destination="b:8080"),
    namespaces.topic_positions(NAMESPACE, BUNDLE, ["x"]),
    namespaces.clear_backlog(NAMESPACE),
    namespaces.clear_backlog(NAMESPACE, subscription=SUBSCRIPTION),
    namespaces.clear_backlog(NAMESPACE, bundle=BUNDLE),
    namespaces.clear_backlog(NAMESPACE, subscription=SUBSCRIPTION, bundle=BUNDLE),
    namespaces.unsubscribe(NAMESPACE, SUBSCRIPTION),
    namespaces.unsubscribe(NAMESPACE, SUBSCRIPTION, bundle=BUNDLE),
    namespaces.permissions(NAMESPACE),
    namespaces.grant_permission(NAMESPACE, "joe", ["produce", "consume"]),
    namespaces.revoke_permission(NAMESPACE, "joe"),
    namespaces.subscription_permissions(NAMESPACE),
    namespaces.grant_subscription_permission(NAMESPACE, SUBSCRIPTION, ["r1", "r2"]),
    namespaces.revoke_subscription_permission(NAMESPACE, SUBSCRIPTION, "joe"),
    namespaces.property_of(NAMESPACE, "k"),
    namespaces.set_property(NAMESPACE, "k", "v"),
    namespaces.remove_property(NAMESPACE, "k"),
    namespaces.properties(NAMESPACE),
    namespaces.set_properties(NAMESPACE, {"a": "b"}),
    namespaces.clear_properties(NAMESPACE),
    namespaces.set_resource_group(NAMESPACE, "rg"),
    namespaces.set_migrated(NAMESPACE, migrated=True),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_pulsar_admin_sends_the_same(call: Call[Any]) -> None:
    assert was_recorded(call)


def test_bundles_are_split_by_an_algorithm_or_at_positions() -> None:
    call = namespaces.split_bundle(NAMESPACE, BUNDLE, unload=True, algorithm="a", boundaries=[1, 2])
    path = f"/admin/v2/namespaces/t/n/{BUNDLE}/split"
    assert call.path == f"{path}?unload=true&splitAlgorithmName=a"
    assert call.body == [1, 2]
    assert namespaces.split_bundle(NAMESPACE, BUNDLE).body is NO_BODY


def test_namespaces_apart_are_asked_for_by_the_newer_path() -> None:
    call = namespaces.anti_affinity_namespaces("c1", "g1", tenant="t")
    assert call.path == "/admin/v2/namespaces/c1/antiAffinity/g1?tenant=t"


def test_what_clears_or_deletes_says_what_is_lost() -> None:
    assert "backlogs of namespace t/n" in namespaces.clear_backlog(NAMESPACE).destroys
    assert "namespace t/n" in namespaces.delete_namespace(NAMESPACE).destroys
    assert not namespaces.unload_namespace(NAMESPACE).destroys
