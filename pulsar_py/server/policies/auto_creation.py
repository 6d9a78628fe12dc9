"""Decides whether a missing topic is created on use, and with how many partitions (pure).

Source: BrokerService.isAllowAutoTopicCreation, ServerCnx.handlePartitionMetadataRequest in Pulsar.
"""

from __future__ import annotations

from msgspec import Struct

from pulsar_py.common.errors import NotAllowedError, TopicNotFoundError
from pulsar_py.common.names import TopicName
from pulsar_py.common.policies import AutoTopicCreation, TopicType


class NameFacts(Struct, frozen=True, kw_only=True):
    """Facts about a topic's name.

    Attributes:
        exists: Whether the topic itself is stored or loaded.
        partitions_count: The partitions of the partitioned topic with that name, or of which it is
            a partition; 0 if there is none.
    """

    name: TopicName
    exists: bool
    partitions_count: int


def may_create(facts: NameFacts, policy: AutoTopicCreation, *, is_wanted: bool) -> bool:
    """Whether PRODUCER or SUBSCRIBE may create the topic if it is missing.

    Raises:
        NotAllowedError: It is the name of a partitioned topic as a whole, or of a partition of a
            topic that is not partitioned.
        TopicNotFoundError: It is the name of a partition beyond the last one.
    """
    name = facts.name
    if facts.exists:
        return False
    if not name.is_partition:
        if facts.partitions_count:
            raise NotAllowedError(f"Found partitioned metadata for non-partitioned topic: {name}")
        return is_wanted and (policy.is_allowed or name.is_system)
    if not facts.partitions_count:
        raise NotAllowedError(
            f"Partition metadata not found for the partitioned topic: {name.base}"
        )
    if name.partition_index >= facts.partitions_count:
        raise TopicNotFoundError(f"Topic {name} does not exist")
    return True


class PartitionsAnswer(Struct, frozen=True):
    """The answer to PARTITIONED_METADATA; with `creates` the count has to be stored first."""

    partitions_count: int
    creates: bool = False


def answer_partitions(
    facts: NameFacts, policy: AutoTopicCreation, *, auto_create: bool
) -> PartitionsAnswer:
    """The count of partitions to answer, and whether to create them.

    Raises:
        TopicNotFoundError: The topic is missing and may not be created.
    """
    name = facts.name
    if name.is_partition and facts.partitions_count:
        if name.partition_index >= facts.partitions_count:
            raise TopicNotFoundError(f"Topic {name} does not exist")
        return PartitionsAnswer(0)
    if not name.is_partition and facts.partitions_count:
        return PartitionsAnswer(facts.partitions_count)
    if facts.exists:
        return PartitionsAnswer(0)
    if name.is_system:
        return PartitionsAnswer(0)
    if not (auto_create and policy.is_allowed):
        raise TopicNotFoundError(f"Topic {name} does not exist")
    if policy.topic_type is TopicType.PARTITIONED and not name.is_partition:
        return PartitionsAnswer(policy.default_partitions_count, creates=True)
    return PartitionsAnswer(0)
