"""How commands that watch a cluster reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main
from pulsar_py.cli.connecting.connection import Connection
from pulsar_py.cli.watching.connecting import (
    CONNECTION,
    admin_settings_of,
    client_of,
    connection_of,
)
from pulsar_py.common.errors import ConfigurationError


@pytest.fixture(autouse=True)
def no_contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of who runs the tests."""
    for name in ("PULSAR_CLIENT_CONF", "PULSAR_PY_ADMIN_URL", "PULSAR_PY_SERVICE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def reached(*words: str) -> Connection:
    found: list[Connection] = []

    @click.command()
    @CONNECTION
    def command(**options: Any) -> None:
        found.append(connection_of(options))

    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def test_nothing_given_is_this_machine() -> None:
    found = reached()
    assert found.service_url == "pulsar://localhost:6650"
    assert admin_settings_of(found).url == "http://localhost:8080"
    assert client_of(found).service_url == "pulsar://localhost:6650"


def test_options_go_before_variables_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text("brokerServiceUrl=pulsar://a:1\nwebServiceUrl=http://a:2\n")
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(conf))
    monkeypatch.setenv("PULSAR_PY_ADMIN_URL", "http://b:2")
    found = reached("--service-url", "pulsar://c:1")
    assert (found.service_url, found.admin_url) == ("pulsar://c:1", "http://b:2")


def test_a_token_is_read_from_a_file_for_both_clients(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("of-file\n")
    found = reached("--auth-plugin", "token", "--auth-params", f"file://{file}")
    assert admin_settings_of(found).token == "of-file"
    assert client_of(found).context.config.authentication is not None
    file.unlink()
    for make in (admin_settings_of, client_of):
        with pytest.raises(ConfigurationError, match="authParams"):
            make(found)


def test_a_secret_on_the_command_line_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="every user of this machine"):
        reached("--auth-plugin", "token", "--auth-params", "token:abc")


@pytest.mark.parametrize("words", [["top", "--once"], ["doctor", "s"]])
def test_what_is_no_namespace_is_wrong_usage(words: list[str]) -> None:
    done = CliRunner().invoke(main, [*words, "--namespace", "x"])
    assert done.exit_code == 2
    assert "invalid namespace 'x': expected <tenant>/<namespace>" in done.output
