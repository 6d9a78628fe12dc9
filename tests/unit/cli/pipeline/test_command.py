"""The commands of `pipeline` and their options; tests/spark has what they do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main
from pulsar_py.client import Client
from pulsar_py.testing.broker_thread import BrokerThread

COMMANDS = ("export", "copy", "replay", "backfill", "aggregate", "compact", "lag", "report")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["pipeline", *arguments])
    return result.exit_code, result.output


def test_help_names_the_commands() -> None:
    code, output = run("--help")
    assert code == 0
    assert all(name in output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each(name: str) -> None:
    code, output = run(name, "--help")
    assert code == 0
    assert "--service-url" in output


def test_help_loads_neither_spark_nor_arrow() -> None:
    program = (
        "import sys; from pulsar_py.cli.commands import main\n"
        "main(['pipeline', 'export', '--help'], standalone_mode=False)\n"
        "print([each for each in ('pyspark', 'pyarrow', 'rich') if each in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.splitlines()[-1] == b"[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["export", "--topic", "t"],
        ["export", "--to", "parquet:/a"],
        ["copy", "--from", "t"],
        ["backfill", "--from", "parquet:/a", "--topic", "t"],
        ["report", "--topic", "t"],
        ["copy", "--from", "t", "--to", "u", "--guarantee", "maybe"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "Usage" in output


def test_the_line_for_spark_submit() -> None:
    arguments = ["export", "--topic", "t", "--to", "parquet:/a", "--conf", "x=y"]
    code, output = run(*arguments, "--print-submit", "--master", "spark://h:7077")
    assert code == 0
    line = output.strip().splitlines()[-1]
    assert line.startswith("spark-submit --master spark://h:7077 --conf x=y /")
    assert line.endswith("cli/pipeline/command.py export --topic t --to parquet:/a")


def words_of(output: str) -> str:
    return " ".join(output.split())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("export", "[default: _checkpoint in the table's directory]"),
        (
            "aggregate",
            "Without it the command is a batch, which reads all messages that exist each time.",
        ),
        ("copy", "for ever, which needs --checkpoint"),
        ("copy", "exclusive: --since 2026-01-30 --until 2026-01-31 is one day."),
        ("replay", "exclusive: --since 2026-01-30 --until 2026-01-31 is one day."),
        ("lag", "Backlogs and rates count entries"),
    ],
)
def test_help_says_what_is_easily_mistaken(name: str, text: str) -> None:
    assert text in words_of(run(name, "--help")[1])


@pytest.mark.parametrize("output", ["text", "json"])
async def test_where_there_are_no_subscriptions_a_sentence_says_so(
    pulsar_broker: BrokerThread, output: str
) -> None:
    async with Client(pulsar_broker.service_url) as client:
        await (await client.create_producer("nobody-reads")).close()
    url = pulsar_broker.web_service_url
    arguments = ["pipeline", "lag", "--admin-url", url, "--topic", "nobody-reads"]
    result = CliRunner().invoke(main, [*arguments, "--format", output])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "there are no subscriptions" in result.stderr


async def test_lags_as_json_and_as_a_table(pulsar_broker: BrokerThread, tmp_path: Path) -> None:
    async with Client(pulsar_broker.service_url) as client:
        await (await client.subscribe("slow-topic", "slow")).close()
        async with await client.create_producer("slow-topic") as producer:
            await producer.send(b"x")
    url, pulsar = pulsar_broker.web_service_url, pulsar_broker.service_url
    log = tmp_path / "lags"
    code, output = run(
        "lag", "--admin-url", url, "--service-url", pulsar, "--format", "json", "--to", str(log)
    )
    assert code == 0
    assert json.loads(output)["backlogEntries"] == 1
    assert log.read_text() == output
    code, output = run("lag", "--admin-url", url, "--service-url", pulsar, "--topic", "slow-topic")
    assert code == 0
    assert "slow" in output
    long = "a-topic-with-a-name-that-is-too-long-for-eighty-columns-beside-numbers"
    async with Client(pulsar_broker.service_url) as client:
        await (await client.subscribe(long, "and-so-is-its-subscription")).close()
    for environ in ({"COLUMNS": "80"}, {"COLUMNS": "80", "FORCE_COLOR": "1"}):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environ.items():
                patch.setenv(name, value)
            code, output = run("lag", "--admin-url", url, "--service-url", pulsar, "--topic", long)
        assert code == 0
        assert f"public/default/{long}" in output, "nothing is cut off"
        assert "and-so-is-its-subscription" in output


async def test_the_admin_url_alone_says_whose_ages_are_read(
    pulsar_broker: BrokerThread, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(pulsar_broker.service_url) as client:
        for name in ("a", "b"):
            await (await client.subscribe("aged", name)).close()
        async with await client.create_producer("aged") as producer:
            await producer.send(b"x")
    url = pulsar_broker.web_service_url
    code, output = run("lag", "--admin-url", url, "--topic", "aged", "--format", "json")
    assert code == 0
    assert [json.loads(line)["ageSeconds"] is None for line in output.splitlines()] == [False] * 2
    assert not [line for line in caplog.messages if "localhost:6650" in line]


def test_nobody_answers() -> None:
    code, _ = run("lag", "--admin-url", "http://127.0.0.1:1")
    assert code == 1


@pytest.mark.parametrize(
    ("missing", "command", "extras"),
    [
        (["pyarrow"], "lag --topic t", "spark"),
        (["pyspark"], "copy --from t --to u", "spark"),
        (["pyarrow", "pyspark", "deltalake"], "export --topic t --to delta:/no", "spark,lake"),
    ],
)
def test_packages_that_are_not_installed_are_named_with_their_extras(
    missing: list[str], command: str, extras: str
) -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
        "from pulsar_py.cli.commands import main\n"
        f"main(['pipeline', *{command.split()!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"Error: {command.partition(' ')[0]} needs {' and '.join(missing)}, not installed here: "
        f"pip install 'pulsar_py[{extras}]', in a checkout pip install '.[{extras}]'\n"
    )
