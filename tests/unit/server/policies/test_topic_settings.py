from __future__ import annotations

from pulsar_py.server.policies.topic_settings import TopicSettings


def test_settings_are_values() -> None:
    assert TopicSettings() == TopicSettings()
    assert TopicSettings(max_producers=1) != TopicSettings()
