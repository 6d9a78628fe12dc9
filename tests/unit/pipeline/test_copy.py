"""What a copy is told; tests/spark/test_pipelines.py copies."""

from __future__ import annotations

from pulsar_py.pipeline.copy import CopySettings
from pulsar_py.pipeline.settings import Cluster, Guarantee, TopicRange, TopicTarget


def test_a_copy_is_a_batch_that_arrives_once_unless_told_otherwise() -> None:
    cluster = Cluster(service_url="pulsar://a")
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic="t"),
        target=TopicTarget(cluster=cluster, topic="u"),
    )
    assert settings.streaming is None
    assert settings.target.guarantee is Guarantee.EXACTLY_ONCE
