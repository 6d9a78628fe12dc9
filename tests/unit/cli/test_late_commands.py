"""Commands that are imported when they are used."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from pulsar_py.cli.late_commands import LateCommand, LateGroup

_HERE = "tests.unit.cli.test_late_commands"


@click.command()
@click.option("--times", default=1)
def speak(times: int) -> None:
    """Say a word."""
    click.echo(" ".join(["word"] * times))


@pytest.fixture
def group() -> LateGroup:
    made = LateGroup("tool")
    made.add_command(click.Command("here", short_help="Is there."))
    made.add_late("speak", f"{_HERE}:speak", "Say a word.")
    made.add_late("missing", "no_such_module:command", "Can't be imported.")
    return made


def test_help_lists_commands_without_importing_them(group: LateGroup) -> None:
    done = CliRunner().invoke(group, ["--help"])
    assert done.exit_code == 0
    lines = [line.split(maxsplit=1) for line in done.output.splitlines()[-3:]]
    assert lines == [
        ["here", "Is there."],
        ["missing", "Can't be imported."],
        ["speak", "Say a word."],
    ]
    assert isinstance(group.commands["speak"], LateCommand)


def test_a_command_comes_when_it_is_used(group: LateGroup) -> None:
    done = CliRunner().invoke(group, ["speak", "--times", "2"])
    assert done.output == "word word\n"
    assert group.commands["speak"] is speak


def test_a_command_that_is_unknown_brings_those_of_like_names(group: LateGroup) -> None:
    done = CliRunner().invoke(group, ["spaek"])
    assert done.exit_code == 2
    assert "speak" in done.output
