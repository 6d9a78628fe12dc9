"""Requests, responses and errors of the REST API (values).

A resource gets a `Request` whose path parameters are decoded already, and returns a `Response` or
raises an `HttpError`, which becomes `{"reason": ...}`. For an unknown path or method the body is
HTML, as Pulsar's is.

JSON has no blanks, and None is left out: clients compare some bodies byte by byte.

Source: RestException and ObjectMapperFactory in Pulsar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from http import HTTPStatus
from typing import Any, Final

from pulsar_py.common.foreign_json import parse_json
from pulsar_py.server.security.peer import Peer

JSON = "application/json"
HTML = "text/html;charset=iso-8859-1"
TEXT = "text/plain"

MAX_JSON_BODY_BYTES: Final = 256 * 1024
"""The most bytes of a body that is read as JSON: it is parsed in one turn of the loop, which takes
up to a quarter of a second for each megabyte."""


class HttpError(Exception):
    """Answers a request with a status from 400 and a `reason`, which clients show."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, in memory."""

    status: int = HTTPStatus.OK
    body: bytes = b""
    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


NO_CONTENT = Response(HTTPStatus.NO_CONTENT)
EMPTY = Response(HTTPStatus.OK)
"""200 without a body, which is Pulsar's answer for a policy that is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request with its whole body.

    `path` has the decoded parameters of the route's template; header names are in lower case.
    `peer` is the other end of the connection, `role` its authenticated role: None without
    authentication.
    """

    method: str
    raw_path: str
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer: Peer = field(default_factory=Peer)
    role: str | None = None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean query parameter; anything but `true` in any case is False, as in Java."""
        value = self.query.get(name)
        return default if value is None else value.lower() == "true"

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


class UnreadableBodyError(Exception):
    """A body is not JSON, or not of the required form; answered with 400 in plain text."""


class PathValueError(Exception):
    """A path or query parameter has an impossible value; answered with 404 and a page."""


def without_nulls(value: object) -> object:
    """`value` with every None in a mapping left out, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value]
    return value


def json_response(value: object, status: int = HTTPStatus.OK) -> Response:
    """`value` as compact JSON without nulls."""
    text = json.dumps(without_nulls(value), separators=(",", ":"), ensure_ascii=False)
    return Response(status, text.encode(), JSON)


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
    title = f"Error {status} {HTTPStatus(status).phrase}"
    page = f"<html><head><title>{escape(title)}</title></head><body><h2>{title}</h2></body></html>"
    return Response(status, page.encode(), HTML, headers)
