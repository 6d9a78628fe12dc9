"""`pulsar-py support-bundle`: its options."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_py.cli.commands import main


def test_a_terminal_sees_how_many_files_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    words = ["support-bundle", str(tmp_path / "b.tar.gz"), "--admin-url", "http://127.0.0.1:1"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    told = capsys.readouterr()
    assert ended.value.code == 0
    assert "collecting" in told.err
    assert "11/?" in told.err


def test_it_says_what_it_wrote_and_what_is_in_the_way(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    words = ["support-bundle", str(file), "--admin-url", "http://127.0.0.1:1"]
    first, second = (CliRunner().invoke(main, words) for _ in range(2))
    assert (first.exit_code, first.output.count("\n")) == (0, 1)
    assert "look through it" in first.output
    assert "9 with an error in place of the broker's answer (admin URL 'http://127" in first.output
    assert (second.exit_code, second.output) == (1, f"Error: {file} exists; name another file\n")
    nowhere = ["support-bundle", str(tmp_path / "none" / "b.tar.gz")]
    assert "No such file" in CliRunner().invoke(main, nowhere).output
