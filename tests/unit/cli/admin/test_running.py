"""Errors and exit codes of one word, against a server and without one."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.admin_client import subscriptions, topics
from pulsar_py.admin_client.call import Call, Reply
from pulsar_py.admin_client.settings import status_error
from pulsar_py.cli.admin.options import AdminOptions
from pulsar_py.cli.admin.running import error_text, printed, run_word
from pulsar_py.cli.admin.words import Word
from pulsar_py.common.errors import ConnectError

OPTIONS = AdminOptions({"webServiceUrl": "http://127.0.0.1:1"})
LIST = Word("list", "List", "namespace", "", lambda _: topics.topics("public/default"))
CLEAR = Word("clear", "Clear", "topic", "", lambda _: subscriptions.clear_backlog("t", "s"))


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", str(tmp_path / "contexts.json"))
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    monkeypatch.delenv("PULSAR_PY_ADMIN_URL", raising=False)


def test_nobody_there_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word(LIST, SimpleNamespace(), OPTIONS) == 1
    assert "Connection refused" in capsys.readouterr().err


def test_wrong_credentials_are_1(capsys: pytest.CaptureFixture[str]) -> None:
    options = AdminOptions({"authPlugin": "nosuch"})
    assert run_word(LIST, SimpleNamespace(), options) == 1
    assert "authPlugin 'nosuch' is unknown" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "sent"), [("delete", 0), ("clear-backlog", 1)])
def test_force_is_an_answer_only_where_pulsar_admin_means_that_by_it(
    monkeypatch: pytest.MonkeyPatch, name: str, sent: int
) -> None:
    calls = []

    def send(call: Call[Any]) -> Reply:
        calls.append(call)
        return Reply(204, {}, b"", lambda: None)

    terminal = io.StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    word = Word(name, "Do it", "t", "-f/--force:flag", lambda _: topics.delete_topic("t"))
    run_word(word, SimpleNamespace(force=True), OPTIONS, send)
    assert len(calls) == sent


def test_a_word_that_waits_shows_that_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: Any) -> Any:
        yield 0.001
        yield 0.001
        return "done"

    word = Word("compaction-status", "Look", "", "", run)
    assert run_word(word, SimpleNamespace(), OPTIONS, never) == 0
    assert capsys.readouterr() == ("done\n", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run_word(word, SimpleNamespace(), OPTIONS, never) == 0
    printed_ = capsys.readouterr()
    assert printed_.out == "done\n"
    assert "compaction-status" in printed_.err
    assert "2/?" in printed_.err


def never(_: Call[Any]) -> Reply:
    raise AssertionError


def test_what_the_broker_refuses_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_: Call[Any]) -> Reply:
        raise status_error("GET /x", 404, "Topic not found")

    assert run_word(LIST, SimpleNamespace(), OPTIONS, refuse) == 1
    captured = capsys.readouterr()
    assert captured.err == "Topic not found\n\nReason: Topic not found\n"
    assert not captured.out


def test_errors_as_pulsar_admin_prints_them_and_for_people() -> None:
    error = status_error("GET /x", 500, "HTTP status 500")
    assert error_text(error, is_terminal=False) == (
        "HTTP 500 Internal Server Error\n\nReason: HTTP 500 Internal Server Error\n"
    )
    refused = status_error("GET /x", 409, "exists already")
    assert error_text(refused, is_terminal=True) == "Error: exists already (HTTP status 409)\n"
    assert error_text(ConnectError("no"), is_terminal=True) == "Error: no\n"


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1), ("n\n", 1), ("", 1)])
def test_at_a_terminal_it_asks(monkeypatch: pytest.MonkeyPatch, answer: str, status: int) -> None:
    calls = []

    def send(call: Call[Any]) -> Reply:
        calls.append(call)
        return Reply(204, {}, b"", lambda: None)

    terminal = io.StringIO(answer)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert run_word(CLEAR, SimpleNamespace(), OPTIONS, send) == status
    assert len(calls) == 1 - status
    confirmed = AdminOptions({}, is_confirmed=True)
    assert run_word(CLEAR, SimpleNamespace(), confirmed, send) == 0


def test_a_terminal_gets_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    word = Word("w", "Do it", "", "", lambda _: topics.properties("t"))
    run_word(word, SimpleNamespace(), OPTIONS, lambda _: Reply(200, {}, b"", lambda: {"a": "b"}))
    assert terminal.getvalue() == "a  b\n"


def test_a_call_without_an_answer_may_say_something() -> None:
    word = Word("compact", "Compact", "topic", "", lambda _: topics.compact("t"), says="asked {}")
    assert printed(word, SimpleNamespace(topic="t"), None, "text") == "asked t\n"
    assert printed(CLEAR, SimpleNamespace(topic="t"), None, "text") == ""
    for each in (word, CLEAR):
        assert printed(each, SimpleNamespace(topic="t"), None, "json") == "null\n"
