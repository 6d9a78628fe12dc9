"""`pulsar-py client produce|consume|read` against a broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.client.command import client

DEFINITION = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
FLAGS = {
    "produce": "-m --messages -f --files -n --num-produce -r --rate -db --disable-batching -c "
    "--chunking -s --separator -p --properties -k --key -kvk -kvkf -vs --value-schema -ks "
    "--key-schema -kvet -ekn -ekv -dr --disable-replication",
    "consume": "-s --subscription-name -t --subscription-type -m --subscription-mode -p "
    "--subscription-position -n --num-messages --hex --hide-content -r --rate --regex -q "
    "--queue-size -mc -ac -ekv -st --schema-type -pm -rs",
    "read": "-m --start-message-id -i --start-message-id-inclusive -n --hex --hide-content -r -q "
    "-mc -ac -ekv -st -pm",
}
"""Of pulsar-client, by its documentation."""


@pytest.fixture(autouse=True)
def _here(session_pulsar_broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSAR_PY_SERVICE_URL", session_pulsar_broker.service_url)
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", "/none")
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(client, list(arguments))


@pytest.mark.parametrize("word", FLAGS)
def test_it_has_the_flags_of_pulsar_client(word: str) -> None:
    ours = {name for each in client.commands[word].params for name in each.opts}
    assert set(FLAGS[word].split()) <= ours
    theirs = {"--url", "--proxy-url", "--proxy-protocol", "--auth-plugin", "--auth-params",
              "--listener-name", "--tlsTrustCertsFilePath", "-ml", "--memory-limit"}  # fmt: skip
    assert theirs <= {name for each in client.params for name in each.opts}


def test_what_is_produced_is_consumed_and_read() -> None:
    done = run("produce", "cli-a", "-m", "hello,world", "-k", "k", "-p", "a=b,c=d", "-n", "2")
    assert done.output == "4 messages successfully produced\n"
    done = run("consume", "cli-a", "-s", "s", "-p", "Earliest", "-n", "2", "-mp")
    lines = done.output.splitlines()
    assert lines[0] == lines[2] == "----- got message -----"
    assert lines[1].startswith("publishTime:[")
    assert ", key:[k], properties:[a=b,c=d], content:hello, event-time:1970-01-01" in lines[1]
    assert lines[4] == "2 messages successfully consumed"
    rest = run("consume", "cli-a", "-s", "s", "-n", "2", "--hex")
    assert "content:68656c6c6f" in rest.output  # the first two were acknowledged
    done = run("read", "cli-a", "-m", "earliest", "-n", "4", "-o", "json")
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["content"] for row in rows] == ["hello", "world"] * 2
    hidden = run("read", "cli-a", "-m", "earliest", "-n", "1", "--hide-content")
    assert hidden.output == "1 messages successfully read\n"
    ledger_and_entry = rows[2]["messageId"].rsplit(":", 1)[0]
    again = run("read", "cli-a", "-m", ledger_and_entry, "-i", "-n", "1", "-o", "json")
    assert json.loads(again.output)["messageId"] == rows[2]["messageId"]


def test_contents_of_files_and_by_schema(tmp_path: Path) -> None:
    file = tmp_path / "content"
    file.write_text('{"a": 7}')
    done = run("produce", "cli-b", "-f", str(file), "-vs", f"json:{DEFINITION}")
    assert done.exit_code == 0, done.output
    done = run("read", "cli-b", "-m", "earliest", "-st", "auto_consume")
    assert "content:{a=7}" in done.output
    done = run("produce", "cli-c", "-m", "v", "-vs", "string", "-kvk", "k", "-kvet", "separated")
    assert done.exit_code == 0, done.output
    done = run("read", "cli-c", "-m", "earliest", "-st", "auto_consume", "-o", "json")
    assert json.loads(done.output)["content"] == {"key": "k", "value": "v"}


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("produce t", 2, "--messages or --files"),
        ("produce t -m x -p a", 2, "KEY=VALUE"),
        ("produce t -m x -vs nosuch", 2, "expected bytes, string"),
        ("produce t -f /no/such/file", 1, "/no/such/file"),
        ("consume t", 2, "--subscription-name"),
        ("read t -m x", 2, "no message id"),
        ("read x:// -m earliest", 1, "invalid topic name"),
        ("--proxy-url x read t", 1, "a proxy by SNI is not supported"),
        ("--auth-plugin token --auth-params token:x read t", 1, "every user of this machine"),
    ],
)
def test_what_is_wrong_is_said(line: str, status: int, said: str) -> None:
    done = run(*line.split())
    assert done.exit_code == status
    assert said in done.output


def test_options_of_the_group_reach_the_client(session_pulsar_broker: Any) -> None:
    url = session_pulsar_broker.service_url
    done = run("--url", url, "-ml", "10M", "produce", "cli-d", "-m", "x", "-r", "1000")
    assert done.output == "1 messages successfully produced\n"


def test_it_is_a_group() -> None:
    assert isinstance(client, click.Group)
    assert list(client.commands) == ["produce", "consume", "read"]
