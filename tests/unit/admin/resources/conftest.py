"""A broker in memory and its administration, without HTTP between them.

Each answer is compared with what its route declares.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pulsar_py.admin.api.all_routes import all_routes
from pulsar_py.admin.app import AdminApp
from pulsar_py.admin.http_messages import Response, whole
from pulsar_py.admin.resources.topic_access import require_topic
from pulsar_py.common.names import TopicName
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.topics.persistent import PersistentTopic
from pulsar_py.standalone import Broker
from tests.rest_conformance import Conformance


class Admin:
    """Calls of the administration of one broker."""

    def __init__(self, service: BrokerService) -> None:
        self.service = service
        routes = list(all_routes(service))
        self.conformance = Conformance(routes)
        self.app = AdminApp(routes)

    async def call(self, method: str, path: str, body: Any = ..., **headers: str) -> Response:
        """One call; a body is sent as JSON."""
        data = b"" if body is ... else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if data:
            named.setdefault("content-type", "application/json")
        response = await whole(await self.app.handle(method, path, named, data))
        self.conformance.check(method, path, response)
        return response

    async def status(self, method: str, path: str, body: Any = ...) -> int:
        """The status alone."""
        return (await self.call(method, path, body)).status

    async def get(self, path: str) -> Any:
        """The JSON of a GET that has to work."""
        response = await self.call("GET", path)
        assert response.status == 200, response.body
        return json.loads(response.body)

    async def reason(self, method: str, path: str, body: Any = ...) -> tuple[int, str]:
        """Status and reason of a call that has to fail."""
        response = await self.call(method, path, body)
        return response.status, json.loads(response.body)["reason"]


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with Broker() as broker:
        yield Admin(broker.service)


async def published(admin: Admin, name: str, count: int) -> PersistentTopic:
    """The topic with that name, after that many entries."""
    topic = await require_topic(admin.service, TopicName.parse(name))
    assert isinstance(topic, PersistentTopic)
    for _ in range(count):
        await topic.ledger.append_and_wait(b"entry")
    return topic
