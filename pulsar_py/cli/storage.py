"""`pulsar-py storage`: looks at and repairs the data directory of a stopped broker.

Only commands and options stand here; `storage_jobs` has the work and is imported when one runs.
Exit codes: 0 sound, 1 damaged, 2 wrong usage, which includes a directory in use.
"""

from __future__ import annotations

from pathlib import Path

import click

DIRECTORY = click.argument(
    "data_dir", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
FORMAT = click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="JSON is one object a line.",
)
KINDS = ("manifest", "journal", "entries", "index", "topics", "cursors")


@click.group()
def storage() -> None:
    """Verify, print, repair and measure the data of a stopped broker."""


@storage.command()
@DIRECTORY
@FORMAT
def verify(data_dir: Path, output: str) -> None:
    """Read everything in DIR and say what is broken, with file and offset.

    Changes nothing.
    """
    from pulsar_py.cli.storage_jobs import run, verify_directory  # noqa: PLC0415 - late on purpose

    raise SystemExit(run(verify_directory(data_dir, output)))


@storage.command()
@DIRECTORY
@FORMAT
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="What to print; may be repeated  [default: all].",
)
@click.option(
    "--bytes",
    "shown_bytes",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="How many bytes of each entry to print, in hexadecimal.",
)
def dump(data_dir: Path, output: str, kinds: tuple[str, ...], shown_bytes: int) -> None:
    """Print the records of the files in DIR, one a line."""
    from pulsar_py.cli.storage_jobs import dump_directory, run  # noqa: PLC0415 - late on purpose

    raise SystemExit(run(dump_directory(data_dir, output, kinds or KINDS, shown_bytes)))


@storage.command()
@DIRECTORY
@click.option(
    "--side",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for what is replaced; must not exist  [default: DIR/recovered-N].",
)
def recover(data_dir: Path, side: Path | None) -> None:
    """Cut what can't be used into a side folder, so that a broker can serve the rest.

    Lost messages are replaced by entries that no consumer gets, so that positions and
    acknowledgements keep their meaning. Says what was lost.
    """
    from pulsar_py.cli.storage_jobs import run  # noqa: PLC0415 - late on purpose
    from pulsar_py.cli.storage_recovery import recover_directory  # noqa: PLC0415 - the same

    raise SystemExit(run(recover_directory(data_dir, side)))


@storage.command()
@DIRECTORY
@FORMAT
def stats(data_dir: Path, output: str) -> None:
    """Show ledgers, topics and the share of garbage in DIR."""
    from pulsar_py.cli.storage_jobs import run, stats_of_directory  # noqa: PLC0415 - late on purpose

    raise SystemExit(run(stats_of_directory(data_dir, output)))
