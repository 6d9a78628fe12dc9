"""Types of statistics."""

from __future__ import annotations

import msgspec
import pytest

from pulsar_py.admin.api.statistics_answers import CompactionAnswer, PartitionedTopicStats

COMPACTION = {
    "lastCompactionRemovedEventCount": 0,
    "lastCompactionSucceedTimestamp": 0,
    "lastCompactionFailedTimestamp": 0,
    "lastCompactionDurationTimeInMills": 0,
}


def test_names_are_those_of_the_answers() -> None:
    assert msgspec.to_builtins(msgspec.convert(COMPACTION, CompactionAnswer)) == COMPACTION


@pytest.mark.parametrize("name", COMPACTION)
def test_a_field_without_a_default_has_to_be_there(name: str) -> None:
    left = {each: value for each, value in COMPACTION.items() if each != name}
    with pytest.raises(msgspec.ValidationError, match=name):
        msgspec.convert(left, CompactionAnswer)


def test_a_partitioned_topic_may_have_no_loaded_partition() -> None:
    answer = {"metadata": {"partitions": 3, "deleted": False}, "partitions": {}}
    assert msgspec.convert(answer, PartitionedTopicStats).msg_in_counter is None
