"""The commands of `storage` and their options; tests/integration has what they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main


def test_help_names_the_commands() -> None:
    output = CliRunner().invoke(main, ["storage", "--help"]).output
    assert all(name in output for name in ("verify", "dump", "recover", "stats"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "/no/such/directory"],
        ["dump", ".", "--kind", "nothing"],
        ["dump", ".", "--format", "xml"],
        ["dump", ".", "--bytes", "-1"],
        ["recover"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["storage", *arguments]).exit_code == 2


def test_what_is_no_data_directory_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["storage", "verify", str(tmp_path)])
    assert done.exit_code == 2
    assert "is not a data directory" in done.output


def test_help_loads_nothing_of_the_storage() -> None:
    code = (
        "import sys; from pulsar_py.cli.commands import main\n"
        "try: main(['storage', 'verify', '--help'])\n"
        "except SystemExit: pass\n"
        "late = ('rich', 'asyncio', 'pulsar_py.storage', 'pulsar_py.cli.storage.jobs')\n"
        "print([m for m in sys.modules if m in late])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_is_no_backup_is_named(tmp_path: Path) -> None:
    file = tmp_path / "b.tar"
    file.write_text("no archive")
    done = CliRunner().invoke(main, ["storage", "restore", str(file), str(tmp_path / "d")])
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {file}: not a whole backup")
