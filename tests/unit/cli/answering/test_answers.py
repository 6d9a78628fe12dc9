"""What commands answer for programs: each has `-o json`, and prints one object a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.admin.absent import ABSENT
from pulsar_py.cli.answering.answers import answer
from pulsar_py.cli.commands import main
from pulsar_py.testing import BrokerThread

WITHOUT = {
    ("standalone",): "a server, whose line is JSON by --ready json",
    ("broker",): "a server, whose line is JSON by --ready json",
    ("completion",): "prints a script",
    ("perf", "transaction"): "is not here, and only says so",
}
"""Commands that have no answer, with the reason."""
OTHERWISE = {
    ("tokens", "create-secret-key"): "-o and --output name the file, as in Pulsar's tool",
    ("perf", "produce"): "-o is also the number of messages under way, as in Pulsar's tool",
    ("perf", "latency"): "as produce",
}
"""Commands of which a tool of Pulsar's has `-o`: the form is --format, whatever -o means."""


def leaves(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, *path, name)


ALL = dict(leaves(main))
HAVING = [each for each in ALL if each not in WITHOUT and not {*each[1:2]} & ABSENT.keys()]
"""Those that have one; groups without a place here only say so."""


@pytest.mark.parametrize("path", HAVING)
def test_every_command_has_the_same_option(path: tuple[str, ...]) -> None:
    found = [each for each in ALL[path].params if "--format" in each.opts]
    assert len(found) == 1, "one option, by one name"
    (option,) = found
    assert isinstance(option.type, click.Choice)
    assert "json" in option.type.choices
    if path not in OTHERWISE:
        assert option.opts == ["-o", "--output", "--format"]


def test_what_has_no_answer_has_a_place() -> None:
    assert not (WITHOUT.keys() | OTHERWISE.keys()) - ALL.keys()


def test_an_answer_is_a_text_or_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    answer("text", {"a": 1}, "done")
    answer("text", {"a": 1})
    answer("json", {"a": "ü"}, "done")
    assert capsys.readouterr().out == 'done\n{"a": "ü"}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", str(tmp_path / "contexts.json"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


def told(*words: str, code: int = 0) -> list[dict[str, Any]]:
    done = run(*words)
    assert done.exit_code == code, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [name for each in found for name in each if "_" in name], "names are in camelCase"
    return found


def test_contexts(home: Path) -> None:
    del home
    (added,) = told("context", "add", "a", "--admin-url", "http://a:1", "-o", "json")
    assert added == {
        "name": "a",
        "current": True,
        "adminUrl": "http://a:1",
        "serviceUrl": None,
        "authPlugin": None,
    }
    (second,) = told("context", "add", "b", "-o", "json")
    assert (second["name"], second["current"]) == ("b", False)
    assert told("context", "list", "-o", "json") == [added, second]
    assert told("context", "use", "b", "-o", "json") == [second | {"current": True}]
    assert told("context", "remove", "a", "--yes", "-o", "json") == [added | {"current": False}]
    assert run("context", "use", "b").stdout == ""


def test_keys_and_tokens(home: Path) -> None:
    (pair,) = told(
        *("tokens", "create-key-pair", "-a", "ES256", "--output-private-key", "private"),
        *("--output-public-key", "public", "-o", "json"),
    )
    assert pair == {"algorithm": "ES256", "privateKey": "private", "publicKey": "public"}
    (made,) = told("tokens", "create", "-s", "me", "-pk", "private", "-o", "json")
    (found,) = told("tokens", "show", made["token"], "-o", "json")
    assert found == {"headers": {"alg": "ES256", "typ": "JWT"}, "claims": {"sub": "me"}}
    (found,) = told("tokens", "validate", made["token"], "-pk", "public", "-o", "json")
    assert found == {"claims": {"sub": "me"}}
    (key,) = told("tokens", "create-secret-key", "--format", "json")
    assert key["algorithm"] == "HS256"
    (made,) = told("tokens", "create", "-s", "me", "-sk", f"data:;base64,{key['base64']}", "-o",
                   "json")  # fmt: skip
    (key,) = told("tokens", "create-secret-key", "-o", "key", "--format", "json")
    assert key == {"algorithm": "HS256", "file": "key"}
    assert (home / "key").stat().st_size == 32


def test_a_secured_broker(home: Path) -> None:
    (made,) = told("secure", "init", "-o", "json")
    assert made["directory"] == str(home / "secure")
    assert made["operator"] == "operator"
    assert {"ca.pem", "client.conf", "operator.jwt"} <= set(made["files"])


