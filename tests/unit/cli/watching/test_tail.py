"""`pulsar-py tail`: its options, and what is wrong usage."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from pulsar_py.cli.main import main


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "give topics, or --pattern"),
        (["a", "--pattern", "b"], "give topics, or --pattern"),
        (["a", "--since", "1h", "-n", "3"], "exclude each other"),
        (["a", "--no-follow"], "needs --since"),
        (["a", "-n", "-1"], "-1 is not in the range"),
        (["a", "--since", "soon"], "'soon' is not a time"),
        (["a", "--from", "x"], "--from 'x': expected ledger:entry"),
        (["a", "b", "--from", "1:2"], "--from is a message of one topic"),
        (["a", "--where", "amount"], "--where 'amount'"),
        (["a", "--where", "a~("], "missing ), unterminated subpattern"),
        (["--pattern", "public/default/("], "--pattern 'public/default/(': missing )"),
    ],
)
def test_wrong_usage_is_told(words: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["tail", *words])
    assert result.exit_code == 2
    assert reason in result.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a", "--service-url", "localhost"], "localhost"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: list[str], reason: str) -> None:
    result = CliRunner().invoke(main, ["tail", *words])
    assert (result.exit_code, result.output.count("\n")) == (1, 1)
    assert reason in result.output
