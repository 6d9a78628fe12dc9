"""The command `pulsar-py top`, which shows what is busy on a broker.

Here are its options; `top_jobs` does the work, and is imported when it runs. Exit codes: 0, 1 with
the reason in one line, 2 for wrong usage, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from pulsar_py.cli.answering.answers import ANSWER
from pulsar_py.cli.watching.connecting import (
    CONNECTION,
    admin_settings_of,
    check_namespace,
    connection_of,
)


@click.command()
@click.argument(
    "view", type=click.Choice(["topics", "subscriptions", "connections"]), default="topics"
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(["rate", "bytes", "backlog", "name"]),
    default="rate",
    show_default=True,
)
@click.option("--namespace", callback=check_namespace, help="Only this one, as public/default.")
@click.option("-n", "--rows", type=click.IntRange(min=1), default=30, show_default=True)
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Print one picture, and end.")
@ANSWER
@CONNECTION
def top(**options: Any) -> None:  # Any: click's values
    """Show the busiest topics, subscriptions or connections of a broker.

    Rates are those since the look before. Where the output is no terminal, one picture is printed;
    with -o json one line for each look.
    """
    import asyncio

    from pulsar_py.cli.watching import top_jobs
    from pulsar_py.cli.watching.top_rows import Order, TopView
    from pulsar_py.common.errors import PulsarError

    request = top_jobs.TopRequest(
        view=TopView(options["view"]),
        order=Order(options["order"]),
        rows_count=options["rows"],
        interval_seconds=options["interval"],
        namespace=options["namespace"],
        is_json=options["output"] == "json",
        is_once=options["once"],
    )
    try:
        asyncio.run(top_jobs.run(request, admin_settings_of(connection_of(options)), click.echo))
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        sys.exit(130)
