"""Jobs of commands, what is refused before Spark is started, and what nobody gets to see."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from pulsar_py.cli.pipeline import command as commands
from pulsar_py.cli.pipeline.jobs import JOBS, run
from pulsar_py.common.errors import ConfigurationError
from tests.unit.cli.pipeline.parts import NEEDED, options


def test_each_command_has_its_job() -> None:
    assert JOBS.keys() | {"lag"} == commands.pipeline.commands.keys()


@pytest.mark.parametrize("name", list(NEEDED))
def test_settings_are_made_without_spark(name: str) -> None:
    job = JOBS[name](options(name))
    assert callable(job.work)
    assert job.source or job.target or job.table


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("export", ["--file-size", "big"], "'big' is not a size"),
        ("export", ["--conf", "x"], "--conf: 'x'"),
        ("export", ["--file-size", "0"], "--file-size: 0"),
        ("copy", ["--continuous"], "--continuous needs --checkpoint"),
        ("replay", ["--since", "now", "--until", "-2h"], "not a range"),
        ("aggregate", ["--key", "k"], "rename one"),
        ("aggregate", ["--window", "0"], "--window: 0 s is too short"),
        ("aggregate", ["--slide", "0"], "--slide: 0 s is not between 1 ms and"),
        ("aggregate", ["--slide", "61s"], "--slide: 61 s is not between 1 ms and"),
    ],
)
def test_what_is_refused_before_spark_is_started(
    name: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, options(name, *arguments), []) == 2
    assert text in capsys.readouterr().err


def test_a_backfill_asks_for_its_table_and_for_a_place_of_its_note(tmp_path: Path) -> None:
    table, notes = tmp_path / "table", tmp_path / "notes"

    def check(*arguments: str) -> None:
        given = options("backfill", "--from", f"parquet:{table}", *arguments)
        job = JOBS["backfill"](given)
        assert job.check_more is not None
        job.check_more()

    with pytest.raises(ConfigurationError, match=f"parquet:{table}: there is no table"):
        check()
    table.mkdir()
    (table / "a.parquet").write_bytes(b"")
    (table / "_backfill").write_text("as if nothing could be written")
    with pytest.raises(ConfigurationError, match=rf"{table}/_backfill: .*--notes DIR"):
        check()
    check("--guarantee", "at-least-once")
    check("--notes", str(notes))
    assert notes.is_dir()


@pytest.mark.parametrize("name", ["copy", "replay", "backfill", "compact"])
def test_an_empty_name_is_none(name: str) -> None:
    with pytest.raises(click.BadParameter, match="the name is empty"):
        options(name, "--name", " ")


def test_a_page_without_a_directory_is_refused_before_its_topic_is_read(tmp_path: Path) -> None:
    job = JOBS["report"](options("report", "--to", str(tmp_path / "none" / "page.html")))
    assert job.check_more is not None
    with pytest.raises(
        ConfigurationError, match=f"{tmp_path}/none is not a directory that can be written to"
    ):
        job.check_more()


@pytest.mark.parametrize(
    ("name", "arguments", "is_repeatable"),
    [
        ("copy", [], False),
        ("copy", ["--name", "n"], True),
        ("copy", ["--checkpoint", "/c"], True),
        ("copy", ["--guarantee", "at-least-once"], True),
        ("aggregate", [], False),
        ("compact", [], True),
        ("compact", ["--to", "topic:u"], False),
        ("replay", [], True),
    ],
)
def test_a_batch_without_a_name_is_not_sent_again(
    name: str, arguments: list[str], *, is_repeatable: bool
) -> None:
    assert JOBS[name](options(name, *arguments)).is_repeatable is is_repeatable


def test_commands_take_no_words_of_their_own() -> None:
    with pytest.raises(click.UsageError):
        options("copy", "more")


MARKER = "MARKERabc123"
SECRETS = [
    "--token",
    MARKER,
    "--option",
    f"pulsar.client.authParams=token:{MARKER}",
    "--service-url",
    f"pulsar://user:{MARKER}@127.0.0.1:1",
    "--admin-url",
    f"http://user:{MARKER}@127.0.0.1:1",
    "--option",
    "pulsar.client.operationTimeoutMs=500",
]
FOR_SPARK = ["--conf", f"spark.hadoop.fs.s3a.secret.key={MARKER}"]


@pytest.mark.parametrize("name", list(NEEDED))
def test_the_line_for_spark_submit_shows_no_secret(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*NEEDED[name], *SECRETS, *FOR_SPARK, "--print-submit"]
    assert run(name, options(name, *SECRETS, *FOR_SPARK, "--print-submit"), [name, *arguments]) == 0
    told = capsys.readouterr()
    assert MARKER not in told.out + told.err
    assert "--token env:PULSAR_TOKEN" in told.out
    assert "pulsar.client.authParams=env:PULSAR_CLIENT_AUTHPARAMS" in told.out
    assert "spark.hadoop.fs.s3a.secret.key=***" in told.out
    assert "pulsar://***@127.0.0.1:1" in told.out
    assert "set PULSAR_TOKEN and PULSAR_CLIENT_AUTHPARAMS in the environment" in told.err


def test_a_file_of_lags_that_can_not_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pulsar_py.pipeline.lag.measure_lag", lambda _: [])
    path = tmp_path / "none" / "lags"
    assert run("lag", options("lag", "--to", str(path)), []) == 2
    assert f"--to: {path}: No such file or directory" in capsys.readouterr().err


def test_errors_of_the_administration_show_no_password(capsys: pytest.CaptureFixture[str]) -> None:
    run("lag", options("lag", "--admin-url", "http://somebody:pa%73%73word@127.0.0.1:1"), [])
    told = capsys.readouterr().err
    assert "Error: ConnectError: admin URL" in told
    assert not any(each in told for each in ("somebody", "pa%73%73word", "password"))


@pytest.mark.parametrize("name", [*NEEDED, "lag"])
def test_errors_before_spark_show_no_secret(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [] if name == "lag" else ["--conf", MARKER, "--print-submit"]
    run(name, options(name, *SECRETS, *wrong), [])
    told = capsys.readouterr()
    assert ("Error: " if name == "lag" else '"event": "failed"') in told.err
    assert MARKER not in told.out + told.err


def test_the_line_for_spark_submit_needs_no_variable(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--token", "env:NO_SUCH", "--option", "pulsar.client.authParams=env:NOR_THIS"]
    arguments = ["copy", *NEEDED["copy"], *words, "--print-submit"]
    assert run("copy", options("copy", *words, "--print-submit"), arguments) == 0
    assert "--token env:NO_SUCH" in capsys.readouterr().out
