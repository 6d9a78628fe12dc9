"""What is sent without an event loop, and what answers mean."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsar_py.admin_client.plain_requests import PlainRequests
from pulsar_py.admin_client.settings import AdminError, AdminSettings
from pulsar_py.common.errors import AuthorizationError, ConnectError, RemoteProtocolError
from tests.certificates import Certificate
from tests.http_server import Answer, Asked, HttpServer


@contextmanager
def serving(
    answer: Callable[[Asked], Answer], tls: ssl.SSLContext | None = None
) -> Iterator[HttpServer]:
    """A server in a thread, for clients that block."""
    server = HttpServer(answer, tls)
    loop = asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()

    async def work() -> None:
        async with server.running():
            started.set()
            await ended.wait()
        await asyncio.sleep(0)  # connections that were closed say so

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@contextmanager
def requests(url: str, **settings: object) -> Iterator[PlainRequests]:
    found = PlainRequests(AdminSettings(url=url, **settings))  # type: ignore[arg-type]
    try:
        yield found
    finally:
        found.close()


def test_a_connection_is_kept_and_opened_again() -> None:
    with (
        serving(lambda asked: Answer.json(asked.method)) as server,
        requests(server.url, token="abc", headers={"x-mine": "1"}) as plain,
    ):
        assert plain.exchange("GET", "/a").json() == "GET"
        assert plain.exchange("PUT", "/b?c=d", {"a": 1}).json() == "PUT"
        assert server.connections_count == 1
        assert plain.exchange("POST", "/b", None).json() == "POST"
        assert server.connections_count == 2  # one that may have been closed is not risked
    first, second, third = server.asked
    assert first.headers["authorization"] == "Bearer abc"
    assert first.headers["x-mine"] == "1"
    assert "content-type" not in first.headers
    assert (second.target, second.body) == ("/b?c=d", b'{"a": 1}')
    assert second.headers["content-type"] == "application/json"
    assert third.body == b"null"


def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target == "/last":
            return Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")  # and closes
        return Answer.json(2)

    with serving(answer) as server, requests(server.url) as plain:
        assert plain.exchange("GET", "/last").json() == 1
        assert plain.exchange("GET", "/x").json() == 2


def test_errors_have_their_reason() -> None:
    answers = {
        "/403": Answer.json({"reason": "not you"}, 403),
        "/500": Answer(500, b"<html>"),
        "/412": Answer(412, b"plain text"),
        "/text": Answer(200, b"ok"),
        "/empty": Answer(204),
    }
    with serving(lambda asked: answers[asked.target]) as server, requests(server.url) as plain:
        with pytest.raises(AuthorizationError, match="GET /403: 403 not you"):
            plain.exchange("GET", "/403")
        with pytest.raises(AdminError, match="500 Internal Server Error"):
            plain.exchange("GET", "/500")
        with pytest.raises(AdminError, match="412 plain text"):
            plain.exchange("GET", "/412")
        assert plain.exchange("GET", "/text").body == b"ok"
        with pytest.raises(RemoteProtocolError, match="not JSON"):
            plain.exchange("GET", "/text").json()
        assert plain.exchange("GET", "/empty").json() is None


def test_the_next_host_is_asked_and_remembered() -> None:
    with serving(lambda _: Answer.json("here")) as server:
        live = server.url.removeprefix("http://")
        with requests(f"http://localhost:1,{live}") as plain:
            for _ in range(2):
                assert plain.exchange("GET", "/").json() == "here"
        assert server.connections_count == 1
    with (
        requests("http://localhost:1,localhost:2") as plain,
        pytest.raises(ConnectError, match=r"localhost:1/.*localhost:2/"),
    ):
        plain.exchange("GET", "/")


def test_redirects_are_followed_up_to_a_limit() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.target == "/found":
            return Answer.json("found")
        target = "/found" if asked.target == "/once" else asked.target + "x"
        return Answer(307, headers={"Location": target})

    with serving(answer) as server, requests(server.url) as plain:
        assert plain.exchange("GET", "/once").json() == "found"
        with pytest.raises(ConnectError, match="more than 5 redirects"):
            plain.exchange("GET", "/loop")


def test_silence_ends_in_time() -> None:
    with (
        serving(lambda _: Answer(is_silent=True)) as server,
        requests(server.url, timeout_seconds=0.05) as plain,
        pytest.raises(ConnectError, match="no answer in time"),
    ):
        plain.exchange("GET", "/")


def test_tls_verifies_the_host_and_is_not_left(tmp_path: Path) -> None:
    certificate = Certificate(tmp_path, "server", "localhost")
    other = Certificate(tmp_path, "other", "other.example")
    for each, reason in ((certificate, "redirect from https"), (other, "[Hh]ostname mismatch")):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(each.certificate_path, each.key_path)
        target = {"Location": "http://localhost:1/"}
        with (
            serving(lambda _, to=target: Answer(307, headers=to), context) as server,
            requests(server.url, tls_trust_certs_file=each.certificate_path) as plain,
            pytest.raises(ConnectError, match=reason),
        ):
            plain.exchange("GET", "/")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate_path, certificate.key_path)
    advice = (
        r"CERTIFICATE_VERIFY_FAILED.*\(tls_trust_certs_file, or --tls-trust-cert-path of a comm"
    )
    with (
        serving(lambda _: Answer(200), context) as server,
        requests(server.url) as plain,
        pytest.raises(ConnectError, match=advice),
    ):
        plain.exchange("GET", "/")


def test_a_large_answer_is_read_in_pieces() -> None:
    with (
        serving(lambda asked: Answer(200, asked.headers["accept"].encode() * 10)) as server,
        requests(server.url) as sending,
        sending.download("/x", "application/x-tar") as download,
    ):
        assert download.headers["content-length"] == "170"
        assert [len(download.read(100)) for _ in range(3)] == [100, 70, 0]


def test_a_large_answer_that_is_refused_has_its_reason() -> None:
    answer = Answer(403, b'{"reason": "not you"}')
    with (
        serving(lambda _: answer) as server,
        requests(server.url) as sending,
        pytest.raises(AuthorizationError, match="not you"),
        sending.download("/x", "application/x-tar"),
    ):
        pass
