"""authorization: who may do what, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.metadata.documents import NamespacePolicies, TenantInfo
from pulsar_py.metadata.memory_store import MemoryMetadataStore
from pulsar_py.metadata.resources import Resources
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authorization import (
    AccessTarget,
    AuthorizationSettings,
    Caller,
    PulsarAuthorization,
    Unrestricted,
    decide,
)

TOPIC = TopicName.parse("persistent://t/n/a")
TENANT = TenantInfo(admin_roles=("boss",))


def policies(mode: str | None = None, **grants: Any) -> NamespacePolicies:
    return NamespacePolicies(auth_policies=grants, subscription_auth_mode=mode)


def may(
    role: str,
    action: Action,
    found: NamespacePolicies | None,
    topic: TopicName = TOPIC,
    subscription: str | None = None,
    **more: bool,
) -> bool:
    target = AccessTarget.of_topic(topic, subscription)
    return decide(role, action, target, TENANT, found, **more)


def test_a_tenants_admin_may_do_all_within_it() -> None:
    assert may("boss", Action.TERMINATE, None)
    assert may("boss", Action.CONSUME, policies("Prefix"), subscription="x")
    assert not decide("boss", Action.TERMINATE, AccessTarget(tenant="t"), None, None)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (Action.PRODUCE, True),
        (Action.LOOKUP, True),
        (Action.CONSUME, False),
        (Action.TERMINATE, False),
        (Action.READ_TOPIC_POLICY, False),
    ],
)
def test_a_grant_gives_its_actions_and_no_more(action: Action, *, expected: bool) -> None:
    assert may("p", action, policies(namespace_auth={"p": ["produce"]})) == expected


def test_a_topics_grant_counts_for_its_partitions_and_not_for_the_namespace() -> None:
    found = policies(destination_auth={str(TOPIC): {"p": ["consume"]}})
    assert may("p", Action.CONSUME, found)
    assert may("p", Action.CONSUME, found, TOPIC.partition(3))
    assert not may("p", Action.CONSUME, found, TopicName.parse("persistent://t/n/b"))
    assert not may("p", Action.GET_TOPICS, found)


def test_a_subscriptions_list_and_the_right_to_consume_are_both_needed() -> None:
    found = policies(
        namespace_auth={"in": ["consume"], "out": ["consume"]},
        subscription_auth_roles={"s": ["in", "alone"]},
    )
    assert may("in", Action.CONSUME, found, subscription="s")
    assert not may("out", Action.CONSUME, found, subscription="s")
    assert may("out", Action.CONSUME, found, subscription="other")
    assert not may("alone", Action.CONSUME, found, subscription="s")


def test_names_of_subscriptions_may_have_to_begin_with_the_role() -> None:
    found = policies("Prefix", namespace_auth={"c": ["consume"]})
    assert may("c", Action.CONSUME, found, subscription="c-1")
    assert not may("c", Action.CONSUME, found, subscription="x-c")


@pytest.mark.parametrize(("role", "expected"), [("a.b", True), ("b.c", True), ("xay", False)])
def test_wildcards_at_an_end(role: str, *, expected: bool) -> None:
    found = policies(namespace_auth={"a.*": ["produce"], "*.c": ["produce"]})
    assert may(role, Action.PRODUCE, found, has_wildcards=True) == expected
    assert not may(role, Action.PRODUCE, found)


def authorization(**settings: Any) -> PulsarAuthorization:
    store = MemoryMetadataStore(SystemClock())
    return PulsarAuthorization(Resources(store, store), lambda: AuthorizationSettings(**settings))


async def test_super_users_may_do_everything_and_nobody_may_do_anything() -> None:
    rules = authorization(super_user_roles={"admin"})
    assert await rules.allows(Caller("admin"), Action.CREATE_TENANT, AccessTarget())
    assert not await rules.allows(Caller("me"), Action.CREATE_TENANT, AccessTarget())
    assert not await rules.allows(Caller(None), Action.CREATE_TENANT, AccessTarget())
    everybody = authorization(super_user_roles={"*"})
    assert await everybody.allows(Caller("me"), Action.CREATE_TENANT, AccessTarget())
    assert not await everybody.allows(Caller(None), Action.CREATE_TENANT, AccessTarget())


async def test_a_proxy_and_whom_it_acts_for_both_need_the_right() -> None:
    rules = authorization(super_user_roles={"admin"}, proxy_roles={"proxy"})
    assert not await rules.allows(Caller("proxy", "admin"), Action.LIST_TENANTS, AccessTarget())
    assert not await rules.allows(Caller("admin", "me"), Action.LIST_TENANTS, AccessTarget())


@pytest.mark.parametrize(
    ("caller", "over_http", "in_binary"),
    [
        (Caller("proxy"), False, False),
        (Caller("proxy", "me"), True, True),
        (Caller("proxy", "proxy"), False, False),
        (Caller("me"), True, True),
        (Caller("me", "me"), True, False),
        (Caller("me", "you"), False, False),
    ],
)
def test_who_may_act_for_whom(caller: Caller, *, over_http: bool, in_binary: bool) -> None:
    rules = authorization(proxy_roles={"proxy"})
    assert rules.is_valid(caller, may_name_itself=True) == over_http
    assert rules.is_valid(caller, may_name_itself=False) == in_binary


async def test_without_authorization_nobody_is_refused() -> None:
    rules = Unrestricted()
    assert rules.is_valid(Caller("me", "you"), may_name_itself=False)
    assert await rules.allows(Caller(None), Action.CREATE_TENANT, AccessTarget())


def test_who_may_produce_sets_no_policies_by_messages() -> None:
    events = TopicName.parse("persistent://t/n/__change_events")
    for name in (events, events.partition(0)):
        granted = {str(events): {"p": ["produce", "consume"]}}
        found = policies(namespace_auth={"p": ["produce", "consume"]}, destination_auth=granted)
        assert not may("p", Action.PRODUCE, found, name)
        assert may("p", Action.CONSUME, found, name)
        assert may("boss", Action.PRODUCE, found, name)


def test_who_may_consume_does_not_touch_what_a_compaction_kept() -> None:
    found = policies(namespace_auth={"c": ["consume"]})
    assert not may("c", Action.UNSUBSCRIBE, found, subscription="__compaction")
    assert not may("c", Action.CONSUME, found, subscription="__compaction")
    assert may("boss", Action.CONSUME, found, subscription="__compaction")
