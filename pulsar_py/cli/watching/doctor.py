"""The commands `pulsar-py doctor` (symptoms of a broker) and `pulsar-py subscription`.

Here are their options; `doctor_jobs` does the work, and is imported when they run. Exit codes of
`doctor`: 0 if nothing is wrong, 1 if something is, or with the reason in one line, 2 for wrong
usage.
"""

from __future__ import annotations

from typing import Any

import click

from pulsar_py.cli.answering.answers import ANSWER, answer, say
from pulsar_py.cli.answering.json_lines import json_line
from pulsar_py.cli.watching.connecting import (
    CONNECTION,
    admin_settings_of,
    check_namespace,
    connection_of,
)


@click.command()
@click.argument("name", metavar="[SUBSCRIPTION]", required=False)
@click.option("--topic", help="Its topic  [default: all of the namespace are looked through].")
@click.option("--namespace", callback=check_namespace, default="public/default", show_default=True)
@click.option(
    "--cluster",
    "is_of_cluster",
    is_flag=True,
    help="Ask all brokers: who has which bundle since when and why, sessions, load, moves.",
)
@ANSWER
@CONNECTION
def doctor(name: str | None, **options: Any) -> None:  # Any: click's values
    """Say why SUBSCRIPTION does not move and which command helps, or what is wrong with a broker.

    Without a subscription: disk, descriptors, the event loop, certificates and tokens that end,
    who can connect, settings given in vain, and topics that are about to be deleted. With --cluster
    the same of all brokers, how they see each other, and where they differ.
    """
    from pulsar_py.cli.watching import doctor_jobs
    from pulsar_py.common.errors import PulsarError

    if name is None and options["topic"] is not None:
        raise click.UsageError("--topic is that of a subscription: name it")
    if options["is_of_cluster"]:
        if name is not None:
            raise click.UsageError("--cluster is about brokers, not about a subscription")
        _of_cluster(options)
        return
    try:
        admin = admin_settings_of(connection_of(options))
        if name is None:
            found = doctor_jobs.of_broker(admin)
        else:
            found = doctor_jobs.of_subscription(admin, name, options["topic"], options["namespace"])
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    if options["output"] == "json":
        for each in found:
            say(json_line(each))
    else:
        for line in doctor_jobs.as_text(found, is_of_subscription=name is not None):
            click.echo(line)
    is_well = not any(each.get("reasons") or each.get("urgency") == "error" for each in found)
    raise SystemExit(0 if is_well else 1)


def _of_cluster(options: dict[str, Any]) -> None:  # Any: click's values
    from pulsar_py.cli.watching import cluster_jobs
    from pulsar_py.common.errors import PulsarError

    try:
        view = cluster_jobs.view_of(admin_settings_of(connection_of(options)))
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    if options["output"] == "json":
        say(cluster_jobs.as_json(view))
    else:
        for line in cluster_jobs.as_text(view):
            click.echo(line)
    raise SystemExit(0 if cluster_jobs.is_well(view) else 1)


@click.group()
def subscription() -> None:
    """Stop the dispatch of a subscription, and let it go on."""


def _moved(topic: str, name: str, options: dict[str, Any], *, is_paused: bool) -> None:
    from pulsar_py.admin_client import AdminClient, subscriptions
    from pulsar_py.common.errors import PulsarError

    call = subscriptions.pause if is_paused else subscriptions.resume
    try:
        with AdminClient(admin_settings_of(connection_of(options))) as admin:
            admin.call(call(topic, name))
    except PulsarError as error:
        raise click.ClickException(str(error)) from None
    state = "paused" if is_paused else "running"
    answer(options["output"], {"topic": topic, "subscription": name, "dispatch": state})


@subscription.command()
@click.argument("topic")
@click.argument("name", metavar="SUBSCRIPTION")
@ANSWER
@CONNECTION
def pause(topic: str, name: str, **options: Any) -> None:  # Any: click's values
    """Send no more messages to the consumers of a subscription, also after a restart."""
    _moved(topic, name, options, is_paused=True)


@subscription.command()
@click.argument("topic")
@click.argument("name", metavar="SUBSCRIPTION")
@ANSWER
@CONNECTION
def resume(topic: str, name: str, **options: Any) -> None:  # Any: click's values
    """Send messages to the consumers of a subscription again."""
    _moved(topic, name, options, is_paused=False)
