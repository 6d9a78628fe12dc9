"""Settings of a copy; tests/spark/test_pipelines.py copies."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pulsar_py.pipeline.copy import CopySettings, copy, numbering_settings
from pulsar_py.pipeline.settings.topics import Cluster, Guarantee, TopicRange, TopicTarget


def test_a_copy_is_a_batch_that_arrives_once_unless_told_otherwise() -> None:
    cluster = Cluster(service_url="pulsar://a")
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic="t"),
        target=TopicTarget(cluster=cluster, topic="u"),
    )
    assert settings.streaming is None
    assert settings.target.guarantee is Guarantee.EXACTLY_ONCE


def numbering(*, guarantee: Guarantee = Guarantee.EXACTLY_ONCE, **options: str) -> object:
    cluster = Cluster(service_url="pulsar://a", options=options)
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic="t"),
        target=TopicTarget(cluster=cluster, topic="u", guarantee=guarantee),
    )
    return numbering_settings(settings)


def test_options_that_number_rows_are_known_by_their_meaning() -> None:
    assert numbering(minPartitions="2", undecodable="drop") == numbering(
        undecodable="drop", minpartitions="2"
    )
    assert numbering(minPartitions="2") != numbering(minPartitions="3")
    hashed = {"pulsar.producer.hashingScheme": "Murmur3_32Hash"}
    assert numbering(**hashed) != numbering()
    assert numbering(guarantee=Guarantee.AT_LEAST_ONCE, minPartitions="2") == {}


def test_options_that_let_a_micro_batch_end_may_change() -> None:
    helping = {
        "pollTimeoutMs": "600000",
        "arrowBatchBytes": "1000",
        "maxEntriesPerTrigger": "5",
        "pulsar.client.operationTimeoutMs": "60000",
        "pulsar.producer.sendTimeoutMs": "90000",
        "pulsar.reader.receiverQueueSize": "10",
    }
    assert numbering(**helping) == numbering()


@pytest.mark.parametrize(
    ("guarantee", "name", "expected"),
    [
        (Guarantee.EXACTLY_ONCE, "n", "partitions"),
        (Guarantee.EXACTLY_ONCE, None, "rows"),
        (Guarantee.AT_LEAST_ONCE, "n", "rows"),
    ],
)
def test_rows_that_have_no_numbers_are_copied_by_as_many_tasks_as_there_can_be(
    monkeypatch: pytest.MonkeyPatch, guarantee: Guarantee, name: str | None, expected: str
) -> None:
    done: list[str] = []
    module = "pulsar_py.pipeline.copy"
    monkeypatch.setattr(f"{module}.like", lambda _source, target: target)
    monkeypatch.setattr(f"{module}.read_batch", lambda *_: None)
    monkeypatch.setattr(f"{module}.select", lambda rows, **_: rows)
    monkeypatch.setattr(f"{module}.send", lambda _session, work, _target, _watch: work())
    monkeypatch.setattr(f"{module}.write_batch", lambda *_: done.append("rows"))
    monkeypatch.setattr(f"{module}._copy_partitions", lambda *_: done.append("partitions"))
    cluster = Cluster(service_url="pulsar://a")
    settings = CopySettings(
        source=TopicRange(cluster=cluster, topic="t"),
        target=TopicTarget(cluster=cluster, topic="u", guarantee=guarantee, idempotency_key=name),
    )
    copy(cast("Any", None), settings)
    assert done == [expected]
