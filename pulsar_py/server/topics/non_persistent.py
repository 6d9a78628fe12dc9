"""A topic in memory."""

from __future__ import annotations

from pulsar_py.server.topics.topic import Topic


class NonPersistentTopic(Topic):
    """Publish and subscribe without storage."""
