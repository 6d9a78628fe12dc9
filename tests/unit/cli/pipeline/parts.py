"""Command lines of pipelines, as tests of commands and options share them."""

from __future__ import annotations

from typing import Any

from pulsar_py.cli.pipeline import command as commands

NEEDED = {
    "export": ["--topic", "t", "--to", "parquet:/a"],
    "copy": ["--from", "t", "--to", "u"],
    "replay": ["--topic", "t", "--since", "-2h", "--until", "now", "--to", "u"],
    "backfill": ["--from", "parquet:/a", "--topic", "t", "--name", "n"],
    "aggregate": [
        "--topic",
        "t",
        "--to",
        "topic:u",
        "--key",
        "k",
        "--window",
        "1m",
        "--agg",
        "count",
    ],
    "compact": ["--topic", "t", "--to", "delta:/a"],
    "report": ["--topic", "t", "--to", "page.html"],
}


def options(name: str, *arguments: str) -> dict[str, Any]:
    """What click makes of a command line."""
    command = commands.pipeline.commands[name]
    return command.make_context(name, [*NEEDED.get(name, []), *arguments]).params
