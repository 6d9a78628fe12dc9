"""Settings of a compaction; tests/spark/test_pipelines.py compacts."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.compact import CompactSettings, compact
from pulsar_py.pipeline.settings.topics import Cluster, TopicRange


def test_a_target_is_needed() -> None:
    source = TopicRange(cluster=Cluster(service_url="pulsar://a"), topic="t")
    session: Any = None  # never touched
    with pytest.raises(ConfigurationError, match="either a table or a topic"):
        compact(session, CompactSettings(source=source))
