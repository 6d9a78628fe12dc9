"""One request over HTTP: answers of all kinds, and servers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_py.client.shared.http_request import HttpRequest, HttpResponse, http_request
from pulsar_py.common.errors import (
    ClientTimeoutError,
    ConnectError,
    ConnectionClosedError,
    InvalidServiceUrlError,
    RemoteProtocolError,
)
from pulsar_py.testing.network import run_simulated
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
                ssl_context=None,
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
        await http_request(
            HttpRequest(url="http://localhost:1/x"), ssl_context=None, timeout_seconds=5.0
        )

    with pytest.raises(ConnectError, match="http://localhost:1/x"):
        run_simulated(work())


@pytest.mark.parametrize("url", ["pulsar://a:1", "http://", "http://a:b/", "/x"])
async def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidServiceUrlError):
        await http_request(HttpRequest(url=url), ssl_context=None, timeout_seconds=5.0)


@pytest.mark.parametrize("options", [{"headers": {"A": "b\r\nC: d"}}, {"method": "G T"}])
def test_nothing_can_be_smuggled_into_a_request(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidServiceUrlError):
        asked_once(lambda _: Answer(), **options)


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def work() -> None:
        async with HttpServer(lambda _: Answer(is_silent=True)).running() as server:
            request = HttpRequest(url=server.url)
            task = asyncio.get_running_loop().create_task(
                http_request(request, ssl_context=None, timeout_seconds=100.0)
            )
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(1)
            assert len(asyncio.all_tasks()) == 1

    run_simulated(work())
