"""`Word`: one command of `pulsar-py admin`: options, REST calls, output (pure).

A word is one line of a table. Its options are written as they are typed, and parsed when the word
is used:

    Word("skip", "Pass over messages of a backlog", TOPIC, "-s/--subscription! -n/--count:long!",
         lambda a: subscriptions.skip(a.topic, a.subscription, a.count))

An option is `NAME/NAME...`, then `:KIND` unless it is a text (`flag` for switches), `!` if it has
to be given, and `=DEFAULT`. Its value is `a.NAME`, by its first long name with underscores. A word
that makes several calls is a generator: it yields calls, gets their replies, and returns what is
printed.

Source: the commands of PulsarAdminTool in Pulsar's client tools.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulsar_py.admin_client.call import Call, Reply

Args = Any
"""The values of a word's parameters and options, as attributes."""
Pause = float
"""Seconds to wait, as a step of a word that waits for something."""
Steps = Generator[Call[Any] | Pause, Reply, Any]  # Any: what is printed
Show = Callable[[Any], str]  # Any: JSON, or what the generator returned


class WordFailedError(Exception):
    """A word can't do what it is for; the text says why."""


TENANT: Final = "tenant"
CLUSTER: Final = "cluster"
NAMESPACE: Final = "namespace"
TOPIC: Final = "topic"
NOTHING: Final = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a word."""

    names: tuple[str, ...]
    kind: str = "text"
    is_required: bool = False
    default: str | None = None

    @property
    def key(self) -> str:
        """The name under which the option's value is passed on."""
        long = next((each for each in self.names if each.startswith("--")), self.names[0])
        name = long.lstrip("-").replace("-", "_")
        return f"{name}_" if name in {"global", "from"} else name

    @classmethod
    def parse(cls, text: str) -> Option:
        """Parse an option's text, whose form the module's docstring describes."""
        head, equals, default = text.partition("=")
        is_required = head.endswith("!")
        names, _, kind = head.rstrip("!").partition(":")
        return cls(
            tuple(names.split("/")), kind or "text", is_required, default if equals else None
        )


@dataclass(frozen=True, slots=True)
class Word:
    """One command of a group, such as `list` of `topics`."""

    name: str
    summary: str
    """A phrase for `--help`."""
    parameters: str
    """Names of the positional arguments, separated by blanks."""
    options: str
    """The options, separated by blanks."""
    run: Callable[[Args], Call[Any] | Steps]
    show: Show | None = None
    """How pulsar-admin prints the answer; None: a list as lines, all else as JSON."""
    show_indented: Show | None = None
    """The same where the word has `--indent` and it is given."""
    says: str = ""
    """Printed when the call has no answer; `{}` is the first parameter."""
    is_hidden: bool = False
    """Left out of `--help`, because another word does the same."""

    def parsed_options(self) -> list[Option]:
        """The options, in the order of `--help`."""
        return [Option.parse(each) for each in self.options.split()]


Group = Mapping[str, Word]


def group(*words: Word) -> Group:
    """Commands by name."""
    return {each.name: each for each in words}


def one_of(args: Args, enable: str = "enable", disable: str = "disable") -> bool:
    """Which of two switches is given.

    Raises:
        ValueError: Neither, or both.
    """
    on, off = bool(getattr(args, enable)), bool(getattr(args, disable))
    if on == off:
        names = f"--{enable.replace('_', '-')} or --{disable.replace('_', '-')}"
        raise ValueError(f"Need to specify either {names}")
    return on
