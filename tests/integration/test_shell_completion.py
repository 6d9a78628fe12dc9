"""What shells complete, asked of the shells themselves; those that are not installed are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package_source import ROOT
from tests.terminal import Terminal

CASES = [
    ("pulsar-py admin topicP", "topicPolicies"),
    ("pulsar-py admin topics peek", "peek-messages"),
    ("pulsar-py top --so", "--sort"),
]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Where our command is a program of its own, as an installed one is."""
    program = tmp_path / "pulsar-py"
    program.write_text(f"#!{sys.executable}\nfrom pulsar_py.cli.main import main\nmain()\n")
    program.chmod(0o700)
    return {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
    }


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


def said(command: list[str], env: dict[str, str]) -> list[str]:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split()


@needs("bash")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash(env: dict[str, str], words: str, expected: str) -> None:
    script = (
        'eval "$(pulsar-py completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_pulsar_py_completion pulsar-py; echo "${COMPREPLY[@]}"'
    )
    command = ["bash", "--norc", "-c", script, "bash", *words.split()]
    assert said(command, env) == [expected]


@needs("fish")
@pytest.mark.parametrize(("words", "expected"), CASES)
def test_fish(env: dict[str, str], words: str, expected: str) -> None:
    """The file is where the help says, and fish finds it there."""
    place = Path(env["HOME"]) / ".config/fish/completions/pulsar-py.fish"
    place.parent.mkdir(parents=True)
    with place.open("wb") as file:
        subprocess.run(["pulsar-py", "completion", "fish"], env=env, stdout=file, check=True)
    assert said(["fish", "-c", f"complete -C '{words}'"], env)[0] == expected


@needs("zsh")
def test_zsh(env: dict[str, str]) -> None:
    (Path(env["HOME"]) / ".zshrc").write_text(
        'PS1="ready> "\nautoload -U compinit; compinit -D\neval "$(pulsar-py completion zsh)"\n'
    )
    with Terminal(["zsh", "-d", "-i"], env) as terminal:
        terminal.until("ready>")
        for words, expected in CASES:
            terminal.type(words + "\t")
            terminal.until(expected)
            terminal.type("\x15")  # the line is emptied
