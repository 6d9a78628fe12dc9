"""Runs one command: connects, sends its calls, prints the answer or the error (edge).

Errors go to standard error: on a terminal as one line, otherwise as pulsar-admin prints them.

Source: CmdBase in Pulsar's client tools.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from pulsar_py.admin_client.call import Call, Reply
from pulsar_py.admin_client.client import AdminClient
from pulsar_py.admin_client.settings import answer_of_error
from pulsar_py.cli.admin import output
from pulsar_py.cli.admin.session import NotConfirmedError, WordSession
from pulsar_py.cli.admin.words import WordFailedError
from pulsar_py.cli.answering.asking import ask
from pulsar_py.cli.connecting.connection import connection
from pulsar_py.cli.connecting.contexts import ContextError
from pulsar_py.common.errors import PulsarError

if TYPE_CHECKING:
    from pulsar_py.cli.admin.options import AdminOptions
    from pulsar_py.cli.admin.words import Args, Word

_WITHOUT_PROMPT: Final = frozenset({"clear-backlog"})
"""Words whose --force means that nobody is asked; elsewhere it is that of the REST API."""

Exchange = Callable[[Call[Any]], Reply]


def run_word(
    word: Word, args: Args, options: AdminOptions, exchange: Exchange | None = None
) -> int:
    """Run a command; returns the exit code.

    Args:
        word: The word.
        args: Its parameters and options.
        options: Those of `admin` itself.
        exchange: Sends calls; None: an admin client for what the options name.

    Raises:
        ValueError: Options are missing or exclude each other.
    """
    try:
        if exchange is not None:
            return _run(word, args, options, exchange)
        settings = connection(options.connection, os.environ).admin_settings(
            options.request_timeout_seconds
        )
        with AdminClient(settings) as admin:
            return _run(word, args, options, lambda call: admin.call(replace(call, answer=_whole)))
    except NotConfirmedError:
        sys.stderr.write("Error: nothing was done\n")
        return 1
    except (ContextError, WordFailedError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except PulsarError as error:
        sys.stderr.write(error_text(error, is_terminal=sys.stderr.isatty()))
        return 1


def error_text(error: PulsarError, *, is_terminal: bool) -> str:
    """What is printed of an error."""
    status, reason = answer_of_error(error) or (None, None)
    if is_terminal:
        shown = str(error) if status is None else f"{reason} (HTTP status {status})"
        return f"Error: {shown}\n"
    if status is None:
        return f"null\n\nReason: {error}\n"
    if reason == f"HTTP status {status}":
        reason = f"HTTP {status} {HTTPStatus(status).phrase}"
    return f"{reason}\n\nReason: {reason}\n"


def _run(word: Word, args: Args, options: AdminOptions, exchange: Exchange) -> int:
    is_forced = word.name in _WITHOUT_PROMPT and getattr(args, "force", False)
    is_asking = sys.stdin.isatty() and not (options.is_confirmed or is_forced)
    args.now_millis = _now_millis
    with _Waiting(word.name) as waiting:
        session = WordSession(
            exchange,
            is_dry_run=options.is_dry_run,
            is_json=options.output == "json",
            confirm=_confirm if is_asking else None,
            sleep=waiting.sleep,
        )
        value = session.run(word, args)
    if options.is_dry_run:
        return 0
    sys.stdout.write(printed(word, args, value, _form(options.output)))
    sys.stdout.flush()
    return 0


def printed(word: Word, args: Args, value: Any, form: str) -> str:  # Any: JSON
    """An answer as `text`, `json` (null where the broker sends none) or `table`."""
    if value is None and form != "json" and word.show is None:
        return word.says.format(vars(args).get(word.parameters)) + "\n" if word.says else ""
    if form == "json":
        return output.machine(value)
    if form == "table":
        return output.table(value)
    show = word.show_indented if getattr(args, "indent", False) else word.show
    return (show or output.by_itself)(value)


def _form(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    return "table" if sys.stdout.isatty() else "text"


def _confirm(lost: str) -> bool:
    return ask(f"This destroys {lost}.")


def _now_millis() -> int:
    from pulsar_py.common.loops.clock import SystemClock  # imports asyncio

    return SystemClock().wall_time_millis()


class _Waiting(ExitStack):
    """The waits of a word; a bar on a terminal counts them from the first one on."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._moved: Callable[[float], None] | None = None  # None before the first wait

    def sleep(self, seconds: float) -> None:
        import asyncio  # takes longer than a call, which few words wait for

        from pulsar_py.cli.backups.progress import progress
        from pulsar_py.common.loops.clock import SystemClock

        if self._moved is None:
            self._moved = self.enter_context(progress(self._what, None, is_bytes=False))
        asyncio.run(SystemClock().sleep(seconds))
        self._moved(1)


def _whole(reply: Reply) -> Reply:
    return reply
