"""`pulsar-py context add|use|list|remove`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_py.cli.commands import main


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "contexts.json"
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", str(path))
    return path


def context(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["context", *arguments], input=given)


def test_contexts_are_added_used_listed_and_removed(path: Path) -> None:
    assert context("list").output == ""
    assert context("add", "a", "--admin-url", "http://a:1").exit_code == 0
    assert context("add", "b", "--admin-url", "http://b:1", "--service-url", "pulsar://b:2",
                   "--auth-plugin", "token", "--auth-params", "env:T").exit_code == 0  # fmt: skip
    assert context("list").output == "* a  http://a:1\n  b  http://b:1  pulsar://b:2  token\n"
    assert context("use", "b").exit_code == 0
    rows = [json.loads(line) for line in context("list", "-o", "json").output.splitlines()]
    assert [(each["name"], each["current"]) for each in rows] == [("a", False), ("b", True)]
    assert context("remove", "b").exit_code == 0
    assert context("list").output == "  a  http://a:1\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_token_comes_from_standard_input_and_is_not_shown(path: Path) -> None:
    assert context("add", "a", "--token-stdin", given="secret\n").exit_code == 0
    assert "secret" in path.read_text()
    assert "secret" not in context("list").output + context("list", "-o", "json").output
    refused = context("add", "a", "--auth-plugin", "token", "--auth-params", "token:secret")
    assert refused.exit_code == 1
    assert "every user of this machine" in refused.output
    assert context("add", "a", "--token-stdin", given="").exit_code == 1
    assert context("add", "a", "--token-stdin", "--auth-plugin", "tls").exit_code == 2


@pytest.mark.usefixtures("path")
def test_a_name_that_is_not_there_is_refused() -> None:
    for word in ("use", "remove"):
        done = context(word, "nosuch")
        assert done.exit_code == 1
        assert "no context 'nosuch'; there are: none yet" in done.output


def test_options_of_tls_are_kept(path: Path) -> None:
    context("add", "a", "--tls-trust-cert-path", "/ca", "--tls-allow-insecure",
            "--tls-disable-hostname-verification")  # fmt: skip
    assert json.loads(path.read_text())["contexts"]["a"] == {
        "tlsTrustCertsFilePath": "/ca",
        "tlsAllowInsecureConnection": "true",
        "tlsEnableHostnameVerification": "false",
    }


def test_a_file_that_others_may_read_is_refused(path: Path) -> None:
    context("add", "a")
    path.chmod(0o644)
    done = context("list")
    assert done.exit_code == 1
    assert "chmod 600" in done.output
