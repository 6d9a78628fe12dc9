"""The command `pulsar-py`: starts a broker at once, or hands its words to click (edge).

Everything that has to be explained or refused is click's (`commands`). But importing click and
reading a line with it takes 14 of the 200 ms until a broker is ready, and 1.1 of its 40 MB: so the
usual words of `standalone` do without (`plain_options`). What is imported here is imported before
every command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pulsar_py.cli.straight_imports import find_modules_straight
from pulsar_py.common.late_imports import importing_for_good

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, *, prog_name: str | None = None) -> None:
    """Run the command line, or these words in its place; ends with SystemExit."""
    find_modules_straight()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["standalone"]:
        _start_plainly(words[1:])
    from pulsar_py.cli.commands import main as commands

    commands(words, prog_name=prog_name)


def _start_plainly(words: Sequence[str]) -> None:
    """Run a broker, if the words are plain; returns if click has to read them."""
    try:
        with importing_for_good():
            from pulsar_py.cli.standalone_options import plain_options

            options = plain_options(words)
            if options is None:
                return
            from pulsar_py.cli.standalone import run

        code = run(options)
    except KeyboardInterrupt:  # before the broker minds signals; said as click says it
        sys.stderr.write("\nAborted!\n")
        code = 1
    raise SystemExit(code)
