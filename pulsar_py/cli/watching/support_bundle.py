"""The command `pulsar-py support-bundle`, which writes a broker's state into one archive.

Here are its options; `bundle_jobs` does the work, and is imported when it runs. Exit codes: 0, 1
with the reason in one line, 2 for wrong usage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pulsar_py.cli.answering.answers import ANSWER, answer
from pulsar_py.cli.watching.connecting import CONNECTION, admin_settings_of, connection_of


@click.command("support-bundle")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Add the names and sizes of the files there.",
)
@ANSWER
@CONNECTION
def support_bundle(file: Path, data_dir: Path | None, **options: Any) -> None:  # Any: click's
    """Write a broker's state into an archive FILE (.tar.gz), without secrets and payloads.

    Settings with secrets masked, statistics, metrics, policies, what `doctor` says; no payload of
    any message. What the broker does not answer is there as its error.
    """
    from pulsar_py.cli.backups.progress import progress
    from pulsar_py.cli.watching import bundle_jobs
    from pulsar_py.common.errors import PulsarError

    try:
        admin = admin_settings_of(connection_of(options))
        failures: list[str] = []
        with progress("collecting", None, is_bytes=False) as moved:
            files = bundle_jobs.collect(admin, data_dir, failures)
            count = bundle_jobs.write_bundle(file, files, moved)
    except FileExistsError:
        raise click.ClickException(f"{file} exists; name another file") from None
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from None
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    missing = ""
    if failures:
        missing = f", {len(failures)} with an error in place of the broker's answer ({failures[0]})"
    answer(
        options["output"],
        {"file": str(file), "files": count, "failures": failures},
        f"{file}: {count} files{missing}; look through it before you hand it on",
    )
