from __future__ import annotations

import pytest

from pulsar_py.common.errors import NotAllowedError, TopicNotFoundError
from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.server.policies.auto_creation import (
    NameFacts,
    PartitionsAnswer,
    answer_partitions,
    may_create,
)
from tests.unit.server.topics.rig import name_of

ALLOWED = AutoTopicCreation(True, TopicType.NON_PARTITIONED, 1)
REFUSED = AutoTopicCreation(False, TopicType.NON_PARTITIONED, 1)
PARTITIONED = AutoTopicCreation(True, TopicType.PARTITIONED, 4)


def facts(local_name: str, *, exists: bool = False, partitions: int = 0) -> NameFacts:
    return NameFacts(name=name_of(local_name), exists=exists, partitions_count=partitions)


def test_a_missing_topic_is_created_if_wanted_and_allowed() -> None:
    assert may_create(facts("t"), ALLOWED, is_wanted=True)
    assert not may_create(facts("t"), ALLOWED, is_wanted=False)
    assert not may_create(facts("t"), REFUSED, is_wanted=True)
    assert not may_create(facts("t", exists=True), ALLOWED, is_wanted=True)


def test_system_topics_are_always_created() -> None:
    assert may_create(facts("__change_events"), REFUSED, is_wanted=True)


def test_a_partitioned_topics_own_name_is_refused() -> None:
    with pytest.raises(NotAllowedError):
        may_create(facts("t", partitions=2), ALLOWED, is_wanted=True)


def test_partitions_are_created_whatever_the_policy() -> None:
    assert may_create(facts("t-partition-1", partitions=2), REFUSED, is_wanted=False)
    with pytest.raises(TopicNotFoundError):
        may_create(facts("t-partition-2", partitions=2), ALLOWED, is_wanted=True)
    with pytest.raises(NotAllowedError):
        may_create(facts("t-partition-2"), ALLOWED, is_wanted=True)
    assert not may_create(facts("t-partition-2", exists=True), ALLOWED, is_wanted=True)


def answer(known: NameFacts, policy: AutoTopicCreation = ALLOWED, *, auto: bool = True) -> object:
    try:
        return answer_partitions(known, policy, auto_create=auto)
    except TopicNotFoundError:
        return None


def test_how_many_partitions_are_told() -> None:
    assert answer(facts("t", partitions=3), auto=False) == PartitionsAnswer(3)
    assert answer(facts("t", exists=True), auto=False) == PartitionsAnswer(0)
    assert answer(facts("t")) == PartitionsAnswer(0)
    assert answer(facts("t"), auto=False) is None
    assert answer(facts("t"), REFUSED) is None
    assert answer(facts("t"), PARTITIONED) == PartitionsAnswer(4, creates=True)
    assert answer(facts("__change_events"), REFUSED) == PartitionsAnswer(0)


def test_how_many_partitions_a_partition_has() -> None:
    assert answer(facts("t-partition-1", partitions=3), auto=False) == PartitionsAnswer(0)
    assert answer(facts("t-partition-3", partitions=3)) is None
    assert answer(facts("t-partition-0"), auto=False) is None
    assert answer(facts("t-partition-0"), PARTITIONED) == PartitionsAnswer(0)
    assert answer(facts("t-partition-01"), ALLOWED) == PartitionsAnswer(0)
