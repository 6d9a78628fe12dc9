"""Whether an answer of the administration is one that its route declares."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from http import HTTPStatus

import msgspec

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.api.answers import Refusal, type_of
from pulsar_py.admin.api.openapi import refusals_of
from pulsar_py.admin.http_messages import JSON, Response
from pulsar_py.admin.router import BadPathError, Match, Route, Router
from pulsar_py.standalone import Broker


def declared_routes() -> list[Route]:
    """The routes of a broker; their handlers are those of one that is closed."""

    async def read() -> list[Route]:
        async with Broker() as broker:
            return list(all_routes(broker.service))

    return asyncio.run(read())


def path_of(route: Route) -> str:
    """The path of a route in the OpenAPI document, where parameters have names alone."""
    return re.sub(r"\{(\w+)(?::[^}]+)?\}", r"{\1}", route.template)


class Conformance:
    """The routes of a broker, and which of them answered as they should when all went well."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        self._router = Router(self.routes)
        self.succeeded: set[tuple[str, str]] = set()

    def check(self, method: str, target: str, response: Response) -> None:
        """Compare status and body with what the route declares.

        Raises:
            AssertionError: They differ.
        """
        found = self.match(method, target.partition("?")[0])
        if found is None:
            return
        route = found.route
        call = f"{method} {target} of {route.template}: {response.status} {response.body[:300]!r}"
        if method == "HEAD":
            return
        if response.status >= HTTPStatus.BAD_REQUEST:
            self._check_refusal(route, response, call)
        elif response.status != HTTPStatus.TEMPORARY_REDIRECT:
            self._check_success(route, response, call)
            self.succeeded.add((route.method, route.template))

    def match(self, method: str, path: str) -> Match | None:
        """The route of a call; None for one that is there for others' services."""
        try:
            found = self._router.find(method, path)
        except BadPathError:
            return None
        return found if isinstance(found, Match) and "..." not in found.route.template else None

    def _check_refusal(self, route: Route, response: Response, call: str) -> None:
        assert response.status in refusals_of(route), f"{call}: the status is not declared"
        if response.content_type == JSON:
            assert msgspec.convert(json.loads(response.body), Refusal).reason, call

    def _check_success(self, route: Route, response: Response, call: str) -> None:
        if route.may_be_empty and not response.body:
            assert response.status in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}, call
            return
        assert response.status == route.status, f"{call}: declared is {route.status}"
        if route.answer is None or response.stream is not None:
            return
        assert response.content_type == JSON, call
        try:
            msgspec.convert(json.loads(response.body), type_of(route.answer), strict=True)
        except msgspec.ValidationError as error:
            raise AssertionError(f"{error}: {call}") from None
