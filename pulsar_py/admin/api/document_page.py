"""REST resource that returns the OpenAPI document of all routes.

It is made, with the types of all answers, when the first caller asks, and kept. That takes some
hundredths of a second, so a thread does it while the loop serves others; who asks meanwhile waits.
"""

from __future__ import annotations

import asyncio
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
        self._making = asyncio.Lock()

    def routes(self) -> Iterable[Route]:
        """The routes of this resource."""
        needs = "open to every caller: it is the same for all brokers of this version"
        return (get(self._path, self.show, needs, answer=dict[str, Any]),)

    async def show(self, request: Request) -> Response:  # noqa: ARG002
        """Return the OpenAPI document."""
        async with self._making:
            if not self._document:
                self._document = await asyncio.to_thread(self._made)
        return Response(body=self._document, content_type=JSON)

    def _made(self) -> bytes:
        openapi = import_module("pulsar_py.admin.api.openapi")
        found = openapi.document([*self._routes, *self.routes()])
        return json.encode(found)  # with its nulls: they are defaults
