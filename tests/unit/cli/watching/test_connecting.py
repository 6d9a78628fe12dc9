"""How commands that watch a cluster reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pulsar_py.cli.watching.connecting import CONNECTION, Connection
from pulsar_py.common.errors import ConfigurationError


def connection(*words: str, **variables: str) -> Connection:
    found: list[Connection] = []

    @click.command()
    @CONNECTION
    def command(**options: Any) -> None:
        found.append(Connection.of(options))

    result = CliRunner(env=variables).invoke(command, words)
    assert result.exit_code == 0, result.output
    return found[0]


def test_nothing_given_is_this_machine() -> None:
    found = connection()
    assert found.service_url == "pulsar://localhost:6650"
    assert found.admin_settings().url == "http://localhost:8080"
    assert found.admin_settings().token is None


def test_variables_are_used_and_options_go_before_them(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("of-file\n")
    variables = {"PULSAR_PY_SERVICE_URL": "pulsar://a:1", "PULSAR_PY_TOKEN": "of-variable"}
    assert connection(**variables).service_url == "pulsar://a:1"
    assert connection(**variables).admin_settings().token == "of-variable"
    found = connection("--service-url", "pulsar://b:2", "--token-file", str(file), **variables)
    assert found.service_url == "pulsar://b:2"
    assert found.admin_settings().token == "of-file"
    assert found.client().service_url == "pulsar://b:2"


def test_tokens_are_not_printed_and_unreadable_files_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="--token-file"):
        connection("--token-file", str(file)).admin_settings()
    assert "secret" not in repr(connection(PULSAR_PY_TOKEN="secret"))
