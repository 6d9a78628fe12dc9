"""Jobs that are refused before a session is opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.jobs import Job
from pulsar_py.pipeline.settings.topics import Cluster, TopicRange, TopicTarget
from pulsar_py.pipeline.tables.places import Target
from pulsar_py.spark import checks

CLUSTER = Cluster(service_url="pulsar://a")


def test_delta_tables_need_their_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, "pulsar_py.pipeline.tables.delta", raising=False)
    job = Job(work=lambda *_: None, table=Target.parse(f"delta:{tmp_path}"))
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[spark,lake\]'"):
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


@pytest.mark.parametrize(
    ("table", "checkpoint", "text"),
    [
        (
            "parquet:{file}/x",
            None,
            "table parquet:.*/file/x: .*/file/x can't be written to: Not a directory",
        ),
        ("parquet:{new}/x", "file:{file}", "checkpoint: .*/file can't be written to: File exists"),
        (
            "delta:/proc/x",
            None,
            "table delta:/proc/x: /proc/x can't be written to: No such file or directory",
        ),
    ],
)
def test_what_is_written_has_to_be_writable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: str, checkpoint: str | None, text: str
) -> None:
    monkeypatch.setattr(checks, "check_read", lambda *_, **__: None)
    (tmp_path / "file").touch()
    places = {"file": tmp_path / "file", "new": tmp_path / "new"}
    job = Job(
        work=lambda *_: None,
        source=TopicRange(cluster=CLUSTER, topic="t"),
        table=Target.parse(table.format(**places)),
        checkpoint=None if checkpoint is None else checkpoint.format(**places),
    )
    with pytest.raises(ConfigurationError, match=text):
        job.check()


def test_checkpoints_elsewhere_are_left_to_hadoop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "check_read", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)
    for place in ("hdfs:/user/me/cp", "s3a://bucket/cp"):
        source = TopicRange(cluster=CLUSTER, topic="t")
        Job(work=lambda *_: None, source=source, checkpoint=place).check()
    assert not [*tmp_path.iterdir()]


def test_what_can_be_written_is_left_without_traces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checks, "check_read", lambda *_, **__: None)
    Job(
        work=lambda *_: None,
        source=TopicRange(cluster=CLUSTER, topic="t"),
        table=Target.parse(f"parquet:{tmp_path}/deep/table"),
    ).check()
    assert not [*(tmp_path / "deep" / "table").iterdir()]


@pytest.mark.parametrize("source", ["a, t", "pattern:persistent://public/default/.*"])
def test_topics_do_not_feed_themselves(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setattr(checks, "check_read", lambda *_, **__: None)
    monkeypatch.setattr(checks, "check_write", lambda *_: None)
    job = Job(
        work=lambda *_: None,
        source=TopicRange(cluster=CLUSTER, topic=source),
        target=TopicTarget(cluster=CLUSTER, topic="persistent://public/default/t"),
    )
    with pytest.raises(ConfigurationError, match="default/t would be read and written"):
        job.check()
    replace(job, may_feed_itself=True).check()
    elsewhere = TopicTarget(cluster=Cluster(service_url="pulsar://b"), topic="t")
    replace(job, target=elsewhere).check()


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_checkpoint_of_other_topics_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prefix: str
) -> None:
    monkeypatch.setattr(checks, "check_read", lambda *_, **__: None)
    job = Job(
        work=lambda *_: None,
        source=TopicRange(cluster=CLUSTER, topic="t"),
        checkpoint=f"{prefix}{tmp_path}",
    )
    job.check()
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    read = {"persistent://public/default/t-partition-1": "3:7", "~v": "1"}
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{json.dumps(read)}")
    job.check()
    other = replace(job, source=TopicRange(cluster=CLUSTER, topic="u"))
    with pytest.raises(
        ConfigurationError, match=f"{tmp_path}: it belongs to .*t-partition-1, .* u;"
    ):
        other.check()
