"""The table of topics' policies, and what applies."""

from __future__ import annotations

from typing import Any

import pytest

from pulsar_py.admin.policies.topic_policy_table import (
    POLICIES,
    Policy,
    any_true,
    first_defined,
    first_set,
    levels,
)
from pulsar_py.metadata.documents import NamespacePolicies, TopicPolicies
from pulsar_py.server.policies.effective_settings import effective_settings
from tests.unit.admin.resources.conftest import Admin


def test_levels_are_chosen_from_the_topic_on() -> None:
    assert first_set([None, 0, 5]) == 0
    assert first_defined(["UNDEFINED", None, "FULL"]) == "FULL"
    assert any_true([False, None, True])
    assert not any_true([False, None, False])


def test_each_policy_has_a_word_of_its_own() -> None:
    assert len({each.word for each in POLICIES}) == len(POLICIES)


APPLIED = [
    ("maxProducers", "max_producers", 3, 4),
    ("messageTTL", "message_ttl_seconds", 3, 4),
    ("deduplicationEnabled", "is_deduplication_enabled", True, False),
    ("subscriptionExpirationTime", "subscription_expiration_minutes", 3, 4),
]


@pytest.mark.parametrize(("word", "field", "inherited", "own"), APPLIED)
async def test_what_is_shown_as_applied_is_what_topics_are_served_by(
    admin: Admin, word: str, field: str, inherited: Any, own: Any
) -> None:
    policy: Policy = next(each for each in POLICIES if each.word == word)
    assert policy.inherits is not None
    namespace = policy.inherits.put({}, inherited)
    topic = policy.place.put({}, own)
    settings = admin.service.topics.settings.topic
    for of_topic, of_namespace in (({}, {}), ({}, namespace), (topic, namespace)):
        shown = policy.pick(levels(policy, admin.service, of_topic, of_namespace))
        served = effective_settings(
            settings, NamespacePolicies(of_namespace), TopicPolicies(of_topic)
        )
        assert shown == getattr(served, field)
