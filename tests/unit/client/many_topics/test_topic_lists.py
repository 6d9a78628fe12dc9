"""Patterns, lists of topics and their changes, shares of a queue."""

from __future__ import annotations

import re

import pytest

from pulsar_py.client.many_topics.topic_lists import (
    TopicList,
    TopicPattern,
    TopicsChange,
    receiver_queue_size_per_topic,
    topics_change,
)
from pulsar_py.client.shared.enums import RegexSubscriptionMode
from pulsar_py.common.errors import InvalidConfigurationError
from pulsar_py.common.hashing import topics_hash
from pulsar_py.common.names import TopicName

NAMESPACE = "persistent://public/default"
ALL = RegexSubscriptionMode.AllTopics
PERSISTENT = RegexSubscriptionMode.PersistentOnly


@pytest.mark.parametrize(
    ("receiver", "total", "topics", "expected"),
    [(1000, 50_000, 1, 1000), (1000, 50_000, 100, 500), (1000, 10, 100, 1), (7, 50_000, 0, 7)],
)
def test_parts_share_the_queue(receiver: int, total: int, topics: int, expected: int) -> None:
    assert receiver_queue_size_per_topic(receiver, total, topics) == expected


@pytest.mark.parametrize(
    ("pattern", "namespace", "text"),
    [
        ("persistent://public/default/a.*", "public/default", "public/default/a.*"),
        ("my-tenant/ns/a.*", "my-tenant/ns", "my-tenant/ns/a.*"),
        ("a.*", "public/default", "public/default/a.*"),
        ("t/n/a/b|c", "t/n", "t/n/a/b|c"),
    ],
)
def test_a_pattern_names_its_namespace(pattern: str, namespace: str, text: str) -> None:
    parsed = TopicPattern(re.compile(pattern), PERSISTENT)
    assert str(parsed.namespace_name) == namespace
    assert parsed.text == parsed.broker_text == text


@pytest.mark.parametrize("pattern", [".*/default/a", "(", "pub lic/default/a"])
def test_a_pattern_without_a_plain_namespace_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="topic pattern"):
        TopicPattern(pattern, PERSISTENT)


def test_names_are_compared_in_full_without_scheme_and_partition() -> None:
    pattern = TopicPattern("public/default/a.", ALL)
    assert pattern.matches(TopicName.parse("ab"))
    assert pattern.matches(TopicName.parse("non-persistent://public/default/ab"))
    assert pattern.matches(TopicName.parse("ab-partition-3"))
    assert not pattern.matches(TopicName.parse("abc"))
    assert not pattern.matches(TopicName.parse("other/default/ab"))


def test_the_mode_and_the_scheme_choose_the_domain() -> None:
    stored = TopicName.parse("ab")
    fleeting = TopicName.parse("non-persistent://public/default/ab")
    assert not TopicPattern("a.", PERSISTENT).matches(fleeting)
    assert not TopicPattern("a.", RegexSubscriptionMode.NonPersistentOnly).matches(stored)
    scheme = TopicPattern("non-persistent://public/default/a.", PERSISTENT)
    assert scheme.matches(fleeting)
    assert not scheme.matches(stored)


def test_flags_are_ours_to_apply() -> None:
    pattern = TopicPattern(re.compile("public/default/a.", re.IGNORECASE), PERSISTENT)
    assert pattern.matches(TopicName.parse("AB"))
    assert pattern.broker_text == "public/default/.*"


def a_list(pattern: str = "a.*") -> TopicList:
    return TopicList(TopicPattern(pattern, PERSISTENT))


def test_lists_and_updates_say_what_joined_and_left() -> None:
    topics = a_list()
    assert topics.on_listed([f"{NAMESPACE}/a1", f"{NAMESPACE}/b"]) == TopicsChange(
        (f"{NAMESPACE}/a1",)
    )
    assert topics.on_updated([f"{NAMESPACE}/a2"], [f"{NAMESPACE}/a1"]) == TopicsChange(
        (f"{NAMESPACE}/a2",), (f"{NAMESPACE}/a1",)
    )
    assert not topics.on_listed([f"{NAMESPACE}/a2"])
    assert topics.topics == {f"{NAMESPACE}/a2"}


def test_partitions_are_one_topic_until_the_last_is_gone() -> None:
    topics = a_list()
    partitions = [f"{NAMESPACE}/a-partition-{index}" for index in range(2)]
    assert topics.on_listed(partitions).added == (f"{NAMESPACE}/a",)
    assert not topics.on_updated([], partitions[:1])
    assert topics.on_updated([], partitions[1:]).removed == (f"{NAMESPACE}/a",)


def test_the_hash_is_that_of_what_the_broker_lists() -> None:
    topics = a_list()
    partitions = [f"{NAMESPACE}/a-partition-{index}" for index in range(2)]
    topics.on_listed([*partitions, f"{NAMESPACE}/b"])
    assert topics.hash == topics_hash(partitions)


def test_system_topics_are_left_out() -> None:
    topics = a_list(".*")
    assert not topics.on_listed([f"{NAMESPACE}/__change_events"])


def test_a_change_is_sorted_and_empty_when_nothing_changed() -> None:
    assert topics_change({"a", "b"}, {"d", "c", "b"}) == TopicsChange(("c", "d"), ("a",))
    assert not topics_change({"a"}, {"a"})
