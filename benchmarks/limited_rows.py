"""Prints figures beside the limits that some of them have; a run that misses one fails.

A run that can't measure says why, and fails, too: `say_how_it_ends` sees to that.
"""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def beyond_limits(figures: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """A text for each figure that is above its limit; a run may measure a part of them."""
    return [
        f"{name} is {figures[name]:,.2f}, at most {limit:g} is allowed"
        for name, limit in limits.items()
        if name in figures and not figures[name] <= limit
    ]


def print_limited(
    title: str, figures: Mapping[str, float], limits: Mapping[str, float]
) -> list[str]:
    """A line with the title, and one a figure; returns what is beyond its limit."""
    print(f"\n{title:<56}{'limit':>8}")
    for name, value in figures.items():
        limit = f"{limits[name]:8g}" if name in limits else ""
        print(f"{name:<44}{value:12,.2f}{limit}")
    return beyond_limits(figures, limits)


def those_named(
    option: str,
    text: str,
    rows: Sequence[T],
    name_of: Callable[[T], str],
    *,
    besides: Container[str] = (),
) -> list[T]:
    """The rows whose name holds the text of an option; `besides` are texts that ask for no row.

    Raises:
        SystemExit: There is none.
    """
    chosen = [row for row in rows if text in name_of(row)]
    if not chosen and text not in besides:
        names = "\n    ".join(dict.fromkeys(map(name_of, rows)))
        raise SystemExit(f"{option} {text!r}: none of these has that in it:\n    {names}")
    return chosen


def say_how_it_ends() -> None:
    """Have each line written at once, and SIGTERM end the program as an error does.

    A program that `timeout` or a full machine ends would otherwise leave no line at all where its
    output goes to a file or a pipe, and leave the broker that it has started.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)

    def end(number: int, _: object) -> None:
        raise SystemExit(f"ended by {signal.Signals(number).name}; what is printed was measured")

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)


def exit_with(texts: Sequence[str], what: str = "beyond the limit") -> None:
    """End the program, with status 1 if there are any, each of which says what is wrong."""
    for text in texts:
        print(f"{what}: {text}")
    sys.exit(1 if texts else 0)
