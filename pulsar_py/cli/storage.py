"""The commands of `pulsar-py storage`, which inspect and repair the data of a stopped broker.

Here are the commands and their options; `storage_jobs` does the work, and is imported when a
command runs. Exit codes: 0 if the data is sound, 1 if it is damaged, 2 for wrong usage, which
includes a directory that a broker uses.
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
    """Verify, print, repair and measure the data directory of a stopped broker."""


@storage.command()
@DIRECTORY
@FORMAT
def verify(data_dir: Path, output: str) -> None:
    """Read all data in DIR, and report damage with its file and offset.

    DIR is not changed.
    """
    from pulsar_py.cli.storage_jobs import run, verify_directory  # noqa: PLC0415 - for --help

    raise SystemExit(run(verify_directory(data_dir, output)))


@storage.command()
@DIRECTORY
@FORMAT
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="Records to print; may be repeated  [default: all].",
)
@click.option(
    "--bytes",
    "shown_bytes",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Bytes of each entry to print, in hexadecimal.",
)
def dump(data_dir: Path, output: str, kinds: tuple[str, ...], shown_bytes: int) -> None:
    """Print the records of the files in DIR, one a line."""
    from pulsar_py.cli.storage_jobs import dump_directory, run  # noqa: PLC0415 - for --help

    raise SystemExit(run(dump_directory(data_dir, output, kinds or KINDS, shown_bytes)))


@storage.command()
@DIRECTORY
@click.option(
    "--side",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the originals of replaced files; must not exist  [default: DIR/recovered-N].",
)
def recover(data_dir: Path, side: Path | None) -> None:
    """Move unusable data into a side folder, so that a broker can serve the rest.

    Entries that no consumer gets take the place of lost messages, so that positions and
    acknowledgements keep their meaning. The losses are printed, and written to the side folder.
    """
    from pulsar_py.cli.storage_jobs import run  # noqa: PLC0415 - for --help
    from pulsar_py.cli.storage_recovery import recover_directory  # noqa: PLC0415 - for --help

    raise SystemExit(run(recover_directory(data_dir, side)))


@storage.command()
@DIRECTORY
@FORMAT
def stats(data_dir: Path, output: str) -> None:
    """Show the ledgers, the topics and the share of garbage in DIR."""
    from pulsar_py.cli.storage_jobs import run, stats_of_directory  # noqa: PLC0415 - for --help

    raise SystemExit(run(stats_of_directory(data_dir, output)))
