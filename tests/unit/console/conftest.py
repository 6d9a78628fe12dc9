"""A broker in memory and its console, without HTTP between them.

Each answer of a call is compared with what its route declares.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import pytest

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.admin.http_messages import Response, whole
from pulsar_py.client.client import Client
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.names import TopicName
from pulsar_py.console.assets import Assets
from pulsar_py.console.service import console_routes
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.standalone import Broker
from pulsar_py.web import Web
from tests.rest_conformance import Conformance
from tests.unit.test_web import token

TOPIC = "/admin/console/topic/persistent/public/default"


def _no_client(caller: Caller, peer: Peer) -> NoReturn:
    raise AssertionError("these routes are asked for what they declare alone")


class ConsoleCalls:
    """Calls of the console of one broker, and a client of it."""

    def __init__(self, broker: Broker, client: Client) -> None:
        self.broker = broker
        self.service = broker.service
        self.client = client
        self._web = Web(self.service, SystemClock(), PageRules())
        self._web.set_addresses(self.service.addresses)
        routes = console_routes(self.service, Assets.read(), _no_client)
        self.conformance = Conformance(routes)

    async def call(
        self, method: str, path: str, body: Any = ..., *, role: str | None = None, **headers: str
    ) -> Response:
        """One call; a body is sent as JSON, a role proves itself by a token."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if role is not None:
            named["authorization"] = f"Bearer {token(role)}"
        data = b""
        if body is not ...:
            data = json.dumps(body).encode()
            named["content-type"] = "application/json"
        response = await whole(await self._web._handle(method, path, named, data, Peer()))
        if path.startswith("/admin/console"):
            self.conformance.check(method, path, response)
        return response

    async def get(self, path: str, *, role: str | None = None) -> Any:
        """The JSON of a GET that has to work."""
        response = await self.call("GET", path, role=role)
        assert response.status == 200, (response.status, response.body)
        return json.loads(response.body)

    async def status(
        self, method: str, path: str, body: Any = ..., *, role: str | None = None
    ) -> int:
        """The status alone."""
        return (await self.call(method, path, body, role=role)).status

    async def reason(self, method: str, path: str, body: Any = ...) -> tuple[int, str]:
        """Status and reason of a call that has to fail."""
        response = await self.call(method, path, body)
        return response.status, json.loads(response.body)["reason"]

    def topic(self, name: str) -> PersistentTopic:
        """A loaded topic of `public/default`."""
        topic = self.service.topics.loaded(TopicName.parse(name))
        assert isinstance(topic, PersistentTopic)
        return topic


@asynccontextmanager
async def console_of(**config: Any) -> AsyncIterator[ConsoleCalls]:
    """The console of a broker with these settings."""
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        yield ConsoleCalls(broker, client)


@pytest.fixture
async def console() -> AsyncIterator[ConsoleCalls]:
    async with console_of() as made:
        yield made
