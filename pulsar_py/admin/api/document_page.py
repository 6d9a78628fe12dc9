"""REST resource that returns the OpenAPI document of all routes.

It is made, with the types of all answers, when the first caller asks, and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from msgspec import json

from pulsar_py.admin.http_messages import JSON, Request, Response
from pulsar_py.admin.router import Route, get


class DocumentPage:
    """Answers the document of some routes, and of its own."""

    def __init__(self, routes: Sequence[Route], path: str = "/admin/openapi.json") -> None:
        """`path` is where the document is served."""
        self._routes = routes
        self._path = path
        self._document = b""  # made when it is asked for

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        needs = "open to every caller: it is the same for all brokers of this version"
        return (get(self._path, self.show, needs, answer=dict[str, Any]),)

    async def show(self, request: Request) -> Response:  # noqa: ARG002
        """Return the OpenAPI document."""
        if not self._document:
            openapi = import_module("pulsar_py.admin.api.openapi")
            found = openapi.document([*self._routes, *self.routes()])
            self._document = json.encode(found)  # with its nulls: they are defaults
        return Response(body=self._document, content_type=JSON)
