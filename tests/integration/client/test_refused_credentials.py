"""Credentials that a broker does not take: whoever shows them hears so at once."""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import bcrypt
import jwt
import pytest
from click.testing import CliRunner

from pulsar_py import blocking
from pulsar_py.admin_client import topics
from pulsar_py.admin_client.client import AdminClient
from pulsar_py.admin_client.settings import AdminSettings
from pulsar_py.cli.commands import main
from pulsar_py.client import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
    Client,
)
from pulsar_py.common.errors import AuthenticationError, UnusableCredentialsError
from pulsar_py.testing import BrokerThread
from tests.certificates import Authority

AT_ONCE_SECONDS = 10.0
"""A third of the operation timeout, after which the client would give up anyhow."""
KEY = secrets.token_bytes(32)


def token(key: bytes = KEY, **claims: object) -> str:
    return jwt.encode({"sub": "me", **claims}, key, "HS256")


WRONG: dict[str, Authentication | None] = {
    "none": None,
    "no token": AuthenticationToken("nonsense"),
    "another key": AuthenticationToken(token(secrets.token_bytes(32))),
    "expired": AuthenticationToken(token(exp=int(time.time()) - 60)),
    "wrong password": AuthenticationBasic("ann", "wrong"),
    "unknown user": AuthenticationBasic("bob", "secret"),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    """A broker that takes tokens and passwords."""
    passwords = tmp_path_factory.mktemp("guarded") / "passwords"
    passwords.write_text("ann:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode() + "\n")
    passwords.chmod(0o600)
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": "token,basic",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "basicAuthConf": str(passwords),
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
    }
    with BrokerThread(config=config) as broker:
        yield broker


CALLS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create_producer": lambda client: client.create_producer("t"),
    "subscribe": lambda client: client.subscribe("t", "s"),
    "create_reader": lambda client: client.create_reader("t"),
    "create_table_view": lambda client: client.create_table_view("t"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_every_call_of_the_client_fails_at_once(guarded: BrokerThread, name: str) -> None:
    shown = WRONG[name]
    text = "no authentication" if shown is None else f"authenticated by '{shown.method_name}'"
    async with asyncio.timeout(AT_ONCE_SECONDS):
        for url in (guarded.service_url, guarded.web_service_url):
            async with Client(url, authentication=shown) as client:
                for call in CALLS.values():
                    with pytest.raises(AuthenticationError) as raised:
                        await call(client)
                    assert "HTTP status 401" in str(raised.value) or text in str(raised.value)


async def headers_of(shown: Authentication | None) -> dict[str, str]:
    """What an HTTP client sends with these credentials."""
    return {} if shown is None else dict(await shown.http_headers())


@pytest.mark.parametrize("name", WRONG)
def test_the_blocking_client_and_the_administration_too(guarded: BrokerThread, name: str) -> None:
    began_at = time.monotonic()
    with (
        blocking.Client(guarded.service_url, authentication=WRONG[name]) as client,
        pytest.raises(AuthenticationError),
    ):
        client.subscribe("t", "s")
    settings = AdminSettings(
        url=guarded.web_service_url, headers=asyncio.run(headers_of(WRONG[name]))
    )
    with AdminClient(settings) as admin, pytest.raises(AuthenticationError):
        admin.call(topics.topics("public/default"))
    assert time.monotonic() - began_at < AT_ONCE_SECONDS


@pytest.mark.parametrize("shown", ["", "token:nonsense"])
@pytest.mark.parametrize(
    "words",
    [
        "client --url {service} produce t -m x",
        "client --url {service} consume t -s s",
        "client --url {service} read t",
        "perf consume -u {service} t",
        "tail --service-url {service} --admin-url {web} t",
        "admin --admin-url {web} topics list public/default",
        "doctor --service-url {service} --admin-url {web}",
    ],
)
def test_commands_say_it_and_end(
    guarded: BrokerThread, words: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOWN", shown)
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    monkeypatch.setenv("PULSAR_PY_CONTEXTS", "/none")
    given = words.format(service=guarded.service_url, web=guarded.web_service_url).split()
    if shown:
        plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"
        options = ["--auth-plugin", plugin, "--auth-params", "env:SHOWN"]
        place = given.index("t") if "perf" in given or "tail" in given else 1
        given[place:place] = options
    began_at = time.monotonic()
    done = CliRunner().invoke(main, given)
    assert time.monotonic() - began_at < AT_ONCE_SECONDS
    assert done.exit_code == 1
    assert "Failed to authenticate" in done.output or "401" in done.output
    assert "Traceback" not in done.output


async def test_a_token_that_nobody_can_get_is_not_waited_for(guarded: BrokerThread) -> None:
    def missing() -> str:
        return Path("/nowhere/token").read_text()

    async with (
        asyncio.timeout(AT_ONCE_SECONDS),
        Client(guarded.service_url, authentication=AuthenticationToken(missing)) as client,
    ):
        with pytest.raises(UnusableCredentialsError, match="/nowhere/token"):
            await client.create_producer("t")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_certificate_of_a_stranger_is_refused_at_once(tmp_path: Path, version: str) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost")
    config = {
        "authenticationEnabled": True,
        "authenticationProviders": "tls",
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "tlsTrustCertsFilePath": authority.path,
        "tlsRequireTrustedClientCertOnConnect": True,
        "tlsProtocols": version,
    }
    stranger = AuthenticationTLS(*Authority(tmp_path, "stranger").issue("me"))
    with BrokerThread(config=config) as broker:
        for shown in (stranger, None):
            for url in (broker.service_url_tls, broker.web_service_url_tls):
                assert url is not None
                async with (
                    asyncio.timeout(AT_ONCE_SECONDS),
                    Client(
                        url, authentication=shown, tls_trust_certs_file_path=authority.path
                    ) as client,
                ):
                    with pytest.raises(AuthenticationError, match="certificate"):
                        await client.create_producer("t")
