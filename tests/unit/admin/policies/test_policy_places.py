"""Where policies stand in a document."""

from __future__ import annotations

from pulsar_py.admin.policies.policy_places import DelayedDelivery, OfSubscription, OneKey
from pulsar_py.metadata.documents import TopicPolicies

KNOWN = {"maxMessageSize": 5}


def test_one_key_is_set_and_removed_alone() -> None:
    place = OneKey(TopicPolicies.message_ttl_seconds)
    stored = place.put(KNOWN, 7)
    assert stored == {"maxMessageSize": 5, "messageTTLInSeconds": 7}
    assert place.get(stored) == 7
    assert place.put(stored, None) == KNOWN


def test_delays_have_three_keys() -> None:
    place = DelayedDelivery()
    value = {"tickTime": 5, "active": False, "maxDeliveryDelayInMillis": 0}
    stored = place.put(KNOWN, value)
    assert place.get(stored) == value
    assert TopicPolicies(stored).is_delayed_delivery_enabled is False
    assert place.put(stored, None) == KNOWN
    assert place.get(KNOWN) is None


def test_each_subscription_has_a_rate_of_its_own() -> None:
    stored = OfSubscription("a").put(OfSubscription("b").put(KNOWN, {"x": 1}), {"x": 2})
    assert OfSubscription("a").get(stored) == {"x": 2}
    assert OfSubscription("b").get(stored) == {"x": 1}
    assert OfSubscription("c").get(stored) is None
    left = OfSubscription("a").put(stored, None)
    assert OfSubscription("b").put(left, None) == KNOWN
