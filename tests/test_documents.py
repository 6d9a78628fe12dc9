"""What the README, the Makefile and the container call is there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from pulsar_py.cli.commands import main
from tests.package_source import ROOT

MAKE_TARGETS = (
    "setup",
    "run",
    "test",
    "test-all",
    "check",
    "bench",
    "bench-storage",
    "bench-client",
    "bench-spark",
    "proto",
    "docs",
)


def parses(words: list[str]) -> bool:
    """Whether a command line of `pulsar-py` is understood; nothing is run."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        name, found, words = command.resolve_command(context, words)
        assert name is not None
        assert found is not None, words
        command = found
    command.make_context("pulsar-py", words)
    return True


def dockerfile_words(instruction: str) -> list[str]:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    found = re.findall(rf"^{instruction} (\[.*\])$", text, re.MULTILINE)
    assert len(found) == 1
    return [str(word) for word in json.loads(found[0])]


def test_the_container_starts_a_command_that_parses() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    assert "ENTRYPOINT" not in text  # tools run `sh -c` there
    entry, *rest = dockerfile_words("CMD")
    assert (ROOT / "docker" / entry).exists()
    assert parses(rest)


def test_the_container_copies_what_is_there() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line


def test_compose_builds_that_file() -> None:
    text = (ROOT / "docker" / "compose.yaml").read_text()
    assert "dockerfile: docker/Dockerfile" in text
    assert (ROOT / "docker" / "Dockerfile").exists()


@pytest.mark.parametrize("target", MAKE_TARGETS)
def test_make_has_the_targets_of_the_design(target: str) -> None:
    text = (ROOT / "Makefile").read_text()
    assert re.search(rf"^([\w -]* )?{re.escape(target)}( [\w -]*)?:", text, re.MULTILINE)


def commands_in(path: Path) -> list[str]:
    text = path.read_text()
    return re.findall(r"(?:^    |\$\(BIN\)/|\t)(pulsar-py \w.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "Makefile"])
def test_commands_that_are_written_down_parse(name: str) -> None:
    found = commands_in(ROOT / name)
    assert found
    for line in found:
        assert parses(shlex.split(line)[1:])


def test_ci_calls_the_test_command_of_the_readme() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^    make test ", (ROOT / "README.md").read_text(), re.MULTILINE)
