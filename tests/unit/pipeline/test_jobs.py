"""What is refused before a session is opened."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.jobs import Job
from pulsar_py.pipeline.settings import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables import Target
from pulsar_py.spark import checks

CLUSTER = Cluster(service_url="pulsar://a")


def test_delta_tables_need_their_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, "pulsar_py.pipeline.delta", raising=False)
    job = Job(work=lambda *_: None, table=Target.parse(f"delta:{tmp_path}"))
    with pytest.raises(ConfigurationError, match=r"pip install 'pulsar_py\[spark,lake\]'"):
        job.check()


def test_topics_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool | str]] = []

    def check_read(options: Mapping[str, str], *, is_streaming: bool) -> None:
        asked.append((options["topic"], is_streaming))

    def check_write(options: Mapping[str, str]) -> None:
        asked.append((options["topic"], options["deliveryGuarantee"]))

    monkeypatch.setattr(checks, "check_read", check_read)
    monkeypatch.setattr(checks, "check_write", check_write)
    Job(
        work=lambda *_: None,
        source=TopicRange(cluster=CLUSTER, topic="from"),
        is_streaming=True,
        target=TopicTarget(cluster=CLUSTER, topic="to"),
    ).check()
    assert asked == [("from", True), ("to", "exactly-once")]
