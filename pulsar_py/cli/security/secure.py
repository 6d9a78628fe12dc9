"""The commands of `pulsar-py secure`: what a broker with TLS and tokens needs.

Here are the commands and their options; `secure_jobs` does the work, and is imported when a command
runs. Exit codes: 0, or 1 with the reason in one line; 2 for wrong usage.
"""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_py.cli.answering.answers import ANSWER, answer
from pulsar_py.cli.security.tokens import TokensGroup

DIRECTORY = click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("secure"),
    show_default=True,
    help="Where certificates, keys, tokens and settings are.",
)


@click.group(cls=TokensGroup)
def secure() -> None:
    """Set up a broker with TLS, tokens and authorization."""


@secure.command()
@DIRECTORY
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="Name or address of the broker; may be repeated, clients are told the first. "
    "This machine's own are added  [default: localhost].",
)
@click.option("--operator", default="operator", show_default=True, help="Role of the super-user.")
@click.option("--client", default="client", show_default=True, help="Role of the other token.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=6651,
    show_default=True,
    help="Port of the binary protocol over TLS.",
)
@click.option(
    "--web-port",
    type=click.IntRange(1, 65535),
    default=8443,
    show_default=True,
    help="Port of HTTPS.",
)
@click.option(
    "-e",
    "--expiry-time",
    help="When the tokens end, from now: 30d, 2w or 1y  [default: never].",
)
@ANSWER
def init(
    *,
    output: str,
    directory: Path,
    hosts: tuple[str, ...],
    operator: str,
    client: str,
    port: int,
    web_port: int,
    expiry_time: str | None,
) -> None:
    """Make an authority, certificates, a key pair, tokens for two roles, and settings.

    Then: pulsar-py standalone --config secure/standalone.conf. Commands that call the broker take
    client.conf where the variable PULSAR_CLIENT_CONF names it.
    """
    import datetime as dt
    import shlex
    import socket

    from pulsar_py.cli.security import secure_jobs, token_jobs
    from pulsar_py.common.loops.clock import SystemClock

    own = ("localhost", "127.0.0.1", "::1", socket.gethostname())
    seconds = SystemClock().wall_time_millis() / 1000
    request = secure_jobs.SecureRequest(
        directory=directory,
        hosts=tuple(dict.fromkeys((*hosts, *own))),
        operator=operator,
        client=client,
        port=port,
        web_port=web_port,
        now=dt.datetime.fromtimestamp(seconds, dt.UTC),
        token_seconds=None if expiry_time is None else token_jobs.parse_expiry(expiry_time),
    )
    secure_jobs.initialize(request)
    place, whole = shlex.quote(str(directory)), shlex.quote(str(directory.absolute()))
    told = {
        "directory": str(directory.absolute()),
        "operator": operator,
        "client": client,
        "files": sorted(each.name for each in directory.iterdir()),
    }
    answer(
        output,
        told,
        f"Written to {directory}. Next:\n"
        f"  pulsar-py standalone --config {place}/standalone.conf\n"
        "In another shell:\n"
        f"  pulsar-py secure allow -d {place} {shlex.quote(client)} public/default\n"
        f"  export PULSAR_CLIENT_CONF={whole}/client.conf\n"
        f"With that variable commands call this broker as {operator}, such as: pulsar-py doctor",
    )


@secure.command()
@DIRECTORY
@click.argument("role")
@click.argument("namespace")
@click.option(
    "--actions",
    default="produce,consume",
    show_default=True,
    help="What the role may do, separated by commas.",
)
@click.option("--web-service-url", help="A broker's HTTPS address  [default: of client.conf].")
@ANSWER
def allow(
    *,
    directory: Path,
    role: str,
    namespace: str,
    actions: str,
    web_service_url: str | None,
    output: str,
) -> None:
    """Allow ROLE to produce and consume in NAMESPACE, as the operator."""
    from pulsar_py.cli.security import secure_jobs

    request = secure_jobs.GrantRequest(
        directory=directory,
        role=role,
        namespace=namespace,
        actions=[each.strip() for each in actions.split(",") if each.strip()],
        web_service_url=web_service_url,
    )
    secure_jobs.grant(request)
    text = f"{role} may {' and '.join(request.actions)} in {namespace}"
    told = {"role": role, "namespace": namespace, "actions": list(request.actions)}
    answer(output, told, text)
