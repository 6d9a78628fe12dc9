"""`RegistrySettings`: the broker's settings for all topics together, and for a topic's defaults."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from pulsar_py.common.policies import AutoTopicCreation, TopicType
from pulsar_py.server.policies.topic_settings import TopicSettings

MAX_PARTITIONS: Final = 10_000
"""The most partitions of a topic if `maxNumPartitionsPerPartitionedTopic` is 0. Each is a key in
the metadata store from the start, and a topic to list, to delete and to measure."""


class RegistrySettings(Struct, frozen=True, kw_only=True):
    """One immutable value for a broker. Limits of 0 are off; comments name those of broker.conf."""

    topic: TopicSettings = field(default_factory=TopicSettings)
    auto_creation: AutoTopicCreation = field(
        default_factory=lambda: AutoTopicCreation(
            is_allowed=True, topic_type=TopicType.NON_PARTITIONED, default_partitions_count=1
        )
    )  # allowAutoTopicCreation, allowAutoTopicCreationType, defaultNumPartitions
    max_topics_per_namespace: int = 0  # maxTopicsPerNamespace
    max_partitions: int = MAX_PARTITIONS  # maxNumPartitionsPerPartitionedTopic; never 0
    load_timeout_seconds: float = 60.0  # topicLoadTimeoutSeconds
    max_concurrent_loads: int = 5000  # maxConcurrentTopicLoadRequest
    serves_persistent: bool = True  # enablePersistentTopics
    serves_non_persistent: bool = True  # enableNonPersistentTopics
    has_topic_policies: bool = True  # topicLevel…, systemTopicEnabled
