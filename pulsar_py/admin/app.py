"""`AdminApp`: routes requests to their resources, and turns errors into answers.

It finds the route, checks `Accept` and `Content-Type` as Pulsar's server does, calls the handler
and turns its errors into statuses: handlers raise errors and never answer them themselves. Sockets
are left to `http_server`, topics to the resources.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlencode

from msgspec.structs import replace

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_messages import (
    CURRENT_REQUEST,
    MAX_JSON_BODY_BYTES,
    TEXT,
    HttpError,
    PathValueError,
    RedirectError,
    Request,
    Response,
    UnreadableBodyError,
    encoded_in_turns,
    page_response,
    reason_response,
)
from pulsar_py.admin.lasting_answers import while_allowed
from pulsar_py.admin.router import BadPathError, MethodNotAllowed, Route, Router
from pulsar_py.admin.service_errors import status_of
from pulsar_py.common.errors import AuthenticationError, PulsarError
from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.server.hooks.interceptors import Interceptors
from pulsar_py.server.load.other_brokers import OtherBrokerError
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.audit import Audit
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.peer import Peer

logger = logging.getLogger(__name__)

_BASE: Final = "/admin/v2"
"""Sent on to the same path with a slash, as by Apache Pulsar; some tools ask whether it answers."""

NOBODY: Final = Peer()
"""The peer of calls from the same process, which have no socket."""


class Guard(Protocol):
    """Authenticates callers and checks their rights; `resources.access.Access` implements it."""

    async def caller_of(
        self, raw_path: str, headers: Mapping[str, str], peer: Peer
    ) -> Caller | None:
        """The caller of a request, None without authentication; raises AuthenticationError."""

    async def check(self, route: Route, request: Request, caller: Caller | None) -> None:
        """Return if the caller may use the route; raises HttpError."""


class AdminApp:
    """The REST API of one broker as an application of its HTTP port; made by `web`."""

    def __init__(
        self,
        routes: Iterable[Route],
        access: Guard | None = None,
        interceptors: Interceptors | None = None,
        *,
        page_rules: PageRules | None = None,
        audit: Audit | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`access` guards the routes; None lets everybody call them.

        `interceptors` are told of requests and answers. `page_rules` say what browsers may send;
        None: nothing for pages of other sites. `audit` is told of requests that find a route.
        `clock` says when callers of lasting answers are checked again; None: the real one.
        """
        self._audit = audit
        self._clock = clock or SystemClock()
        self._page_rules = page_rules or PageRules()
        self._interceptors = interceptors
        self._router = Router(routes)
        self._access = access

    async def handle(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        peer: Peer = NOBODY,
    ) -> Response:
        """Answer one request; never raises. Header names are in lower case."""
        rules = self._page_rules
        if (reason := rules.refusal_of(headers)) is not None:
            return reason_response(HTTPStatus.FORBIDDEN, reason)
        if (preflight := rules.preflight(method, headers)) is not None:
            return preflight
        response = await self._answer_between_interceptors(method, target, headers, body, peer)
        if permission := rules.permission(headers):
            return replace(response, headers=(*response.headers, *permission))
        return response

    async def _answer_between_interceptors(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        interceptors = self._interceptors
        if interceptors is None:
            return await self._answer(method, target, headers, body, peer)
        path = target.partition("?")[0]
        interceptors.tell("on_webservice_request", method, path)
        response = await self._answer(method, target, headers, body, peer)
        interceptors.tell("on_webservice_response", method, path, int(response.status))
        return response

    async def _answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        raw_path, _, raw_query = target.partition("?")
        caller = None
        if self._access is not None:
            try:
                caller = await self._access.caller_of(raw_path, headers, peer)
            except AuthenticationError:
                return page_response(HTTPStatus.UNAUTHORIZED)
        try:
            found = self._router.find(method, raw_path)
        except BadPathError:
            return page_response(HTTPStatus.BAD_REQUEST)
        if found is None:
            return _unknown(raw_path)
        if isinstance(found, MethodNotAllowed):
            return _method_not_allowed(method, found)
        if (refusal := _negotiate(found.route, headers, body)) is not None:
            return refusal
        request = Request(
            method=method,
            raw_path=raw_path,
            path=found.parameters,
            query=_first_values(raw_query),
            raw_query=raw_query,
            headers=headers,
            body=body,
            peer=peer,
            role=None if caller is None else caller.role,
            declared=found.route.takes,
        )
        response = await encoded_in_turns(await _call(found.route, request, self._access, caller))
        if self._audit is not None:
            needs = found.route.needs
            self._audit.on_request(
                caller,
                address=peer.remote_address,
                method=method,
                path=raw_path,
                action=needs.description if isinstance(needs, Action) else "",
                status=response.status,
            )
        return self._lasting(response, found.route, request)

    def _lasting(self, response: Response, route: Route, request: Request) -> Response:
        """The answer, whose stream ends if its caller could not ask for it any more."""
        access = self._access
        if response.stream is None or access is None:
            return response

        async def check() -> None:
            caller = await access.caller_of(request.raw_path, request.headers, request.peer)
            await access.check(route, request, caller)

        return replace(response, stream=while_allowed(response.stream, check, self._clock))


async def _call(  # noqa: PLR0911 - a kind of error each
    route: Route, request: Request, access: Guard | None, caller: Caller | None
) -> Response:
    try:
        if access is not None:
            await access.check(route, request, caller)
        CURRENT_REQUEST.set(request)
        return await route.handler(request)
    except OtherBrokerError as error:
        return reason_response(error.status or HTTPStatus.SERVICE_UNAVAILABLE, error.reason)
    except HttpError as error:
        return reason_response(error.status, error.reason)
    except RedirectError as error:
        return _redirect(error, request)
    except PathValueError:
        return page_response(HTTPStatus.NOT_FOUND)
    except UnreadableBodyError as error:
        return Response(HTTPStatus.BAD_REQUEST, str(error).encode(), TEXT)
    except PulsarError as error:
        status = status_of(error)
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.warning(
                "admin call failed",
                extra={"method": request.method, "path": request.raw_path},
                exc_info=error,
            )
        return reason_response(status, str(error))
    except Exception:  # The outermost edge of a request: one bad call must not end its connection.
        logger.exception(
            "admin call failed", extra={"method": request.method, "path": request.raw_path}
        )
        return reason_response(
            HTTPStatus.INTERNAL_SERVER_ERROR, "an unexpected error occurred in the server"
        )


def _unknown(raw_path: str) -> Response:
    if raw_path == _BASE:
        return page_response(HTTPStatus.MOVED_PERMANENTLY, (("Location", _BASE + "/"),))
    return page_response(HTTPStatus.NOT_FOUND)


def _redirect(error: RedirectError, request: Request) -> Response:
    """307 to the same path of another broker, with the parameters that it needs."""
    pairs = [
        (name, value)
        for name, value in parse_qsl(request.raw_query, keep_blank_values=True)
        if name not in error.query
    ]
    pairs += [(name, value) for name, value in error.query.items() if value is not None]
    headers = (("Location", f"{error.url}{request.raw_path}?{urlencode(pairs)}"),)
    return Response(HTTPStatus.TEMPORARY_REDIRECT, headers=headers)


def _method_not_allowed(method: str, found: MethodNotAllowed) -> Response:
    allowed = found.allowed
    if method == "OPTIONS":
        head = ("HEAD",) if "GET" in allowed else ()
        names = ",".join((*head, *allowed))
        return Response(HTTPStatus.OK, names.encode(), TEXT, (("Allow", names),))
    return page_response(HTTPStatus.METHOD_NOT_ALLOWED, (("Allow", ",".join(allowed)),))


def _negotiate(route: Route, headers: Mapping[str, str], body: bytes) -> Response | None:
    """Refuse requests by `Accept`, `Content-Type` and the body's length."""
    if not _accepts(headers.get("accept", ""), route.produces):
        return Response(HTTPStatus.NOT_ACCEPTABLE, b"HTTP ERROR 406 Not Acceptable", TEXT)
    if body and route.consumes:
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type not in route.consumes:
            return page_response(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if len(body) > MAX_JSON_BODY_BYTES:
            return page_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return None


def _accepts(accept: str, produced: str) -> bool:
    if not accept.strip():
        return True
    family = produced.partition("/")[0] + "/*"
    ranges = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return any(item in {"*/*", family, produced} for item in ranges)


def _first_values(raw_query: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in parse_qsl(raw_query, keep_blank_values=True):
        values.setdefault(name, value)
    return values
