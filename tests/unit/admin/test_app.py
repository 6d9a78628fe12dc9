"""What becomes of a request before and after its handler."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus

import pytest

from pulsar_py.admin.app import NOBODY, AdminApp, Guard
from pulsar_py.admin.declared import Body
from pulsar_py.admin.http_messages import (
    MAX_JSON_BODY_BYTES,
    AnswerEndedError,
    HttpError,
    PathValueError,
    Request,
    Response,
    json_response,
)
from pulsar_py.admin.router import Route, get, put
from pulsar_py.common.errors import AuthenticationError, StorageError, TopicNotFoundError
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.peer import Peer, PeerCertificate
from pulsar_py.testing.clock import VirtualClock


async def echo(request: Request) -> Response:
    return json_response(
        {"path": dict(request.path), "query": dict(request.query), "body": request.json()}
    )


def raising(error: Exception) -> AdminApp:
    async def handler(_: Request) -> Response:
        raise error

    return AdminApp([get("/it", handler, "a test")])


APP = AdminApp(
    [
        get("/echo/{name}", echo, "a test"),
        put("/echo/{name}", echo, "a test", Body(list[int])),
        put("/mute", echo, "a test"),
    ]
)


async def call(
    method: str, target: str, *, app: AdminApp = APP, body: bytes = b"", **headers: str
) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await app.handle(method, target, named, body)


async def test_a_handler_gets_the_peer_and_no_role_unless_it_was_proved() -> None:
    got: list[Request] = []

    async def note(request: Request) -> Response:
        got.append(request)
        return json_response(None)

    peer = Peer("/10.0.0.1:5", PeerCertificate(b"x"))
    await AdminApp([get("/it", note, "a test")]).handle("GET", "/it", {}, b"", peer)
    assert (got[0].peer, got[0].role) == (peer, None)


async def test_a_handler_gets_path_query_and_body() -> None:
    response = await call(
        "PUT", "/echo/a%20b?x=1&x=2&y=", body=b"[1]", content_type="application/json; charset=utf-8"
    )
    assert json.loads(response.body) == {
        "path": {"name": "a b"},
        "query": {"x": "1", "y": ""},
        "body": [1],
    }


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/nowhere", HTTPStatus.NOT_FOUND),
        ("GET", "/echo/%zz", HTTPStatus.BAD_REQUEST),
        ("DELETE", "/echo/a", HTTPStatus.METHOD_NOT_ALLOWED),
    ],
)
async def test_errors_of_the_server_are_pages(method: str, target: str, status: int) -> None:
    response = await call(method, target)
    assert response.status == status
    assert (response.content_type or "").startswith("text/html")


async def test_a_method_that_is_not_there_is_told_what_is() -> None:
    response = await call("DELETE", "/echo/a")
    assert dict(response.headers) == {"Allow": "GET,OPTIONS,PUT"}


async def test_options_lists_the_methods() -> None:
    response = await call("OPTIONS", "/echo/a")
    assert (response.status, dict(response.headers)["Allow"]) == (200, "HEAD,GET,OPTIONS,PUT")


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/xml"])
async def test_a_body_that_is_read_has_to_be_json(content_type: str) -> None:
    response = await call("PUT", "/echo/a", body=b"1", content_type=content_type)
    assert response.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


async def test_an_empty_body_needs_no_content_type() -> None:
    assert (await call("PUT", "/echo/a")).status == HTTPStatus.OK


async def test_a_route_that_reads_no_body_takes_any_content_type() -> None:
    assert (await call("PUT", "/mute", body=b"1", content_type="x/y")).status == HTTPStatus.OK


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("text/html, application/*;q=0.1", 200),
        ("text/plain", 406),
        ("application/xml", 406),
    ],
)
async def test_accept_has_to_allow_json(accept: str, status: int) -> None:
    assert (await call("GET", "/echo/a", accept=accept)).status == status


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (HttpError(412, "no"), 412, "no"),
        (TopicNotFoundError("Topic a not found"), 404, "Topic a not found"),
        (StorageError("disk gone"), 500, "disk gone"),
    ],
)
async def test_errors_become_reasons(error: Exception, status: int, reason: str) -> None:
    response = await call("GET", "/it", app=raising(error))
    assert (response.status, json.loads(response.body)) == (status, {"reason": reason})


async def test_what_nobody_thought_of_is_logged_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        response = await call("GET", "/it", app=raising(KeyError("secret")))
    assert response.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert b"secret" not in response.body
    assert "admin call failed" in caplog.text


async def test_an_impossible_value_in_the_path_is_a_path_that_is_not_there() -> None:
    response = await call("GET", "/it", app=raising(PathValueError()))
    assert (response.status, response.content_type) == (404, "text/html;charset=iso-8859-1")


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"NaN", b"9" * 5000, b'"\xff"'])
async def test_unreadable_json_is_400_in_plain_text(body: bytes) -> None:
    response = await call("PUT", "/echo/a", body=body, content_type="application/json")
    assert (response.status, response.content_type) == (400, "text/plain")


async def test_a_body_of_json_has_a_limit() -> None:
    text = b'"' + b"x" * (MAX_JSON_BODY_BYTES - 2) + b'"'
    most = await call("PUT", "/echo/a", body=text, content_type="application/json")
    assert most.status == HTTPStatus.OK
    more = await call("PUT", "/echo/a", body=text + b" ", content_type="application/json")
    assert more.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert (await call("PUT", "/mute", body=text + b" ")).status != more.status


class Gate(Guard):
    """Lets everybody in until it is shut."""

    is_shut = False

    async def caller_of(self, raw_path: str, headers: Mapping[str, str], peer: Peer) -> Caller:
        assert (raw_path, headers, peer) == ("/it", {"a": "b"}, NOBODY)
        if self.is_shut:
            raise AuthenticationError("revoked")
        return Caller("me")

    async def check(self, route: Route, request: Request, caller: Caller | None) -> None:
        assert (route.method, request.raw_path, caller) == ("GET", "/it", Caller("me"))


async def test_a_stream_ends_with_the_credentials_of_its_caller() -> None:
    async def parts() -> AsyncGenerator[bytes, None]:
        while True:
            yield b"x"

    async def handler(_: Request) -> Response:
        return Response(stream=parts())

    gate, clock = Gate(), VirtualClock()
    app = AdminApp([get("/it", handler, "a test")], gate, clock=clock)
    response = await app.handle("GET", "/it", {"a": "b"}, b"")
    assert response.stream is not None
    for _ in range(3):
        assert await anext(response.stream) == b"x"
        clock.jump(1)
    gate.is_shut = True
    with pytest.raises(AnswerEndedError, match="revoked"):
        await anext(response.stream)
