"""Where a command connects, and with which credentials."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from pulsar_py.cli.connecting.connection import Connection, connection, token_of
from pulsar_py.cli.connecting.contexts import ContextError, Contexts, save_contexts

TOKEN = "eyJhbGciOiJIUzI1NiJ9.e30.x"


def test_each_value_comes_from_the_nearest_place(tmp_path: Path) -> None:
    contexts = tmp_path / "contexts.json"
    conf = tmp_path / "client.conf"
    environment = {"PULSAR_PY_CONTEXTS": str(contexts)}
    assert connection({}, environment).admin_url == "http://localhost:8080"
    assert connection({}, environment).service_url == "pulsar://localhost:6650"
    save_contexts(contexts, Contexts("c", {"c": {
        "webServiceUrl": "http://context:1", "brokerServiceUrl": "pulsar://context:2"}}))  # fmt: skip
    assert connection({}, environment).admin_url == "http://context:1"
    conf.write_text("webServiceUrl=http://conf:1\n")
    environment["PULSAR_CLIENT_CONF"] = str(conf)
    assert connection({}, environment).admin_url == "http://conf:1"
    assert connection({}, environment).service_url == "pulsar://context:2"
    environment["PULSAR_PY_ADMIN_URL"] = "http://environment:1"
    assert connection({}, environment).admin_url == "http://environment:1"
    given = {"webServiceUrl": "http://option:1", "authPlugin": None}
    assert connection(given, environment).admin_url == "http://option:1"


@pytest.mark.parametrize(
    ("plugin", "params"),
    [
        ("token", f"token:{TOKEN}"),
        ("org.apache.pulsar.client.impl.auth.AuthenticationToken", TOKEN),
        ("token", f'{{"token": "{TOKEN}"}}'),
        ("basic", '{"userId": "a", "password": "b"}'),
        ("basic", "userId:a,password:b"),
    ],
)
def test_no_secret_stands_on_a_command_line(plugin: str, params: str) -> None:
    with pytest.raises(ContextError, match="every user of this machine"):
        connection({"authPlugin": plugin, "authParams": params}, {})


def test_a_token_comes_from_a_file_a_variable_or_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "to ken"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
    for params in (f"file://{tmp_path}/to%20ken", "env:MY_TOKEN", "stdin:"):
        given = {"authPlugin": "token", "authParams": params}
        settings = connection(given, {"PULSAR_PY_CONTEXTS": "/none"}).admin_settings(5)
        assert settings.token == TOKEN
        assert TOKEN not in repr(settings)
    assert token_of(f"token:{TOKEN}") == token_of(TOKEN) == token_of(f'{{"token": "{TOKEN}"}}')
    for missing in ("", "token:", f"file://{tmp_path}/none", "env:NO_SUCH_VARIABLE"):
        with pytest.raises(ContextError):
            token_of(missing)


def test_both_clients_of_a_command_have_the_token_of_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"authPlugin": "token", "authParams": "stdin:"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
    found = connection(given, {"PULSAR_PY_CONTEXTS": "/none"})
    assert found.admin_settings(5).token == found.admin_settings(5).token == TOKEN
    with pytest.raises(ContextError, match="standard input is empty"):
        connection(given, {"PULSAR_PY_CONTEXTS": "/none"})


def test_a_file_or_variable_without_a_token_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").touch()
    monkeypatch.setenv("MY_TOKEN", "")
    for params in (f"file://{tmp_path}/token", "env:MY_TOKEN"):
        with pytest.raises(ContextError, match=f"{params} is empty"):
            token_of(params)


def test_credentials_of_files_reach_the_client(tmp_path: Path) -> None:
    found = Connection(
        {
            "webServiceUrl": "https://a:8443",
            "authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationTls",
            "authParams": "tlsCertFile:/c.pem,tlsKeyFile:/k.pem",
            "tlsTrustCertsFilePath": "/ca.pem",
            "tlsAllowInsecureConnection": "true",
            "tlsEnableHostnameVerification": "false",
        }
    ).admin_settings(7)
    assert (found.url, found.timeout_seconds) == ("https://a:8443", 7)
    assert (found.tls_certificate_file, found.tls_key_file) == ("/c.pem", "/k.pem")
    assert found.tls_trust_certs_file == "/ca.pem"
    assert found.allows_insecure_tls
    assert not found.validates_hostname
    basic = Connection({"authPlugin": "basic", "authParams": '{"userId": "a", "password": "b"}'})
    assert basic.admin_settings(7).user == "a:b"
    with pytest.raises(ContextError, match="unknown"):
        Connection({"authPlugin": "x"}).admin_settings(7)