def test_a_running_broker(home: Path) -> None:
    with BrokerThread(data_dir=home / "data") as broker:
        at = ("--admin-url", broker.web_service_url, "-o", "json")
        service = ("--service-url", broker.service_url)
        admin = ("admin", "--admin-url", broker.web_service_url, "-o", "json")
        assert run(*admin, "topics", "create", "t").stdout == "null\n"
        assert run(*admin, "topics", "create-subscription", "-s", "s", "t").stdout == "null\n"
        (found,) = told(*admin, "topics", "skip", "t", "-s", "s", "-n", "3", "--dry-run")
        assert (found["method"], found["body"]) == ("POST", None)
        assert found["lost"].startswith("the place of subscription s")
        (found,) = told("subscription", "pause", "t", "s", *at)
        assert found == {"topic": "t", "subscription": "s", "dispatch": "paused"}
        (found,) = told("doctor", "s", *at, code=1)
        assert (found["subscription"], found["reasons"][0]["code"]) == ("s", "PAUSED")
        (found,) = told("subscription", "resume", "t", "s", *at)
        assert found["dispatch"] == "running"
        (found,) = told("compact-topic", "-t", "t", *at)
        assert found == {"topic": "t", "outcome": "compacted"}
        (found,) = told("support-bundle", "bundle.tar.gz", *at)
        assert (found["file"], found["files"] > 10) == ("bundle.tar.gz", True)
        lines = told("perf", "produce", "t", "-m", "20", "-r", "0", "-o", "json", *service)
        assert (lines[-1]["kind"], lines[-1]["messages"]) == ("all", 20)
        assert told("perf", "produce", "t", "-m", "20", "-o", "5", "--format", "json", *service)
        (picture,) = told("top", "--once", *at)
        assert picture["rows"][0].keys() >= {"name", "messagesIn", "backlog"}
        (made,) = told("storage", "backup", "b.tar", *at)
        assert (made["backup"], made["cluster"]) == ("b.tar", "standalone")
    (restored,) = told("storage", "restore", "b.tar", "restored", "-o", "json")
    assert {**made, "directory": "restored"} == {**restored, "backup": "b.tar"}
    (total, *_) = told("storage", "stats", "restored", "-o", "json")
    assert total["entryLogBytes"] >= total["garbageBytes"]
    cursors = told("storage", "dump", "restored", "--kind", "cursors", "-o", "json")
    assert [each["markDelete"] for each in cursors if each["kind"] == "cursor"]
    assert told("storage", "recover", "restored", "-o", "json") == [
        {"directory": "restored", "outcome": "sound"}
    ]


def test_a_repair_says_what_is_lost(home: Path) -> None:
    with BrokerThread(data_dir=home / "data") as broker:
        run("client", "--url", broker.service_url, "produce", "t", "-m", "one", "-n", "9")
    (log,) = (home / "data" / "ledgers" / "entries").iterdir()
    log.write_bytes(log.read_bytes()[:-20])
    (found,) = told("storage", "recover", "data", "-o", "json")
    assert (found["directory"], found["outcome"], found["remaining"]) == ("data", "repaired", [])
    assert any("lost" in each for each in found["lost"])
    assert (home / "data" / "recovered-1" / "lost.txt").is_file()


def test_a_pipeline_that_fails_says_so_once_in_each_place(home: Path) -> None:
    del home
    done = run("pipeline", "copy", "--from", "t", "--to", "u", "--conf", "wrong", "-o", "json")
    assert done.exit_code == 2
    (found,) = map(json.loads, done.stdout.splitlines())
    (event,) = map(json.loads, done.stderr.splitlines())
    assert (found["pipeline"], found["outcome"]) == ("copy", "failed")
    assert (event["event"], event["reason"]) == ("failed", found["reason"])


def test_a_reader_that_has_enough_ends_a_command_without_a_word(home: Path) -> None:
    code = "import sys; from pulsar_py.cli.commands import main; main(sys.argv[1:])"
    with BrokerThread(data_dir=home / "data") as broker:
        url = broker.service_url
        run("client", "--url", url, "produce", "t", "-m", "x" * 1000, "-n", "300")
        read = ("client", "--url", url, "read", "t", "-m", "earliest", "-n", "300")
        perf = ("perf", "produce", "t", "-u", url, "-i", "0.1", "-time", "1")
        for words in (read, perf):
            assert _ended(code, words) == (1, b"")
    assert _ended(code, ("storage", "dump", "data")) == (1, b"")


def _ended(code: str, words: tuple[str, ...]) -> tuple[int, bytes]:
    """The exit code and the errors of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], stdout=writer, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr
