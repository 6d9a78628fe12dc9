"""The table of actions."""

from __future__ import annotations

import pytest

from pulsar_py.server.security.actions import Action, Right, Scope, checked_need


def test_no_two_actions_are_the_same() -> None:
    assert len(Action) == len(Action.__members__)
    for action in Action:
        assert action.description == action.name.lower().replace("_", " ")


def test_who_may_produce_or_consume_may_not_administrate() -> None:
    assert (Action.PRODUCE.scope, Action.PRODUCE.right) == (Scope.TOPIC, Right.PRODUCE)
    assert (Action.CONSUME.scope, Action.CONSUME.right) == (Scope.SUBSCRIPTION, Right.CONSUME)
    writing = [each for each in Action if each.name.startswith(("WRITE", "UPDATE", "DELETE"))]
    assert writing
    assert all(each.right in {Right.TENANT_ADMIN, Right.SUPER_USER} for each in writing)


def test_what_is_the_whole_clusters_is_for_super_users() -> None:
    for action in Action:
        if action.scope is Scope.CLUSTER:
            assert action.right is Right.SUPER_USER, action


def test_a_need_is_an_action_or_says_why_there_is_none() -> None:
    assert checked_need(Action.LOOKUP, "x") is Action.LOOKUP
    assert checked_need("open to all", "x") == "open to all"
    with pytest.raises(ValueError, match="GET /x"):
        checked_need(" ", "GET /x")
