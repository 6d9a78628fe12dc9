"""Options become settings, or errors that name them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from pulsar_py.cli import pipeline as commands
from pulsar_py.cli.pipeline_jobs import (
    JOBS,
    admin_of,
    cluster_of,
    lake_of,
    range_of,
    run,
    streaming_of,
    table_or_topic,
    target_of,
    token_options,
)
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.pipeline.settings import Guarantee
from pulsar_py.pipeline.tables import Target

NEEDED = {
    "export": ["--topic", "t", "--to", "parquet:/a"],
    "copy": ["--from", "t", "--to", "u"],
    "replay": ["--topic", "t", "--from", "-2h", "--to", "now", "--to-topic", "u"],
    "backfill": ["--from", "parquet:/a", "--topic", "t", "--name", "n"],
    "aggregate": [
        "--topic",
        "t",
        "--to",
        "topic:u",
        "--key",
        "k",
        "--window",
        "1m",
        "--agg",
        "count",
    ],
    "compact": ["--topic", "t", "--to", "delta:/a"],
    "report": ["--topic", "t", "--to", "page.html"],
}


def options(name: str, *arguments: str) -> dict[str, Any]:
    """What click makes of a command line."""
    command = commands.pipeline.commands[name]
    return command.make_context(name, [*NEEDED[name], *arguments]).params


def test_each_command_has_its_job() -> None:
    assert JOBS.keys() | {"lag"} == commands.pipeline.commands.keys()


@pytest.mark.parametrize("name", list(NEEDED))
def test_settings_are_made_without_spark(name: str) -> None:
    assert callable(JOBS[name](options(name)))


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


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("export", ["--file-size", "big"], "'big' is not a size"),
        ("export", ["--conf", "x"], "--conf: 'x'"),
        ("copy", ["--continuous"], "--continuous needs --checkpoint"),
        ("replay", ["--from", "now", "--to", "-2h"], "no range"),
        ("aggregate", ["--key", "k"], "name them"),
    ],
)
def test_what_is_refused_before_spark_is_started(
    name: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, options(name, *arguments), []) == 2
    assert text in capsys.readouterr().err


def test_commands_take_no_words_of_their_own() -> None:
    with pytest.raises(click.UsageError):
        options("copy", "more")
