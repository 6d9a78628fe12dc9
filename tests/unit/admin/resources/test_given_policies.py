"""Policies that a namespace is created with."""

from __future__ import annotations

import pytest

from pulsar_py.admin.http_messages import UnreadableBodyError
from pulsar_py.admin.resources.given_policies import given_policies
from tests.unit.admin.resources.conftest import Admin

NAMESPACE = "/admin/v2/namespaces/public/new"


def test_texts_count_as_what_they_say() -> None:
    given = {
        "message_ttl_in_seconds": "9",
        "encryption_required": "false",
        "deduplicationEnabled": "TRUE",
        "max_producers_per_topic": 2.5,
        "properties": {"a": 5},
        "schema_compatibility_strategy": "SIDEWAYS",
        "unheard_of": 1,
        "retention_policies": None,
    }
    assert given_policies(given).json == {
        "message_ttl_in_seconds": 9,
        "encryption_required": False,
        "deduplicationEnabled": True,
        "max_producers_per_topic": 2,
        "properties": {"a": "5"},
        "unheard_of": 1,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth_policies", 5),
        ("auth_policies", {"namespace_auth": 5}),
        ("auth_policies", {"destination_auth": {"t": ["produce"]}}),
        ("entryFilters", {"entryFilterNames": 5}),
        ("offload_policies", "s3"),
        ("retention_policies", 5),
        ("retention_policies", {"retentionTimeInMinutes": "long"}),
        ("message_ttl_in_seconds", "soon"),
        ("message_ttl_in_seconds", 2**31),
        ("compaction_threshold", 2**63),
        ("backlog_quota_map", [1]),
        ("backlog_quota_map", {"destination_storage": {"policy": "shrug"}}),
        ("publishMaxMessageRate", {"standalone": 5}),
        ("subscription_types_enabled", "Shared"),
        ("allowed_clusters", "standalone"),
        ("deduplicationEnabled", "maybe"),
        ("properties", ["a"]),
        ("schema_compatibility_strategy", 5),
    ],
)
def test_another_form_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(UnreadableBodyError, match=name):
        given_policies({name: value})


def test_the_longest_numbers_are_taken() -> None:
    given = {"message_ttl_in_seconds": 2**31 - 1, "compaction_threshold": 2**63 - 1}
    assert given_policies(given).json == given


async def test_a_refused_namespace_is_not_made(admin: Admin) -> None:
    assert await admin.status("PUT", NAMESPACE, {"message_ttl_in_seconds": "soon"}) == 400
    assert await admin.status("GET", NAMESPACE) == 404


async def test_nulls_of_other_clients_are_nothing(admin: Admin) -> None:
    """Go's client for administration sends `null` for each policy that it has none of."""
    nulls = {"namespace_auth": None, "destination_auth": None, "subscription_auth_roles": None}
    body = {"auth_policies": nulls, "bundles": None, "backlog_quota_map": None}
    assert await admin.status("PUT", NAMESPACE, body) == 204
    assert await admin.status("POST", NAMESPACE + "/permissions/me", ["produce"]) == 204
    assert await admin.status("DELETE", NAMESPACE + "/permissions/you") == 204
    assert await admin.get(NAMESPACE + "/permissions") == {"me": ["produce"]}
    subscriptions = NAMESPACE + "/permissions/subscription"
    assert await admin.status("POST", subscriptions + "/s", ["me"]) == 204
    assert await admin.get(subscriptions) == {"s": ["me"]}
    topic = "/admin/v2/persistent/public/new/t"
    await admin.status("PUT", topic)
    assert await admin.status("POST", topic + "/permissions/me", ["consume"]) == 204
    assert await admin.status("DELETE", topic + "/permissions/you") == 204
    assert await admin.get(topic + "/permissions") == {"me": ["consume", "produce"]}
