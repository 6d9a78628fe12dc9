"""A bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys

import pytest

from pulsar_py.cli.backups.progress import progress


def test_nothing_is_written_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("backing up", 100) as moved:
        moved(50)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("is_bytes", "shown"), [(True, "bytes"), (False, "100/100")])
def test_a_terminal_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_bytes: bool,
    shown: str,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("backing up", 100, is_bytes=is_bytes) as moved:
        moved(100)
    output = capsys.readouterr()
    assert output.out == ""
    assert "backing up" in output.err
    assert shown in output.err
