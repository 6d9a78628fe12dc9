"""How commands answer: the option `-o`, and JSON as one object a line (edge).

With `-o json` standard output has JSON alone: an object for a command that does one thing, an
object a line for one that lists, shows or measures many. Errors stay lines on standard error, and
exit codes are the same. Names are in camelCase, as in the REST API. `pulsar-py admin` has an
option of its own: there the answer is one document, what the broker's REST API said.

Whether a form exists for people as a table or as text, its name says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import click

from pulsar_py.cli.answering.json_lines import json_line

__all__ = [
    "ANSWER",
    "JSON",
    "OUTPUT_NAMES",
    "TABLE",
    "answer",
    "output_option",
    "say",
]

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give

JSON: Final = "json"
OUTPUT_NAMES: Final = ("-o", "--output", "--format")
"""The names of the option; commands of Pulsar's that use one of them otherwise have the rest."""


def output_option(plain: str = "text", *, names: Iterable[str] = OUTPUT_NAMES) -> Callable[[F], F]:
    """The option that chooses between a form for people and JSON; the command gets `output`."""
    return click.option(
        *names,
        "output",
        type=click.Choice([plain, JSON]),
        default=plain,
        show_default=True,
        help="JSON is one object a line.",
    )


ANSWER: Final = output_option()
TABLE: Final = output_option("table")


def say(text: str) -> None:
    """Print a line of the answer."""
    sys.stdout.write(f"{text}\n")


def answer(output: str, value: Mapping[str, object], text: str = "") -> None:
    """Print what a command did: `value` as JSON, or a text for people, if there is one."""
    if output == JSON:
        say(json_line(value))
    elif text:
        say(text)
