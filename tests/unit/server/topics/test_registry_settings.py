from __future__ import annotations

from pulsar_py.common.policies import TopicType
from pulsar_py.server.topics.registry_settings import MAX_PARTITIONS, RegistrySettings


def test_by_default_topics_come_into_being_without_partitions() -> None:
    policy = RegistrySettings().auto_creation
    assert policy.is_allowed
    assert policy.topic_type is TopicType.NON_PARTITIONED


def test_settings_are_values() -> None:
    assert RegistrySettings() == RegistrySettings()
    assert RegistrySettings(max_partitions=1) != RegistrySettings()


def test_partitions_are_limited_by_default() -> None:
    assert RegistrySettings().max_partitions == MAX_PARTITIONS
