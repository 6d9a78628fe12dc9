"""Words run step by step: confirmation, dry runs, waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pulsar_py.admin_client import subscriptions, topics
from pulsar_py.admin_client.call import Call, Reply
from pulsar_py.cli.admin.session import NotConfirmedError, WordSession
from pulsar_py.cli.admin.words import Args, Steps, Word

ARGS = SimpleNamespace()


class Sent:
    def __init__(self) -> None:
        self.calls: list[Call[Any]] = []

    def __call__(self, call: Call[Any]) -> Reply:
        self.calls.append(call)
        return Reply(200, {}, b"7", lambda: 7)


def word(run: Any) -> Word:
    return Word("w", "Do it", "", "", run)


def clear(_: Args) -> Call[None]:
    return subscriptions.clear_backlog("t", "s")


def test_what_destroys_is_asked_about() -> None:
    sent, asked = Sent(), []

    def refuse(lost: str) -> bool:
        asked.append(lost)
        return False

    with pytest.raises(NotConfirmedError):
        WordSession(sent, confirm=refuse).run(word(clear), ARGS)
    assert asked == ["the place of subscription s in persistent://public/default/t"]
    assert not sent.calls
    WordSession(sent, confirm=lambda _: True).run(word(clear), ARGS)
    assert len(sent.calls) == 1


def test_what_only_asks_is_not_asked_about() -> None:
    sent = Sent()

    def never(_: str) -> bool:
        raise AssertionError

    session = WordSession(sent, confirm=never)
    assert session.run(word(lambda _: topics.internal_info("t")), ARGS) == 7


def test_a_dry_run_asks_and_only_says_what_it_would_send(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def steps(_: Args) -> Steps:
        reply = yield topics.internal_info("t")
        yield subscriptions.skip("t", "s", reply.json())

    sent = Sent()
    WordSession(sent, is_dry_run=True).run(word(steps), ARGS)
    assert [each.method for each in sent.calls] == ["GET"]
    assert capsys.readouterr().out == (
        "would send POST /admin/v2/persistent/public/default/t/subscription/s/skip/7; lost: "
        "the place of subscription s in persistent://public/default/t\n"
    )


def test_a_word_may_wait() -> None:
    waits: list[float] = []

    def steps(_: Args) -> Steps:
        yield topics.internal_info("t")
        yield 2.5
        return "done"

    assert WordSession(Sent(), sleep=waits.append).run(word(steps), ARGS) == "done"
    assert waits == [2.5]
