"""The commands of `pulsar-py storage`: they inspect, repair, back up and restore a broker's data.

Here are the commands and their options; `jobs`, `recovery` and `backup_jobs` do the
work, and are imported when a command runs. Exit codes: 0 if the data is sound, 1 if it is damaged
or can't be had, 2 for wrong usage, which includes a directory that a broker uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsar_py.cli.answering.answers import ANSWER, answer
from pulsar_py.cli.watching.connecting import CONNECTION, admin_settings_of, connection_of

DIRECTORY = click.argument(
    "data_dir", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
if TYPE_CHECKING:
    from pulsar_py.common.backup_archive import BackupList

KINDS = ("manifest", "journal", "entries", "index", "topics", "cursors")


@click.group()
def storage() -> None:
    """Back up a running broker, and look after the data directory of a stopped one."""


@storage.command()
@DIRECTORY
@ANSWER
def verify(data_dir: Path, output: str) -> None:
    """Read all data in DIR, and report damage with its file and offset.

    DIR is not changed.
    """
    from pulsar_py.cli.storage.jobs import run, verify_directory

    raise SystemExit(run(verify_directory(data_dir, output)))


@storage.command()
@DIRECTORY
@ANSWER
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
    from pulsar_py.cli.storage.jobs import dump_directory, run

    raise SystemExit(run(dump_directory(data_dir, output, kinds or KINDS, shown_bytes)))


@storage.command()
@DIRECTORY
@click.option(
    "--side",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the originals of replaced files; must not exist  [default: DIR/recovered-N].",
)
@ANSWER
def recover(data_dir: Path, side: Path | None, output: str) -> None:
    """Move unusable data into a side folder, so that a broker can serve the rest.

    Entries that no consumer gets take the place of lost messages, so that positions and
    acknowledgements keep their meaning. The losses are printed, and written to the side folder.
    """
    from pulsar_py.cli.storage.jobs import run
    from pulsar_py.cli.storage.recovery import recover_directory

    raise SystemExit(run(recover_directory(data_dir, side, output)))


@storage.command()
@DIRECTORY
@ANSWER
def stats(data_dir: Path, output: str) -> None:
    """Show the ledgers, the topics and the share of garbage in DIR."""
    from pulsar_py.cli.storage.jobs import run, stats_of_directory

    raise SystemExit(run(stats_of_directory(data_dir, output)))


@storage.command()
@click.argument("destination", metavar="BACKUP", type=click.Path(path_type=Path))
@ANSWER
@CONNECTION
def backup(destination: Path, output: str, **options: Any) -> None:  # Any: click's values
    """Write all data of the running broker of --admin-url to BACKUP.

    BACKUP becomes a directory, or an archive if its name ends in .tar; it must not exist. It has
    all that was confirmed before the backup began, with metadata and messages that belong together.
    It is always a full one; what was cut short leaves nothing under that name.
    """
    from dataclasses import replace

    from pulsar_py.cli.backups.backup_jobs import TIMEOUT_SECONDS, back_up
    from pulsar_py.cli.storage.jobs import answered

    def work() -> None:
        admin = admin_settings_of(connection_of(options))
        listed = back_up(replace(admin, timeout_seconds=TIMEOUT_SECONDS), destination)
        size = sum(each.size_bytes for each in listed.files.values())
        answer(
            output,
            {"backup": str(destination), **_told(listed)},
            f"{destination}: {len(listed.files)} files, {size:,} bytes, made {listed.made}",
        )

    raise SystemExit(answered(work))


@storage.command()
@click.argument("source", metavar="BACKUP", type=click.Path(path_type=Path, exists=True))
@click.argument("data_dir", metavar="DIR", type=click.Path(path_type=Path))
@ANSWER
def restore(source: Path, data_dir: Path, output: str) -> None:
    """Make the data directory DIR of a BACKUP; DIR must be empty, or not there.

    Each file is compared with its checksum. Start a broker with `--data-dir DIR` afterwards.
    """
    from pulsar_py.cli.backups import backup_jobs
    from pulsar_py.cli.storage.jobs import answered
    from pulsar_py.common.errors import CorruptDataError

    def work() -> None:
        try:
            listed = backup_jobs.restore(source, data_dir)
        except CorruptDataError as error:
            raise CorruptDataError(f"{source}: {error}") from None
        answer(
            output,
            {"directory": str(data_dir), **_told(listed)},
            f"{data_dir}: {len(listed.files)} files of {listed.cluster}, as of {listed.made}",
        )

    raise SystemExit(answered(work))


def _told(listed: BackupList) -> dict[str, object]:
    return {
        "cluster": listed.cluster,
        "made": listed.made,
        "files": len(listed.files),
        "bytes": sum(each.size_bytes for each in listed.files.values()),
    }
