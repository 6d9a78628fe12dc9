"""Finds a command's URLs and credentials in options, the environment and files (edge).

Each value is taken from the first of these that has it:

1. the command's own options;
2. `PULSAR_PY_ADMIN_URL` and `PULSAR_PY_SERVICE_URL`;
3. the file that `PULSAR_CLIENT_CONF` names (`client.conf` of Apache Pulsar);
4. the context in use (`pulsar-py context use`);
5. a broker on this machine.

A secret never stands on a command line, where every user of the machine can read it: a token comes
from a file (`file:///PATH`), a variable (`env:NAME`) or standard input (`stdin:`).

Source: PulsarAdminTool and PulsarClientTool in Pulsar's client tools.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from pulsar_py.admin_client.settings import AdminSettings
from pulsar_py.cli.connecting.contexts import (
    ContextError,
    client_conf,
    contexts_path,
    load_contexts,
)
from pulsar_py.common.foreign_json import parse_json

if TYPE_CHECKING:
    from pulsar_py.client.client import Client

ADMIN_URL: Final = "http://localhost:8080"
SERVICE_URL: Final = "pulsar://localhost:6650"
_SECRETS: Final = ("token:", "ey")
"""How a token begins that was put on a command line."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The URLs and credentials of one command; made by `connection`."""

    values: Mapping[str, str] = field(repr=False)
    """By the keys of `client.conf`."""

    @property
    def admin_url(self) -> str:
        """The URL of the REST API."""
        return self.values.get("webServiceUrl", ADMIN_URL)

    @property
    def service_url(self) -> str:
        """The URL of the binary protocol."""
        return self.values.get("brokerServiceUrl", SERVICE_URL)

    def flag(self, key: str, default: bool) -> bool:  # noqa: FBT001 - a default like any other
        """A value that is `true` or `false`."""
        return self.values.get(key, str(default)).lower() == "true"

    def admin_settings(self, timeout_seconds: float) -> AdminSettings:
        """For the admin client; reads the token's file.

        Raises:
            ContextError: The credentials are not what their plugin takes.
        """
        plugin = _plugin(self.values.get("authPlugin", ""))
        params = self.values.get("authParams", "")
        given: dict[str, Any] = {}  # Any: each argument has its own type
        own_certificate = self._own_certificate
        if plugin == "token":
            given["token"] = token_of(params)
        elif plugin == "basic":
            values = _pairs(params)
            given["user"] = f"{values.get('userId', '')}:{values.get('password', '')}"
        elif plugin == "tls":
            values = _pairs(params)
            own_certificate = values.get("tlsCertFile"), values.get("tlsKeyFile")
        elif plugin == "oauth2":
            given["headers"] = _oauth2_headers(params)
        elif plugin:
            raise ContextError(
                f"authPlugin {plugin!r} is unknown: expected token, tls, basic or oauth2, or the "
                "names of Java's classes for them"
            )
        return AdminSettings(
            url=self.admin_url,
            tls_trust_certs_file=self.values.get("tlsTrustCertsFilePath"),
            allows_insecure_tls=self.flag("tlsAllowInsecureConnection", default=False),
            validates_hostname=self.flag("tlsEnableHostnameVerification", default=True),
            timeout_seconds=timeout_seconds,
            tls_certificate_file=own_certificate[0],
            tls_key_file=own_certificate[1],
            **given,
        )

    @property
    def _own_certificate(self) -> tuple[str | None, str | None]:
        """The certificate that the client shows, and its key, unless a plugin has others."""
        return self.values.get("tlsCertificateFilePath"), self.values.get("tlsKeyFilePath")

    def client(self, **options: Any) -> Client:  # Any: those of `ClientOptions`
        """An asyncio client, not connected yet.

        Raises:
            ContextError, InvalidConfigurationError: The credentials or an option are not valid.
        """
        from pulsar_py.client.client import Client  # `admin` does without
        from pulsar_py.client.security.authentication_plugins import (
            authentication_from_plugin,
        )

        plugin = self.values.get("authPlugin", "")
        params = self.values.get("authParams", "")
        if _plugin(plugin) == "token":
            params = f"token:{token_of(params)}"
        elif params.startswith(("env:", "stdin:")):
            params = _read(params)
        authentication = authentication_from_plugin(plugin, params) if plugin else None
        if self.service_url.startswith(("pulsar+ssl:", "https:")):
            options |= {
                "tls_trust_certs_file_path": self.values.get("tlsTrustCertsFilePath"),
                "tls_allow_insecure_connection": self.flag(
                    "tlsAllowInsecureConnection", default=False
                ),
                "tls_validate_hostname": self.flag("tlsEnableHostnameVerification", default=True),
                "tls_certificate_file_path": self._own_certificate[0],
                "tls_private_key_file_path": self._own_certificate[1],
            }
        return Client(self.service_url, authentication, **options)


