"""Sends the calls of one command; asks before destructive ones, or only prints them (edge).

With `--dry-run` calls that only ask are sent, and the others are listed with what they would do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import GeneratorType
from typing import Any

from pulsar_py.admin_client.call import NO_BODY, Call, Reply, as_text, encoded, nothing
from pulsar_py.cli.admin.words import Args, Word
from pulsar_py.cli.answering.json_lines import json_line

Exchange = Callable[[Call[Any]], Reply]


class NotConfirmedError(Exception):
    """The user did not want it."""


class WordSession:
    """Runs words; made for one command line."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        is_dry_run: bool = False,
        is_json: bool = False,
        confirm: Callable[[str], bool] | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """Make one.

        Args:
            exchange: Sends calls.
            is_dry_run: Whether calls that change something are only printed.
            is_json: Whether they are printed as JSON, an object a line.
            confirm: Is asked before calls that destroy; None: nobody is.
            sleep: Takes seconds.
        """
        self._exchange = exchange
        self._is_dry_run = is_dry_run
        self._is_json = is_json
        self._confirm = confirm
        self._sleep = sleep

    def run(self, word: Word, args: Args) -> Any:  # Any: JSON, or what a generator returned
        """What the command prints, as a value; None without an answer.

        Raises:
            NotConfirmedError: The user did not want it.
            ValueError: Options are missing or exclude each other.
        """
        steps = word.run(args)
        if not isinstance(steps, GeneratorType):
            assert isinstance(steps, Call)
            reply = self._send(steps)
            return answer_of(steps, reply)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Call):
                    step = steps.send(self._send(step))
                else:
                    assert self._sleep is not None, "a word waits"
                    self._sleep(step)
                    step = next(steps)
        except StopIteration as end:
            return end.value

    def _send(self, call: Call[Any]) -> Reply:
        if call.method != "GET" and self._is_dry_run:
            sys.stdout.write(f"{_told(call) if self._is_json else _text(call)}\n")
            return Reply(204, {}, b"", lambda: None)
        if call.destroys and self._confirm is not None and not self._confirm(call.destroys):
            raise NotConfirmedError
        return self._exchange(call)


def _text(call: Call[Any]) -> str:
    body = "" if call.body is NO_BODY else f" {encoded(call.body).decode()}"
    lost = f"; lost: {call.destroys}" if call.destroys else ""
    return f"would send {call.method} {call.path}{body}{lost}"


def _told(call: Call[Any]) -> str:
    is_none = call.body is NO_BODY
    body = call.body.decode() if isinstance(call.body, bytes) else None if is_none else call.body
    told = {"method": call.method, "path": call.path, "body": body, "lost": call.destroys or None}
    return json_line(told)


def answer_of(call: Call[Any], reply: Reply) -> Any:  # Any: JSON
    """The answer as the broker wrote it."""
    if call.answer is nothing:
        return None
    return as_text(reply) if call.answer is as_text else reply.json()
