"""The command `pulsar-py broker drain`, which has a broker hand over all that it serves.

The broker of `--admin-url` leaves its cluster as at a stop, but goes on running: other brokers take
its topics, `/admin/v2/brokers/ready` says 503, and it takes nothing until it is started anew.

Exit codes: 0 when all was handed over, 1 with the reason in one line, 2 for wrong usage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import click

from pulsar_py.cli.answering.answers import ANSWER, answer
from pulsar_py.cli.answering.asking import YES, ask_at_a_terminal
from pulsar_py.cli.watching.connecting import CONNECTION, admin_settings_of, connection_of

_TIMEOUT_SECONDS: Final = 120.0
"""Longer than `brokerShutdownTimeoutMs` lets a broker take."""


@click.command()
@YES
@ANSWER
@CONNECTION
def drain(**options: Any) -> None:  # Any: click's values
    """Have the broker of --admin-url hand its topics over to others, before it is stopped."""
    from pulsar_py.admin_client import AdminClient, brokers
    from pulsar_py.cli.backups.progress import progress
    from pulsar_py.common.errors import PulsarError

    try:
        settings = admin_settings_of(connection_of(options))
        ask_at_a_terminal(
            f"The broker at {settings.url} serves nothing from then on, until it is started anew.",
            is_confirmed=options["is_confirmed"],
        )
        with (
            AdminClient(replace(settings, timeout_seconds=_TIMEOUT_SECONDS)) as admin,
            progress("handing over", None, is_bytes=False),
        ):
            admin.call(brokers.drain())
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    text = f"{settings.url}: handed over; stop it, or start it anew to let it serve again"
    answer(options["output"], {"adminUrl": settings.url, "outcome": "drained"}, text)
