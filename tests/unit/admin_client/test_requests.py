"""What is sent, and what answers mean."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.admin_client import AdminError
from pulsar_py.admin_client.requests import Requests
from pulsar_py.admin_client.settings import AdminSettings
from pulsar_py.common.errors import (
    AuthenticationError,
    AuthorizationError,
    ConfigurationError,
    ConnectError,
    TopicNotFoundError,
)
from pulsar_py.testing.network import run_simulated
from tests.certificates import Certificate
from tests.http_server import Answer, Asked, HttpServer


def send(
    answer: Callable[[Asked], Answer], method: str = "GET", body: object = None, **settings: Any
) -> tuple[Any, list[Asked]]:
    """What `Requests.send` gives where a server answers so, and what that was asked."""

    async def work() -> tuple[Any, list[Asked]]:
        async with HttpServer(answer).running() as server:
            requests = Requests(AdminSettings(url=server.url, **settings))
            try:
                return await requests.send(method, "/admin/v2/x", body), server.asked
            finally:
                await requests.close()

    return run_simulated(work())


def test_hosts_of_a_url() -> None:
    settings = AdminSettings(url="http://a:8080,b:8081/")
    assert settings.base_urls() == ["http://a:8080", "http://b:8081"]


@pytest.mark.parametrize("url", ["a:8080", "pulsar://a:6650", "http://", ""])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigurationError, match="expected http"):
        Requests(AdminSettings(url=url))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"user": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({}, None),
    ],
)
def test_credentials(given: dict[str, str], expected: str | None) -> None:
    _, asked = send(lambda _: Answer(), **given)
    assert asked[0].headers.get("authorization") == expected


def test_a_body_is_json() -> None:
    answer, asked = send(lambda _: Answer(204), "PUT", {"a": 1}, headers={"X-Mine": "1"})
    assert answer is None
    assert (asked[0].method, asked[0].body) == ("PUT", b'{"a": 1}')
    assert asked[0].headers["content-type"] == "application/json"
    assert asked[0].headers["x-mine"] == "1"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, AuthenticationError),
        (403, AuthorizationError),
        (404, TopicNotFoundError),
        (409, AdminError),
        (500, AdminError),
    ],
)
def test_statuses_become_errors(status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"GET /admin/v2/x: {status} because"):
        send(lambda _: Answer.json({"reason": "because"}, status))


def test_the_next_host_is_asked_and_remembered() -> None:
    async def work() -> None:
        server = HttpServer(lambda _: Answer.json(["public"]))
        async with server.running():
            live = server.url.removeprefix("http://")
            requests = Requests(AdminSettings(url=f"http://localhost:1,{live}"))
            for _ in range(2):
                assert await requests.send("GET", "/admin/v2/tenants") == ["public"]
            await requests.close()
        assert server.connections_count == 1

    run_simulated(work())


def test_nobody_answers() -> None:
    async def work() -> None:
        settings = AdminSettings(url="http://localhost:1,localhost:2")
        await Requests(settings).send("GET", "/")

    with pytest.raises(ConnectError, match=r"localhost:1/.*localhost:2/"):
        run_simulated(work())


def test_redirects_are_followed_up_to_a_limit() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target.endswith("x"):
            return Answer(307, headers={"Location": "/there"})
        return Answer.json("found")

    assert send(answer)[0] == "found"
    with pytest.raises(ConnectError, match="more than 5 redirects"):
        send(lambda asked: Answer(307, headers={"Location": asked.target + "x"}))


async def test_certificates_have_to_name_the_host(tmp_path: Path) -> None:
    certificate = Certificate(tmp_path, "server", "other.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate_path, certificate.key_path)
    async with HttpServer(lambda _: Answer.json("ok"), context).running() as server:
        trust = certificate.certificate_path
        strict = Requests(AdminSettings(url=server.url, tls_trust_certs_file=trust))
        with pytest.raises(ConnectError, match=r"[Hh]ostname mismatch"):
            await strict.send("GET", "/")
        lax = Requests(AdminSettings(url=server.url, allows_insecure_tls=True))
        assert await lax.send("GET", "/") == "ok"
        await lax.close()


def test_a_file_without_authorities_is_named() -> None:
    with pytest.raises(ConfigurationError, match="/nowhere"):
        Requests(AdminSettings(url="https://a", tls_trust_certs_file="/nowhere"))


def test_secrets_are_not_shown() -> None:
    settings = AdminSettings(url="http://a", token="abcd", user="me:efgh", headers={"x": "ijkl"})
    assert not any(secret in repr(settings) for secret in ("abcd", "efgh", "ijkl"))
