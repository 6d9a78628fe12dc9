"""A topic on a managed ledger."""

from __future__ import annotations

from pulsar_py.server.topics.topic import Topic


class PersistentTopic(Topic):
    """Publish and subscribe on a ManagedLedger."""
