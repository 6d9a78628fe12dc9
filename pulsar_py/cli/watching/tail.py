"""The command `pulsar-py tail`, which shows messages of topics as they come.

Here are its options; `tail_jobs` does the work, and is imported when it runs. Exit codes: 0 when it
has shown what was asked for, 1 with the reason in one line, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsar_py.cli.answering.answers import ANSWER
from pulsar_py.cli.watching.connecting import (
    CONNECTION,
    admin_settings_of,
    client_of,
    connection_of,
)

if TYPE_CHECKING:
    from pulsar_py.cli.watching.shown_messages import ShownMessage
    from pulsar_py.cli.watching.tail_jobs import TailRequest


@click.command()
@click.argument("topics", nargs=-1)
@click.option("--pattern", help="Topics of a namespace instead, as 'public/default/orders-.*'.")
@click.option(
    "--since",
    metavar="TIME",
    help="Begin at a time: 2026-01-31, 2026-01-31T10:00Z, 15m or 2h (before now), yesterday.",
)
@click.option("--from", "start", metavar="ID", help="Begin with this message, ledger:entry.")
@click.option(
    "-n", "--last", type=click.IntRange(0, 100_000), help="Begin with so many before the end."
)
@click.option("--key", "keys", multiple=True, help="Only messages with this key; may be repeated.")
@click.option(
    "--property",
    "properties",
    metavar="NAME[=VALUE]",
    multiple=True,
    help="Only messages with this property; may be repeated.",
)
@click.option(
    "--where",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    help="Only values of which this holds, such as 'amount>10', 'customer.country=SE', "
    "'note~refund'; bytes without a schema count as the JSON that they are; may be repeated.",
)
@click.option("--limit", type=click.IntRange(min=1), help="End after so many messages.")
@click.option("--no-follow", is_flag=True, help="End when all that is there now was shown.")
@ANSWER
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="PEM file of the private key for encrypted messages.",
)
@CONNECTION
def tail(topics: tuple[str, ...], **options: Any) -> None:  # Any: click's values
    """Show messages of TOPICS as they come; nothing is acknowledged, and nothing left behind.

    A partitioned topic is followed in all its partitions. Without --since, --from or -n it begins
    with what is published from now on.
    """
    if bool(topics) == bool(options["pattern"]):
        raise click.UsageError("give topics, or --pattern")
    starts = [name for name in ("since", "start", "last") if options[name] is not None]
    if len(starts) > 1:
        raise click.UsageError("--since, --from and -n exclude each other; give one")
    if options["no_follow"] and not starts:
        raise click.UsageError("--no-follow needs --since, --from or -n: there is nothing to show")

    import asyncio

    from pulsar_py.cli.watching import tail_jobs
    from pulsar_py.common.errors import ConfigurationError, PulsarError

    try:
        request = tail_jobs.request_of(topics, options)
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from None
    try:
        asyncio.run(_run(request, topics, options))
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(130)


async def _run(
    request: TailRequest, topics: tuple[str, ...], options: dict[str, Any]
) -> None:  # Any: click's values
    from pulsar_py.cli.backups.progress import progress
    from pulsar_py.cli.watching import tail_jobs

    connection = connection_of(options)
    with_topic = bool(request.pattern) or len(topics) > 1
    is_json = options["output"] == "json"

    def show(found: ShownMessage) -> None:
        click.echo(found.as_json() if is_json else found.as_line(with_topic=with_topic))

    def complain(line: str) -> None:
        click.echo(line, err=True)

    admin = admin_settings_of(connection)
    is_beside = not sys.stdout.isatty()  # otherwise messages and the bar would mix
    with progress("looking through", None, is_bytes=False) if is_beside else nullcontext() as moved:
        async with client_of(connection) as client:
            await tail_jobs.tail(
                request, client, admin, show=show, complain=complain, on_read=moved
            )
