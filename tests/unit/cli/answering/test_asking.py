"""What is destroyed is asked about at a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_py.cli.answering.asking import ask
from pulsar_py.cli.commands import main


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "is_yes"), [("y\n", True), ("YES\n", True), ("", False)])
def test_only_a_yes_is_one(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    typed: str,
    is_yes: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert ask("This ends it.") is is_yes
    assert capsys.readouterr() == ("", "This ends it. Go on? [y/N] ")


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["context", "remove", "a"], "This forgets the addresses and credentials of a."),
        (["broker", "drain"], "serves nothing from then on"),
    ],
)
def test_commands_of_our_own_that_destroy(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    words: list[str],
    asked: str,
) -> None:
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", str(tmp_path / "contexts"))
    add = ["context", "add", "a", "--admin-url", "http://127.0.0.1:1"]
    assert CliRunner().invoke(main, add).exit_code == 0
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    with pytest.raises(SystemExit) as ended:
        main(words)
    told = capsys.readouterr().err
    assert (ended.value.code, asked in told, "nothing was done" in told) == (1, True, True)
    with pytest.raises(SystemExit):
        main([*words, "--yes"])
    assert asked not in capsys.readouterr().err
    assert asked not in CliRunner().invoke(main, words).output
