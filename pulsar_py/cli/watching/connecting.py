"""How commands that watch a cluster reach it: their options, and the clients made of them (edge).

A token comes from a file or from the environment, never from the command line, where every user of
the machine could read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from pulsar_py.admin_client import AdminSettings
    from pulsar_py.client import Client

__all__ = ["CONNECTION", "Connection"]

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give

SERVICE_URL_VARIABLE: Final = "PULSAR_PY_SERVICE_URL"
ADMIN_URL_VARIABLE: Final = "PULSAR_PY_ADMIN_URL"
TOKEN_VARIABLE: Final = "PULSAR_PY_TOKEN"  # noqa: S105 - a variable's name


def CONNECTION(command: F) -> F:  # noqa: N802 - used as the constants of options are
    """The options of a connection; the command gets them by name."""
    for option in reversed(
        (
            click.option(
                "--service-url",
                envvar=SERVICE_URL_VARIABLE,
                default="pulsar://localhost:6650",
                show_default=True,
                show_envvar=True,
                help="Where brokers listen.",
            ),
            click.option(
                "--admin-url",
                envvar=ADMIN_URL_VARIABLE,
                default="http://localhost:8080",
                show_default=True,
                show_envvar=True,
                help="Where their REST API is.",
            ),
            click.option(
                "--token-file",
                type=click.Path(path_type=Path, dir_okay=False, exists=True),
                help=f"File with a token  [default: the variable {TOKEN_VARIABLE}, or none].",
            ),
            click.option(
                "--tls-trust-certs",
                type=click.Path(path_type=Path, dir_okay=False, exists=True),
                help="PEM file of the authorities to trust  [default: the system's].",
            ),
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where a cluster is, and with which credentials it is asked."""

    service_url: str
    admin_url: str
    token_file: Path | None = None
    token: str | None = field(default=None, repr=False)
    tls_trust_certs: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Connection:  # Any: click's values
        """Of a command's options and the environment."""
        return cls(
            service_url=options["service_url"],
            admin_url=options["admin_url"],
            token_file=options["token_file"],
            token=os.environ.get(TOKEN_VARIABLE) or None,
            tls_trust_certs=options["tls_trust_certs"],
        )

    def admin_settings(self) -> AdminSettings:
        """For a client of the admin API.

        Raises:
            ConfigurationError: The token's file can't be read.
        """
        from pulsar_py.admin_client import AdminSettings  # noqa: PLC0415 - for --help

        return AdminSettings(
            url=self.admin_url, token=self._token(), tls_trust_certs_file=self.tls_trust_certs
        )

    def client(self) -> Client:
        """A client of the binary protocol, to be closed."""
        from pulsar_py.client import AuthenticationToken, Client  # noqa: PLC0415 - for --help

        token = self._token()
        certificates = self.tls_trust_certs
        return Client(
            self.service_url,
            None if token is None else AuthenticationToken(token),
            tls_trust_certs_file_path=None if certificates is None else str(certificates),
        )

    def _token(self) -> str | None:
        from pulsar_py.common.errors import ConfigurationError  # noqa: PLC0415 - for --help

        if self.token_file is None:
            return self.token
        try:
            return self.token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"--token-file {self.token_file}: {error}") from error
