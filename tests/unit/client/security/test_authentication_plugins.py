"""Java's plugin names and parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_py.client.security.authentication import (
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsar_py.client.security.authentication_oauth2 import AuthenticationOauth2
from pulsar_py.client.security.authentication_plugins import authentication_from_plugin
from pulsar_py.common.errors import InvalidConfigurationError

JAVA = "org.apache.pulsar.client.impl.auth."


@pytest.mark.parametrize("params", ["token:abc", "abc", '{"token": "abc"}'])
@pytest.mark.parametrize("plugin", [JAVA + "AuthenticationToken", "token"])
async def test_token(plugin: str, params: str) -> None:
    made = authentication_from_plugin(plugin, params)

    assert isinstance(made, AuthenticationToken)
    assert await made.authenticate() == b"abc"


async def test_a_token_s_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    made = authentication_from_plugin("token", f"file://{path}")

    for text in ("one\n", "two\n"):
        path.write_text(text)
        assert await made.authenticate() == text.strip().encode()


@pytest.mark.parametrize(
    "params",
    ["tlsCertFile:/c.pem,tlsKeyFile:/k.pem", '{"tlsCertFile":"/c.pem","tlsKeyFile":"/k.pem"}'],
)
def test_tls(params: str) -> None:
    made = authentication_from_plugin(JAVA + "AuthenticationTls", params)

    assert isinstance(made, AuthenticationTLS)
    assert made.tls_certificate_paths == ("/c.pem", "/k.pem")


async def test_basic() -> None:
    made = authentication_from_plugin(
        JAVA + "AuthenticationBasic", '{"userId": "u", "password": "p"}'
    )

    assert isinstance(made, AuthenticationBasic)
    assert await made.authenticate() == b"u:p"


def test_oauth2() -> None:
    made = authentication_from_plugin(
        JAVA + "oauth2.AuthenticationOAuth2", '{"issuerUrl": "https://i", "privateKey": "/k"}'
    )

    assert isinstance(made, AuthenticationOauth2)


@pytest.mark.parametrize(
    ("plugin", "params", "problem"),
    [
        (JAVA + "AuthenticationSasl", "", "is unknown, expected one of basic, oauth2, tls, token"),
        ("tls", "tlsCertFile:/c.pem", "tlsKeyFile is missing"),
        ("basic", "{", "authParams: not JSON"),
    ],
)
def test_what_is_not_known_is_named(plugin: str, params: str, problem: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=problem):
        authentication_from_plugin(plugin, params)
