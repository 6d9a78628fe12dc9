"""`pulsar-py context`: named clusters with their addresses and credentials.

Commands use the context in use where neither an option nor the environment says something else. A
token is not given on the command line: `--token-stdin` reads one and keeps it in the file, which
only its owner may read; `--auth-params file:///PATH` or `env:NAME` keep where it is instead.

Source: contexts of pulsarctl, of which this has the words.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from pulsar_py.cli.answering.answers import ANSWER, JSON, answer, say
from pulsar_py.cli.answering.asking import YES, ask_at_a_terminal
from pulsar_py.cli.answering.json_lines import json_line
from pulsar_py.cli.connecting.contexts import (
    ContextError,
    Contexts,
    contexts_path,
    load_contexts,
    save_contexts,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def context() -> None:
    """Keep the addresses and credentials of clusters under names."""


def _path() -> Path:
    return contexts_path(os.environ)


def _load() -> Contexts:
    try:
        return load_contexts(_path())
    except ContextError as error:
        raise click.ClickException(str(error)) from None


def _save(contexts: Contexts) -> None:
    try:
        save_contexts(_path(), contexts)
    except ContextError as error:
        raise click.ClickException(str(error)) from None


@context.command()
@click.argument("name")
@click.option("--admin-url", metavar="URL", help="A broker's HTTP address.")
@click.option("--service-url", metavar="URL", help="A broker's address of the binary protocol.")
@click.option("--auth-plugin", metavar="NAME", help="token, tls, basic, oauth2 or Java's name.")
@click.option("--auth-params", metavar="PARAMS", help="Of the plugin; secrets by file: or env:.")
@click.option("--token-stdin", is_flag=True, help="Keep the token that standard input has.")
@click.option("--tls-trust-cert-path", metavar="FILE", help="Authorities to trust, as PEM.")
@click.option("--tls-allow-insecure", is_flag=True, help="Accept any certificate.")
@click.option(
    "--tls-disable-hostname-verification",
    is_flag=True,
    help="Accept certificates that do not name the host.",
)
@ANSWER
def add(
    *,
    name: str,
    output: str,
    admin_url: str | None,
    service_url: str | None,
    auth_plugin: str | None,
    auth_params: str | None,
    token_stdin: bool,
    tls_trust_cert_path: str | None,
    tls_allow_insecure: bool,
    tls_disable_hostname_verification: bool,
) -> None:
    """Add a context, or replace one; the first one is used from then on."""
    if token_stdin and (auth_plugin or auth_params):
        raise click.UsageError(
            "--token-stdin excludes --auth-plugin and --auth-params: give only one of them"
        )
    if auth_params is not None:
        from pulsar_py.cli.connecting.connection import refuse_secret

        try:
            refuse_secret(auth_plugin, auth_params)
        except ContextError as error:
            raise click.ClickException(str(error)) from None
    if token_stdin:
        token = sys.stdin.read().strip()
        if not token:
            raise click.ClickException(
                "standard input has no token: pipe it in, or leave out --token-stdin"
            )
        auth_plugin, auth_params = "token", f"token:{token}"
    given = {
        "webServiceUrl": admin_url,
        "brokerServiceUrl": service_url,
        "authPlugin": auth_plugin,
        "authParams": auth_params,
        "tlsTrustCertsFilePath": tls_trust_cert_path,
        "tlsAllowInsecureConnection": "true" if tls_allow_insecure else None,
        "tlsEnableHostnameVerification": "false" if tls_disable_hostname_verification else None,
    }
    contexts = _load()
    contexts.contexts[name] = {key: value for key, value in given.items() if value is not None}
    contexts.current = contexts.current or name
    _save(contexts)
    answer(output, _row(contexts, name))


@context.command()
@click.argument("name")
@ANSWER
def use(*, name: str, output: str) -> None:
    """Use a context from now on."""
    contexts = _load()
    _known(contexts, name)
    contexts.current = name
    _save(contexts)
    answer(output, _row(contexts, name))


@context.command("list")
@ANSWER
def list_contexts(*, output: str) -> None:
    """List all contexts; the one in use has a star."""
    contexts = _load()
    rows = [_row(contexts, name) for name in sorted(contexts.contexts)]
    for row in rows:
        if output == JSON:
            say(json_line(row))
            continue
        star = "*" if row["current"] else " "
        shown = (str(row[key]) for key in ("name", "adminUrl", "serviceUrl", "authPlugin")
                 if row[key] is not None)  # fmt: skip
        click.echo(f"{star} {'  '.join(shown)}")


@context.command()
@click.argument("name")
@YES
@ANSWER
def remove(*, name: str, output: str, is_confirmed: bool) -> None:
    """Remove a context; if it was in use, none is."""
    contexts = _load()
    _known(contexts, name)
    ask_at_a_terminal(
        f"This forgets the addresses and credentials of {name}.", is_confirmed=is_confirmed
    )
    row = _row(contexts, name) | {"current": False}
    del contexts.contexts[name]
    contexts.current = None if contexts.current == name else contexts.current
    _save(contexts)
    answer(output, row)


def _row(contexts: Contexts, name: str) -> dict[str, object]:
    """What is told of a context, which may hold a secret."""
    values = contexts.contexts[name]
    return {
        "name": name,
        "current": name == contexts.current,
        "adminUrl": values.get("webServiceUrl"),
        "serviceUrl": values.get("brokerServiceUrl"),
        "authPlugin": values.get("authPlugin"),
    }


def _known(contexts: Contexts, name: str) -> None:
    if name not in contexts.contexts:
        known = ", ".join(sorted(contexts.contexts)) or "none yet"
        raise click.ClickException(f"no context {name!r}; there are: {known}")
