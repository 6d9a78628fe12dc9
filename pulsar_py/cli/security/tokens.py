"""The commands of `pulsar-py tokens`: keys, and tokens signed with them (JSON Web Tokens).

Here are the commands and their options; `token_jobs` does the work, and is imported when a command
runs. Exit codes: 0, or 1 with the reason in one line; 2 for wrong usage.

Source: TokensCliUtils (`bin/pulsar tokens`) in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pulsar_py.cli.answering.answers import ANSWER, JSON, answer, output_option

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give

FILE = click.Path(path_type=Path, dir_okay=False)
KEY_NOTATIONS = "a file's path, file:///path, data:;base64,… or base64."
SECRET_KEY = click.option("-sk", "--secret-key", help=f"The secret key: {KEY_NOTATIONS}")
KEY_ALGORITHM = click.option(
    "-a",
    "--signature-algorithm",
    "algorithm",
    help="Of a key pair; a secret key's follows from its length  [default: RS256, or that of the "
    "key's curve].",
)


class TokensGroup(click.Group):
    """A group of commands that print an error of ours as one line."""

    def invoke(self, ctx: click.Context) -> Any:  # Any: click's
        """Run the command that was named."""
        from pulsar_py.common.errors import PulsarError

        try:
            return super().invoke(ctx)
        except (PulsarError, ValueError) as error:
            raise click.ClickException(str(error)) from None


def _token(command: F) -> F:
    """The ways to hand over a token."""
    for option in (
        click.argument("token", required=False),
        click.option("-i", "--stdin", "is_stdin", is_flag=True, help="Read it from there."),
        click.option("-f", "--token-file", type=FILE, help="Read it from this file."),
    ):
        command = option(command)
    return command


@click.group(cls=TokensGroup)
def tokens() -> None:
    """Make keys and tokens for AuthenticationProviderToken, and look at tokens."""


@tokens.command("create-secret-key")
@click.option(
    "-a",
    "--signature-algorithm",
    "algorithm",
    default="HS256",
    show_default=True,
    help="HS256, HS384 or HS512, for 32, 48 or 64 bytes.",
)
@click.option(
    "-o", "--output", "file", type=FILE, help="File to write  [default: standard output]."
)
@click.option("-b", "--base64", "is_base64", is_flag=True, help="Write it in base64.")
@output_option(names=["--format"])
def create_secret_key(algorithm: str, file: Path | None, output: str, *, is_base64: bool) -> None:
    """A new key with which tokens are both signed and checked.

    The file can be read by you alone. With --base64 the text is the value of a setting or option;
    as a file's contents, it would be a key itself. With --format json a key that is not written to
    a file is in base64.
    """
    from pulsar_py.cli.security import token_jobs

    is_printed_json = file is None and output == JSON
    key = token_jobs.new_secret_key(algorithm, is_base64=is_base64 or is_printed_json)
    if file is not None:
        token_jobs.write_secret(file, key)
        answer(output, {"algorithm": algorithm, "file": str(file)})
    elif is_printed_json:
        answer(output, {"algorithm": algorithm, "base64": key.decode()})
    else:
        click.echo(key, nl=False)


@tokens.command("create-key-pair")
@click.option(
    "-a",
    "--signature-algorithm",
    "algorithm",
    default="RS256",
    show_default=True,
    help="RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or ES512.",
)
@click.option("--output-private-key", type=FILE, required=True, help="File for the private key.")
@click.option("--output-public-key", type=FILE, required=True, help="File for the public key.")
@ANSWER
def create_key_pair(
    algorithm: str, output_private_key: Path, output_public_key: Path, output: str
) -> None:
    """A new private key, which signs tokens, and its public key, with which brokers check them.

    Both are in DER. The private key's file can be read by you alone.
    """
    from pulsar_py.cli.security import token_jobs

    private, public = token_jobs.new_key_pair(algorithm)
    token_jobs.write_secret(output_private_key, private)
    token_jobs.write_public(output_public_key, public)
    told = {"privateKey": str(output_private_key), "publicKey": str(output_public_key)}
    answer(output, {"algorithm": algorithm, **told})


@tokens.command()
@KEY_ALGORITHM
@click.option("-s", "--subject", required=True, help="The role that the token proves.")
@click.option(
    "-e",
    "--expiry-time",
    help="When it ends, from now: 30s, 5m, 1h, 3d, 2w or 2y; a number alone is seconds  "
    "[default: never].",
)
@SECRET_KEY
@click.option("-pk", "--private-key", help=f"The private key: {KEY_NOTATIONS}")
@click.option(
    "-hs", "--headers", metavar="NAME=VALUE", multiple=True, help="A header; may be repeated."
)
@ANSWER
def create(
    *,
    output: str,
    algorithm: str | None,
    subject: str,
    expiry_time: str | None,
    secret_key: str | None,
    private_key: str | None,
    headers: tuple[str, ...],
) -> None:
    """A new token, on standard output."""
    from pulsar_py.cli.security import token_jobs
    from pulsar_py.common.loops.clock import SystemClock

    key = token_jobs.signing_key(secret_key, private_key, algorithm)
    now_seconds = SystemClock().wall_time_millis() // 1000
    request = token_jobs.TokenRequest(
        subject=subject,
        expires_at_seconds=(
            None if expiry_time is None else now_seconds + token_jobs.parse_expiry(expiry_time)
        ),
        headers=token_jobs.parse_headers(headers),
    )
    token = token_jobs.signed(request, key)
    answer(output, {"token": token}, token)


@tokens.command()
@_token
@ANSWER
def show(token: str | None, token_file: Path | None, output: str, *, is_stdin: bool) -> None:
    """Headers and claims of a token, which is not checked.

    The token may also be in the environment variable TOKEN.
    """
    from pulsar_py.cli.security import token_jobs

    given = token_jobs.read_token(token, token_file, is_stdin=is_stdin)
    headers, claims = token_jobs.shown(given)
    answer(
        output,
        {"headers": headers, "claims": claims},
        f"{_compact(headers)}\n---\n{_compact(claims)}",
    )


@tokens.command()
@_token
@KEY_ALGORITHM
@SECRET_KEY
@click.option("-pk", "--public-key", help=f"The public key: {KEY_NOTATIONS}")
@ANSWER
def validate(
    *,
    output: str,
    token: str | None,
    token_file: Path | None,
    algorithm: str | None,
    secret_key: str | None,
    public_key: str | None,
    is_stdin: bool,
) -> None:
    """Check a token's signature and times, and print its claims.

    The token may also be in the environment variable TOKEN.
    """
    from pulsar_py.cli.security import token_jobs

    key = token_jobs.verification_key(secret_key, public_key, algorithm)
    found = token_jobs.read_token(token, token_file, is_stdin=is_stdin)
    claims = token_jobs.validated(found, key)
    answer(output, {"claims": claims}, _compact(claims))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
