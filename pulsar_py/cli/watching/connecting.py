"""Options of commands that watch a cluster, and the clients that are made of them (edge).

What is not given comes from where `pulsar_py.cli.connecting` has it: variables, `client.conf`, the
context in use. A secret never stands on the command line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from pulsar_py.admin_client import AdminSettings
    from pulsar_py.cli.connecting.connection import Connection
    from pulsar_py.client import Client

__all__ = ["CONNECTION", "admin_settings_of", "check_namespace", "client_of", "connection_of"]

F = TypeVar("F", bound=Callable[..., Any])  # Any: click commands take what their options give

TIMEOUT_SECONDS: Final = 30.0
"""For each request of the REST API."""

_KEYS: Final = {
    "service_url": "brokerServiceUrl",
    "admin_url": "webServiceUrl",
    "auth_plugin": "authPlugin",
    "auth_params": "authParams",
    "tls_trust_cert_path": "tlsTrustCertsFilePath",
}
"""Options, and the keys of `client.conf` that mean the same."""


def CONNECTION(command: F) -> F:  # noqa: N802 - used as the constants of options are
    """The options of a connection; the command gets them by name."""
    for option in reversed(
        (
            click.option("--service-url", help="Where brokers listen  [default: of the context]."),
            click.option("--admin-url", help="Where their REST API is  [default: the same]."),
            click.option("--auth-plugin", help="token, tls, basic or oauth2."),
            click.option(
                "--auth-params", help="Its parameters; a token as file:///PATH, env:NAME or stdin:."
            ),
            click.option(
                "--tls-trust-cert-path",
                help="PEM file of the authorities to trust  [default: the system's].",
            ),
        )
    ):
        command = option(command)
    return command


def connection_of(options: Mapping[str, Any]) -> Connection:  # Any: click's values
    """Where a command connects.

    Raises:
        ConfigurationError: A file can't be read, or an option holds a secret.
    """
    from pulsar_py.cli.connecting.connection import connection
    from pulsar_py.cli.connecting.contexts import ContextError
    from pulsar_py.common.errors import ConfigurationError

    try:
        return connection({key: options[name] for name, key in _KEYS.items()}, os.environ)
    except ContextError as error:
        raise ConfigurationError(str(error)) from None


def admin_settings_of(connection: Connection) -> AdminSettings:
    """The settings of the admin client.

    Raises:
        ConfigurationError: The credentials can't be read.
    """
    from pulsar_py.cli.connecting.contexts import ContextError
    from pulsar_py.common.errors import ConfigurationError

    try:
        return connection.admin_settings(TIMEOUT_SECONDS)
    except ContextError as error:
        raise ConfigurationError(str(error)) from None


def check_namespace(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The value of an option that names a namespace.

    Raises:
        BadParameter: It is no such name.
    """
    from pulsar_py.common.errors import InvalidNamespaceNameError
    from pulsar_py.common.names import NamespaceName

    try:
        return None if value is None else str(NamespaceName.parse(value))
    except InvalidNamespaceNameError as error:
        raise click.BadParameter(str(error), param=option) from None


def client_of(connection: Connection) -> Client:
    """A client of the binary protocol, to be closed.

    Raises:
        ConfigurationError: The credentials can't be read.
    """
    from pulsar_py.cli.connecting.contexts import ContextError
    from pulsar_py.common.errors import ConfigurationError

    try:
        return connection.client()
    except ContextError as error:
        raise ConfigurationError(str(error)) from None
