"""Asks before something is destroyed, if somebody sits at a terminal (edge).

A script is not asked: what it says is what it means, as with Apache Pulsar's tools, whose scripts
run unchanged. `--yes` does not ask at a terminal, either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

__all__ = ["YES", "ask", "ask_at_a_terminal"]

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give

YES: Final[Callable[[F], F]] = click.option(
    "-y", "--yes", "is_confirmed", is_flag=True, help="Do not ask before destroying."
)


def ask(sentence: str) -> bool:
    """Ask on standard error whether to go on; anything but yes is no."""
    sys.stderr.write(f"{sentence} Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask_at_a_terminal(sentence: str, *, is_confirmed: bool) -> None:
    """Ask whoever sits at a terminal, unless that was confirmed.

    Raises:
        ClickException: It is not wanted.
    """
    if not is_confirmed and sys.stdin.isatty() and not ask(sentence):
        raise click.ClickException("nothing was done")
