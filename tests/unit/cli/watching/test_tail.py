"""`pulsar-py tail`: its options, and what is wrong usage."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from pulsar_py.blocking import Client
from pulsar_py.cli.commands import main
from pulsar_py.testing import BrokerThread


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


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_search_through_a_backlog_is_shown_where_no_message_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_beside: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: not is_beside)
    with BrokerThread() as broker:
        with Client(broker.service_url) as client, client.create_producer("t") as producer:
            for number in range(7):
                producer.send(b'{"a": %d}' % number)
        words = ["tail", "t", "--since", "1h", "--no-follow", "--where", "a=5"]
        words += ["--service-url", broker.service_url, "--admin-url", broker.web_service_url]
        with pytest.raises(SystemExit) as ended:
            main(words)
    told = capsys.readouterr()
    assert (ended.value.code, told.out.count("\n")) == (0, 1)
    assert ("7/?" in told.err) is is_beside
