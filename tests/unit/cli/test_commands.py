"""The commands and their options."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import pulsar_py
from pulsar_py.cli.commands import LATE, broker, main
from pulsar_py.cli.late_commands import LateCommand


def test_help_names_the_commands() -> None:
    done = CliRunner().invoke(main, ["--help"])
    assert done.exit_code == 0
    assert "standalone" in done.output


@pytest.mark.parametrize(
    "option",
    ["--data-dir", "--in-memory", "--host", "--port", "--web-port", "--config", "--set", "--ready"],
)
def test_standalone_takes_the_documented_options(option: str) -> None:
    assert option in CliRunner().invoke(main, ["standalone", "--help"]).output


@pytest.mark.parametrize(
    "arguments",
    [["--port", "70000"], ["--port", "x"], ["--config", "/no/such/file"], ["--no-such-option"]],
)
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["standalone", *arguments]).exit_code == 2


def test_data_in_a_directory_and_in_memory_alone_exclude_one_another() -> None:
    done = CliRunner().invoke(main, ["standalone", "--in-memory", "--data-dir", "d"])
    assert done.exit_code == 2
    assert "--in-memory and --data-dir exclude each other" in done.output


def test_it_says_its_version() -> None:
    done = CliRunner().invoke(main, ["--version"])
    assert done.output == f"pulsar-py, version {pulsar_py.__version__}\n"


def test_help_loads_nothing_of_the_broker() -> None:
    code = (
        "import sys; from pulsar_py.cli.commands import main\n"
        "try: main(['standalone', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('pulsar_py.') and '.cli' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_loads_no_command_that_is_not_asked_for() -> None:
    code = (
        "import sys; from pulsar_py.cli.commands import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.startswith('pulsar_py.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    assert loaded == "['pulsar_py.cli.commands', 'pulsar_py.cli.late_commands']"


@pytest.mark.parametrize("name", LATE)
def test_help_says_of_a_command_what_the_command_says(name: str) -> None:
    home, summary = LATE[name]
    command = LateCommand(name, f"pulsar_py.cli.{home}", summary).load()
    assert command.name == name
    assert command.get_short_help_str(1000) == summary


def test_a_broker_is_drained_by_a_command_that_comes_late() -> None:
    context = click.Context(broker)
    summary = broker.commands["drain"].get_short_help_str(1000)
    command = broker.get_command(context, "drain")
    assert command is not None
    assert not isinstance(command, LateCommand)
    assert command.get_short_help_str(1000) == summary


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_py", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"pulsar-py, version {pulsar_py.__version__}\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_learn_to_complete(shell: str) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert "_PULSAR_PY_COMPLETE" in done.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pulsar-py adm", "admin"),
        ("pulsar-py admin topicP", "topicPolicies"),
        ("pulsar-py admin topics peek", "peek-messages"),
        ("pulsar-py admin topics skip --cou", "--count"),
    ],
)
def test_words_and_options_are_completed(words: str, expected: str) -> None:
    *before, last = words.split()
    found = ShellComplete(main, {}, "pulsar-py", "_X").get_completions(before[1:], last)
    assert [each.value for each in found] == [expected]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """The commands that are no groups, by their words, and the names of their options."""
    found = command.load() if isinstance(command, LateCommand) else command
    if not isinstance(found, click.Group):
        yield " ".join(path), {name for each in found.params for name in each.opts}
        return
    context = click.Context(found)
    for name in found.list_commands(context):
        inner = found.get_command(context, name)
        assert inner is not None
        if (*path, name) != ("admin",):  # whose words all take it, from one place
            yield from leaves(inner, (*path, name))


SHOWS_FIGURES = re.compile(
    r"client |context list|doctor|initialize-cluster|ledger |metadata |perf [cplr]|pipeline lag|"
    r"storage (dump|stats|verify)|tail|top$"
)


def test_what_shows_records_or_figures_gives_them_as_json() -> None:
    found = {name for name, options in leaves(main) if "--output" in options}
    shown = {name for name, _ in leaves(main) if SHOWS_FIGURES.match(name)}
    assert len(shown) > 20
    assert not shown - found
