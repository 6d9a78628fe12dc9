"""Options become settings, or errors that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.cli.pipeline.options import (
    admin_of,
    cluster_of,
    lake_of,
    range_of,
    redactor_of,
    streaming_of,
    table_or_topic,
    target_of,
    token_options,
)
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings import Guarantee
from pulsar_py.pipeline.tables import Target
from tests.unit.cli.pipeline.parts import options


def test_clusters() -> None:
    assert cluster_of(options("export")).admin_url == "http://localhost:8080"
    given = options(
        "export", "--service-url", "pulsar://a", "--token", "s", "--option", "valueMode=raw"
    )
    cluster = cluster_of(given)
    assert cluster.admin_url is None
    assert cluster.options == {"valueMode": "raw", **token_options("s")}
    with pytest.raises(ConfigurationError, match="--admin-url"):
        admin_of(given, cluster)


def test_a_target_in_another_cluster() -> None:
    given = options("copy", "--to-service-url", "pulsar://b", "--token", "s", "--binary-keys")
    target = target_of(given, "u", name="n")
    assert target.cluster.service_url == "pulsar://b"
    assert target.cluster.admin_url is None
    assert target.cluster.options["pulsar.client.authParams"] == "token:s"
    assert target.has_binary_keys
    assert target.guarantee is Guarantee.EXACTLY_ONCE


def test_ranges() -> None:
    source = range_of(options("copy", "--since", "1970-01-01", "--until", "1970-01-02"), "t")
    assert (source.starting_millis, source.ending_millis) == (0, 86_399_999)
    assert range_of(options("export", "--max-bytes", "1k"), "t").max_bytes_per_batch == 1000


@pytest.mark.parametrize("limit", [("--max-bytes", "1k"), ("--max-entries", "5")])
def test_limits_of_micro_batches_name_the_flag_that_is_missing(limit: tuple[str, str]) -> None:
    elsewhere = ("--service-url", "pulsar://elsewhere:6650", *limit)
    with pytest.raises(ConfigurationError, match=f"^{limit[0]} needs --admin-url"):
        range_of(options("export", *elsewhere), "t")
    given = ("--option", "admin.url=http://elsewhere:8080")
    assert range_of(options("export", *elsewhere, *given), "t").cluster.admin_url is None


def test_streams_and_lakes() -> None:
    given = options("export", "--continuous", "--interval", "5s", "--partition-by", "date(d)")
    streaming = streaming_of(given, "/c")
    assert (streaming.checkpoint, streaming.is_continuous, streaming.interval_seconds) == (
        "/c",
        True,
        5.0,
    )
    lake = lake_of(given, Target.parse("parquet:/a"))
    assert lake.partition_by[0].name == "d_date"
    assert lake.file_bytes == 128 << 20


def test_a_table_or_a_topic() -> None:
    assert table_or_topic(options("compact"))["lake"].target == Target.parse("delta:/a")
    assert table_or_topic(options("aggregate"))["topic"].topic == "u"


def test_tokens_come_from_variables_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a token"
    file.write_text("in-file\n")
    monkeypatch.setenv("MINE", "in-variable")
    urls = ("--service-url", "pulsar://a", "--admin-url", "http://a")
    by_variable = options("copy", *urls, "--token", "env:MINE")
    cluster = cluster_of(by_variable)
    assert cluster.options["pulsar.client.authParams"] == "token:in-variable"
    assert admin_of(by_variable, cluster).token == "in-variable"
    by_file = options("copy", *urls, "--token", f"file:{file}")
    cluster = cluster_of(by_file)
    assert cluster.options["pulsar.client.authParams"] == file.as_uri()
    assert admin_of(by_file, cluster).token == "in-file"
    further = options("copy", "--option", "pulsar.client.authParams=env:MINE")
    assert cluster_of(further).options == {"pulsar.client.authParams": "in-variable"}


def test_tokens_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--token: the environment has no variable 'NONE'"):
        cluster_of(options("copy", "--token", "env:NONE"))
    given = options("copy", "--admin-url", "http://a", "--token", f"file:{tmp_path / 'none'}")
    with pytest.raises(ConfigurationError, match=r"--token: file:.*none: No such file"):
        admin_of(given, cluster_of(given))


def test_secrets_are_taken_out_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "in-variable")
    given = options(
        "copy", "--token", "env:MINE", "--to-token", "other", "--conf", "spark.my.password=key"
    )
    redactor = redactor_of(given)
    assert redactor.redacted("in-variable other key") == "*** *** key"  # too short to tell
