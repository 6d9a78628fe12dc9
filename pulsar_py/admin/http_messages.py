"""Requests, responses and errors of the REST API (values, and encoding large ones in turns).

A resource gets a `Request` whose path parameters are decoded already, and returns a `Response` or
raises an `HttpError`, which becomes `{"reason": ...}`. For an unknown path or method the body is
HTML, as Pulsar's is.

JSON has no blanks, and None is left out: clients compare some bodies byte by byte.

Source: RestException and ObjectMapperFactory in Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct, field
from msgspec.structs import replace

from pulsar_py.admin.json_text import MAX_PIECE_UNITS, EncodedJson, json_pieces, units_of
from pulsar_py.common.foreign_json import parse_json
from pulsar_py.common.loops.work import Turns
from pulsar_py.server.security.peer import Peer

JSON = "application/json"
HTML = "text/html;charset=iso-8859-1"
TEXT = "text/plain"

CHARACTERS_A_UNIT: Final = 20
"""Characters of encoded JSON that stand for a unit of work."""

MAX_JSON_BODY_BYTES: Final = 256 * 1024
"""The most bytes of a body that is read as JSON: it is parsed in one turn of the loop, which takes
up to a quarter of a second for each megabyte."""


class HttpError(Exception):
    """Answers a request with a status from 400 and a `reason`, which clients show."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class AnswerEndedError(Exception):
    """An answer with a stream ends before its end, for a reason that is no fault of the broker."""


class Response(Struct, frozen=True):
    """An answer, complete in memory unless it has a `stream`.

    `large_value` is a value that the body is yet to be encoded from, where that is too much for one
    turn of the loop; its lists and objects must not change any more. `stream` makes the body part
    by part while it is sent, in chunks without a length known before, and stands in its place; who
    does not run it to its end closes it. `on_ended` is called once its peer has been sent the
    answer, or will get no more of it.
    """

    status: int = HTTPStatus.OK
    body: bytes = b""
    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    large_value: object | None = None
    stream: AsyncGenerator[bytes, None] | None = None
    on_ended: Callable[[], None] | None = None


NO_CONTENT = Response(HTTPStatus.NO_CONTENT)
EMPTY = Response(HTTPStatus.OK)
"""200 without a body, which is Pulsar's answer for a policy that is not set."""


class Request(Struct, frozen=True, kw_only=True):
    """One request with its whole body.

    `path` has the decoded parameters of the route's template; header names are in lower case.
    `peer` is the other end of the connection, `role` its authenticated role: None without
    authentication. `declared` are the parameters and the body of its route; None in tests that have
    no route. Handlers read through these, never the query or the body itself.
    """

    method: str
    raw_path: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer: Peer = field(default_factory=Peer)
    role: str | None = None
    raw_query: str = ""
    declared: tuple[object, ...] | None = None

    @property
    def passed_on_query(self) -> str:
        """The query with its mark, as another broker is asked; empty without one."""
        return f"?{self.raw_query}" if self.raw_query else ""

    @property
    def is_authoritative(self) -> bool:
        """Whether another broker chose this one, and sent the request here: see `RedirectError`."""
        return self.query.get("authoritative") == "true"

    @property
    def passed_on_body(self) -> bytes:
        """The body as another broker gets it."""
        return self.body

    def all_values(self, name: str) -> list[str]:
        """The values of a query parameter that may be repeated; `query` has the first of each."""
        pairs = parse_qsl(self.raw_query, keep_blank_values=True)
        return [value for each, value in pairs if each == name]

    def json(self) -> Any:  # Any: whatever JSON the client sent; callers check it.
        """The body as JSON, None when it is empty.

        Raises:
            UnreadableBodyError: It is not JSON, or nested too deeply; or a whole number in it has
                more than 64 bits, which is more than any field takes.
        """
        if not self.body.strip():
            return None
        try:
            return parse_json(self.body, is_java=True)
        except ValueError as error:
            raise UnreadableBodyError(str(error)) from None


CURRENT_REQUEST: Final[ContextVar[Request | None]] = ContextVar("request", default=None)
"""The request that is being answered, for what is asked of other brokers in its place."""


class UnreadableBodyError(Exception):
    """A body is not JSON, or not of the required form; answered with 400 in plain text."""


class RedirectError(Exception):
    """Another broker serves what the request is about; `url` is that of its HTTP service.

    With `is_authoritative` that broker shall not send on. `query` has parameters to set, or to
    leave out where they are None.
    """

    def __init__(
        self,
        url: str,
        *,
        is_authoritative: bool = True,
        query: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(f"served by {url}")
        self.url = url
        self.query: dict[str, str | None] = {
            **(query or {}),
            "authoritative": "true" if is_authoritative else "false",
        }


class PathValueError(Exception):
    """A path or query parameter has an impossible value; answered with 404 and a page."""


def json_response(value: object, status: int = HTTPStatus.OK) -> Response:
    """`value` as compact JSON without nulls; a large one is encoded by `encoded_in_turns`."""
    if units_of(value, MAX_PIECE_UNITS) > MAX_PIECE_UNITS:
        return Response(status, content_type=JSON, large_value=value)
    return Response(status, "".join(json_pieces(value)).encode(), JSON)


async def encoded_in_turns(response: Response) -> Response:
    """The answer with its body encoded, a large one in several turns of the loop."""
    if response.large_value is None:
        return response
    parts: list[bytes] = []
    for piece in json_pieces(response.large_value):
        parts.append(piece.encode())
        await asyncio.sleep(0)
    return replace(response, body=b"".join(parts), large_value=None)


async def whole(response: Response) -> Response:
    """The answer with its whole body in memory instead of a stream."""
    if response.stream is None:
        return response
    parts = [part async for part in response.stream]
    return replace(response, body=b"".join(parts), stream=None)


async def encoded_part(value: object, turns: Turns) -> EncodedJson:
    """A part of an answer with many parts, as text."""
    pieces: list[str] = []
    for piece in json_pieces(value):
        pieces.append(piece)
        await turns.take(min(len(piece) // CHARACTERS_A_UNIT, MAX_PIECE_UNITS))
    return EncodedJson(pieces)


def optional_json_response(value: object | None) -> Response:
    """`value` as JSON; 200 without a body if it is None."""
    return EMPTY if value is None else json_response(value)


def text_response(text: str, *, content_type: str = JSON) -> Response:
    """An answer of raw text, by default with the content type of JSON, as Pulsar does."""
    return Response(HTTPStatus.OK, text.encode(), content_type)


def reason_response(status: int, reason: str) -> Response:
    """The answer for an error of a resource: JSON with `reason`."""
    return json_response({"reason": reason}, status)


def page_response(status: int, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """The answer for an error of the server itself: an HTML page."""
    from html import escape  # noqa: PLC0415 - at first use: its tables take 0.3 MB

    title = f"Error {status} {HTTPStatus(status).phrase}"
    page = f"<html><head><title>{escape(title)}</title></head><body><h2>{title}</h2></body></html>"
    return Response(status, page.encode(), HTML, headers)
