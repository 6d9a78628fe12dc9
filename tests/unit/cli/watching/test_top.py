"""`pulsar-py top`: its options."""

from __future__ import annotations

from click.testing import CliRunner

from pulsar_py.cli.commands import main


def test_what_cannot_be_done_is_told() -> None:
    result = CliRunner().invoke(main, ["top", "--admin-url", "http://localhost:1", "--once"])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert "localhost:1" in result.output
    assert CliRunner().invoke(main, ["top", "users"]).exit_code == 2
