"""Requests over HTTP: answers of all kinds, kept connections, redirects, bad servers."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import (
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    RemoteProtocolError,
)
from pulsar_py.common.network.http_client import (
    MAX_IDLE_CONNECTIONS,
    HttpClient,
    HttpRedirectError,
    HttpRequest,
    HttpResponse,
    http_request,
)
from pulsar_py.common.network.tls import TlsOptions, client_ssl_context
from pulsar_py.testing.network import run_simulated
from tests.certificates import Certificate
from tests.http_server import Answer, Asked, HttpServer


def asked_once(
    answer: Callable[[Asked], Answer], path: str = "/x", **options: Any
) -> tuple[HttpResponse, Asked]:
    """What a client gets from a server that answers so, and what the server saw."""

    async def work() -> tuple[HttpResponse, Asked]:
        limit = options.pop("body_limit_bytes", 1000)
        async with HttpServer(answer).running() as server:
            response = await http_request(
                HttpRequest(url=server.url + path, **options),
                timeout_seconds=5.0,
                body_limit_bytes=limit,
            )
            return response, server.asked[0]

    return run_simulated(work())


def raw(data: bytes) -> Callable[[Asked], Answer]:
    return lambda _: Answer(raw=data)


def test_status_headers_and_body_come_back() -> None:
    response, asked = asked_once(
        lambda _: Answer(201, b'{"a": 1}', {"X-Thing": "yes"}),
        "/a/b?c=d",
        method="POST",
        headers={"X-Mine": "1"},
        body=b"hello",
    )

    assert (response.status, response.body, response.headers["x-thing"]) == (
        201,
        b'{"a": 1}',
        "yes",
    )
    assert response.is_success
    assert response.json() == {"a": 1}
    assert (asked.method, asked.target, asked.body) == ("POST", "/a/b?c=d", b"hello")
    assert asked.headers["x-mine"] == "1"
    assert asked.headers["connection"] == "close"


def test_a_url_without_path_asks_for_the_root() -> None:
    assert asked_once(lambda _: Answer(), "")[1].target == "/"


def test_chunked_answers_are_put_together() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"

    assert asked_once(raw(data))[0].body == b"abcde"


def test_an_answer_may_end_with_its_connection() -> None:
    assert asked_once(raw(b"HTTP/1.1 200 OK\r\n\r\nall of it"))[0].body == b"all of it"


def test_reasons_are_found() -> None:
    assert asked_once(lambda _: Answer.json({"reason": "no"}, 404))[0].reason() == "no"
    assert asked_once(lambda _: Answer(500, b"<html>"))[0].reason() == "HTTP status 500"
    assert asked_once(lambda _: Answer(500, b""))[0].reason() == "HTTP status 500"
    assert asked_once(lambda _: Answer(500, b"plain words"))[0].reason() == "plain words"
    assert asked_once(lambda _: Answer(500, b"[1]"))[0].reason() == "[1]"


def test_an_answer_that_is_no_json_says_so() -> None:
    with pytest.raises(RemoteProtocolError, match="/x: the answer is not JSON"):
        asked_once(lambda _: Answer(200, b"<html>"))[0].json()


def test_an_answer_that_is_too_large_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="over 10 bytes"):
        asked_once(lambda _: Answer(200, bytes(11)), body_limit_bytes=10)


def test_garbage_is_told_apart_from_a_cut() -> None:
    with pytest.raises(RemoteProtocolError):
        asked_once(raw(b"\0\1\2 nonsense\r\n\r\n"))
    with pytest.raises(ConnectionClosedError, match="closed without an answer"):
        asked_once(raw(b""))
    with pytest.raises(ConnectionClosedError, match="received 4 bytes, expected 100"):
        asked_once(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))


def test_silence_ends_with_the_time_limit() -> None:
    with pytest.raises(ClientTimeoutError, match=r"no answer in 5.0 s"):
        asked_once(lambda _: Answer(is_silent=True))


def test_nobody_there_is_a_connect_error() -> None:
    async def work() -> None:
        await http_request(HttpRequest(url="http://localhost:1/x"), timeout_seconds=5.0)

    with pytest.raises(ConnectError, match="http://localhost:1/x"):
        run_simulated(work())


@pytest.mark.parametrize("url", ["pulsar://a:1", "http://", "http://a:b/", "/x"])
async def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidServiceUrlError):
        await http_request(HttpRequest(url=url), timeout_seconds=5.0)


@pytest.mark.parametrize("options", [{"headers": {"A": "b\r\nC: d"}}, {"method": "G T"}])
def test_nothing_can_be_smuggled_into_a_request(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidServiceUrlError):
        asked_once(lambda _: Answer(), **options)


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def work() -> None:
        async with HttpServer(lambda _: Answer(is_silent=True)).running() as server:
            request = HttpRequest(url=server.url)
            task = asyncio.get_running_loop().create_task(
                http_request(request, timeout_seconds=100.0)
            )
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(1)
            assert len(asyncio.all_tasks()) == 1

    run_simulated(work())


# --- connections that are kept -------------------------------------------------------------------


def client_of(**options: Any) -> HttpClient:
    return HttpClient(timeout_seconds=5.0, body_limit_bytes=1000, **options)


def test_a_connection_serves_request_after_request() -> None:
    async def work() -> None:
        server = HttpServer(lambda asked: Answer(body=asked.body))
        async with server.running(), client_of() as client:
            for body in (b"a", b"b", b"c"):
                request = HttpRequest(method="PUT", url=server.url, body=body)
                assert (await client.send(request)).body == body
            assert server.connections_count == 1
            assert "connection" not in server.asked[0].headers

    run_simulated(work())


def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    async def work() -> None:
        server = HttpServer(lambda asked: Answer(body=asked.target.encode()))
        async with server.running(), client_of() as client:
            urls = [f"{server.url}/{index}" for index in range(3)]
            answers = await asyncio.gather(*(client.send(HttpRequest(url=url)) for url in urls))
            assert [answer.body for answer in answers] == [b"/0", b"/1", b"/2"]
            assert server.connections_count == 3

    run_simulated(work())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_was_closed_while_idle_costs_nothing(method: str) -> None:
    async def work() -> None:
        server = HttpServer(lambda asked: Answer(body=asked.target.encode()))
        async with server.running(), client_of() as client:
            await client.send(HttpRequest(url=server.url))
            server.close_connections()
            await asyncio.sleep(1)
            answer = await client.send(HttpRequest(method=method, url=f"{server.url}/again"))
            assert answer.body == b"/again"
            assert [asked.target for asked in server.asked] == ["/", "/again"]

    run_simulated(work())


def test_what_is_not_idempotent_is_sent_once_on_a_connection_of_its_own() -> None:
    async def work() -> None:
        server = HttpServer(lambda asked: Answer(raw=b"") if asked.body else Answer())
        async with server.running(), client_of() as client:
            await client.send(HttpRequest(url=server.url))
            with pytest.raises(ConnectionClosedError):
                await client.send(HttpRequest(method="POST", url=server.url, body=b"x"))
            assert [asked.body for asked in server.asked] == [b"", b"x"]
            assert server.connections_count == 2

    run_simulated(work())


def test_a_server_that_wants_to_close_is_asked_on_another_connection() -> None:
    async def work() -> None:
        server = HttpServer(lambda _: Answer(headers={"Connection": "close"}))
        async with server.running(), client_of() as client:
            for _ in range(2):
                await client.send(HttpRequest(url=server.url))
            assert server.connections_count == 2

    run_simulated(work())


def test_few_connections_are_kept() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            servers = [HttpServer(lambda _: Answer()) for _ in range(MAX_IDLE_CONNECTIONS + 1)]
            for server in servers:
                await stack.enter_async_context(server.running())
            client = await stack.enter_async_context(client_of())
            for server in (*servers, servers[-1], servers[0]):
                await client.send(HttpRequest(url=server.url))
            assert [server.connections_count for server in servers] == [
                2,
                *[1] * MAX_IDLE_CONNECTIONS,
            ]

    run_simulated(work())


# --- redirects -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_keep_method_headers_and_body(status: int) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target == "/x":
            return Answer(status, headers={"Location": "/y?z=1"})
        return Answer(body=asked.body)

    async def work() -> None:
        async with HttpServer(answer).running() as server, client_of(max_redirects=1) as client:
            headers = {"Authorization": "Bearer abc"}
            url = f"{server.url}/x"
            request = HttpRequest(method="PUT", url=url, headers=headers, body=b"hello")
            response = await client.send(request)
            assert (response.body, response.url) == (b"hello", f"{server.url}/y?z=1")
            assert server.asked[1].method == "PUT"
            assert server.asked[1].headers["authorization"] == "Bearer abc"

    run_simulated(work())


def test_redirects_have_a_limit_and_zero_returns_them() -> None:
    async def work() -> None:
        def answer(asked: Asked) -> Answer:
            return Answer(307, headers={"Location": asked.target + "x"})

        async with HttpServer(answer).running() as server:
            request = HttpRequest(url=f"{server.url}/")
            with pytest.raises(HttpRedirectError, match="/xxx: more than 2 redirects"):
                await http_request(request, timeout_seconds=5.0, max_redirects=2)
            assert (await http_request(request, timeout_seconds=5.0)).status == 307

    run_simulated(work())


@pytest.mark.parametrize("location", ["", "ftp://a/b", "/"])
def test_a_redirect_to_nowhere_is_refused(location: str) -> None:
    async def work() -> None:
        def answer(asked: Asked) -> Answer:
            return Answer(307, headers={"Location": location})

        async with HttpServer(answer).running() as server:
            with pytest.raises(HttpRedirectError, match="a redirect to"):
                await http_request(
                    HttpRequest(url=f"{server.url}/"), timeout_seconds=5.0, max_redirects=2
                )

    run_simulated(work())


# --- TLS -----------------------------------------------------------------------------------------


async def asked_by_tls(
    tmp_path: Path, answer: Callable[[Asked], Answer], named: str, *, trusts: bool = True
) -> HttpResponse:
    """What a client gets from a server whose certificate names `named`, and not `localhost`."""
    certificate = Certificate(tmp_path, "server", named)
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(certificate.certificate_path, certificate.key_path)
    path = certificate.certificate_path if trusts else None
    options = TlsOptions(tls_trust_certs_file_path=path, tls_validate_hostname=True)
    async with HttpServer(answer, server_tls).running() as server:
        return await http_request(
            HttpRequest(url=f"{server.url}/x"),
            timeout_seconds=5.0,
            ssl_context=client_ssl_context(options) if trusts else None,
            max_redirects=1,
        )


async def test_https_verifies_certificate_and_host(tmp_path: Path) -> None:
    answer = await asked_by_tls(tmp_path, lambda _: Answer(body=b"ok"), "localhost")
    assert answer.body == b"ok"
    with pytest.raises(
        ConnectError, match=r"[Hh]ostname mismatch.*: connect by a name that stands"
    ):
        await asked_by_tls(tmp_path, lambda _: Answer(), "other.example")
    with pytest.raises(
        ConnectError, match=r"self-signed certificate.*\(tls_trust_certs_file_path, "
    ):
        await asked_by_tls(tmp_path, lambda _: Answer(), "localhost", trusts=False)


async def test_a_redirect_does_not_leave_tls(tmp_path: Path) -> None:
    with pytest.raises(HttpRedirectError, match="a redirect to 'http://localhost:1/x'"):
        await asked_by_tls(
            tmp_path,
            lambda _: Answer(307, headers={"Location": "http://localhost:1/x"}),
            "localhost",
        )
