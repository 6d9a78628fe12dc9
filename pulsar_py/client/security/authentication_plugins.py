"""Creates authentication methods from the names of Java's plugins, as `client.conf` has them.

    org.apache.pulsar.client.impl.auth.AuthenticationToken           token:<jwt> | file://<path>
    org.apache.pulsar.client.impl.auth.AuthenticationTls             tlsCertFile:..,tlsKeyFile:..
    org.apache.pulsar.client.impl.auth.AuthenticationBasic           {"userId": .., "password": ..}
    org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2   {"issuerUrl": .., ..}

The last part of the name is enough, and the short names `token`, `tls`, `basic`, `oauth2` work too.

Source: AuthenticationFactory in Pulsar's Java client; `authPlugin`, `authParams` of client.conf.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pulsar_py.client.security.authentication import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
    json_params,
)
from pulsar_py.client.security.authentication_oauth2 import AuthenticationOauth2
from pulsar_py.common.errors import InvalidConfigurationError

__all__ = ["authentication_from_plugin"]


def authentication_from_plugin(plugin: str, params: str) -> Authentication:
    """Create the authentication that `authPlugin` and `authParams` describe.

    Raises:
        InvalidConfigurationError: The plugin is unknown, or its parameters are not valid.
    """
    make = _PLUGINS.get(plugin.rpartition(".")[2].lower().removeprefix("authentication"))
    if make is None:
        raise InvalidConfigurationError(
            f"authPlugin: {plugin!r} is unknown, expected one of {', '.join(sorted(_PLUGINS))}"
        )
    return make(params)


def _token(params: str) -> Authentication:
    if params.startswith("file:"):
        path = Path(unquote(urlsplit(params).path))

        async def read() -> str:
            return await asyncio.to_thread(path.read_text)

        return AuthenticationToken(read)
    values = _pairs(params) if params.startswith("{") else {}
    return AuthenticationToken(values.get("token", params).removeprefix("token:"))


def _tls(params: str) -> Authentication:
    values = _pairs(params)
    return AuthenticationTLS(_value(values, "tlsCertFile"), _value(values, "tlsKeyFile"))


def _basic(params: str) -> Authentication:
    values = _pairs(params)
    user = values.get("userId") or _value(values, "username")
    return AuthenticationBasic(user, _value(values, "password"))


_PLUGINS: Final[Mapping[str, Callable[[str], Authentication]]] = {
    "token": _token,
    "tls": _tls,
    "basic": _basic,
    "oauth2": AuthenticationOauth2,
}


def _pairs(params: str) -> Mapping[str, str]:
    if params.lstrip().startswith("{"):
        return {name: str(value) for name, value in json_params("authParams", params).items()}
    pairs = (each.partition(":") for each in params.split(",") if each)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _value(values: Mapping[str, str], name: str) -> str:
    if not (value := values.get(name)):
        raise InvalidConfigurationError(f"authParams: {name} is missing")
    return value