def connection(options: Mapping[str, str | None], environment: Mapping[str, str]) -> Connection:
    """Find out where to connect; `options` have the keys of `client.conf`.

    Raises:
        ContextError: A file can't be read, an option holds a secret, or standard input has none.
    """
    params = options.get("authParams")
    if params is not None:
        refuse_secret(options.get("authPlugin"), params)
    values = dict(load_contexts(contexts_path(environment)).used())
    if conf := environment.get("PULSAR_CLIENT_CONF"):
        values.update(client_conf(Path(conf)))
    for key, name in (
        ("webServiceUrl", "PULSAR_PY_ADMIN_URL"),
        ("brokerServiceUrl", "PULSAR_PY_SERVICE_URL"),
    ):
        if environment.get(name):
            values[key] = environment[name]
    values.update({key: value for key, value in options.items() if value is not None})
    if values.get("authParams", "").strip().startswith("stdin:"):
        # Now, as it can be read once: a command may have clients of both protocols.
        values["authParams"] = _read("stdin:").strip()
        if not values["authParams"]:
            raise ContextError("authParams: standard input is empty: pipe the token in")
    return Connection(values)


def refuse_secret(plugin: str | None, params: str) -> None:
    """Refuse a token or password that was put on a command line.

    Raises:
        ContextError: It holds one.
    """
    text = params.lstrip()
    is_secret = text.startswith(_SECRETS) or "password" in text or '"token"' in text
    if is_secret or (_plugin(plugin or "") == "basic" and not text.startswith("file:")):
        raise ContextError(
            "--auth-params holds a secret, which every user of this machine could read: give "
            "file:///PATH, env:NAME or stdin: instead, or keep it in a client.conf or a context"
        )


def token_of(params: str) -> str:
    """The token that `authParams` says or points to.

    Raises:
        ContextError: There is none.
    """
    given = params.strip()
    if given.startswith("{"):
        given = _pairs(given).get("token", "")
    token = _read(given) if given.startswith(("file:", "env:", "stdin:")) else given
    token = token.strip().removeprefix("token:")
    if not token and given.startswith(("file:", "env:")):
        raise ContextError(f"authParams: {given} is empty; expected the token in it")
    if not token:
        raise ContextError("authParams: expected file:///PATH, env:NAME, stdin: or token:TOKEN")
    return token


def _read(place: str) -> str:
    """The text of a file, a variable, or standard input, which `authParams` names."""
    import os  # beside the one line that needs the whole environment

    kind, _, rest = place.partition(":")
    if kind == "stdin":
        return sys.stdin.read()
    if kind == "env":
        if rest not in os.environ:
            raise ContextError(
                f"authParams: the variable {rest} is not set; expected the token in it"
            )
        return os.environ[rest]
    path = Path(unquote(urlsplit(place).path))
    try:
        return path.read_text()
    except OSError as error:
        raise ContextError(f"authParams: {path}: {error.strerror}") from error


def _plugin(name: str) -> str:
    """`token`, `tls`, `basic` or `oauth2`, for Java's names too; empty for none."""
    return name.rpartition(".")[2].lower().removeprefix("authentication")


def _pairs(params: str) -> dict[str, str]:
    text = _read(params) if params.startswith(("file:", "env:", "stdin:")) else params
    try:
        if text.lstrip().startswith("{"):
            return {str(name): str(value) for name, value in parse_json(text).items()}
    except ValueError as error:
        raise ContextError(f"authParams: expected a JSON object: {error}") from None
    parts = (each.partition(":") for each in text.split(",") if each.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


def _oauth2_headers(params: str) -> dict[str, str]:
    """The headers of a token that is fetched from the issuer now."""
    import asyncio  # OAuth2 alone needs it

    from pulsar_py.client.security.authentication_oauth2 import (
        AuthenticationOauth2,
    )

    async def fetch() -> dict[str, str]:
        authentication = AuthenticationOauth2(params)
        try:
            return dict(await authentication.http_headers())
        finally:
            await authentication.close()

    return asyncio.run(fetch())
