"""A broker in memory, and dialogs with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pulsar_py.client.client import Client
from pulsar_py.common.names import TopicName
from pulsar_py.server.topics.topic import Topic
from pulsar_py.standalone import Broker
from tests.websocket_client import TEXT, WebSocketClient

SECONDS = 20.0
"""For what has to come, on a busy machine."""


class Served:
    """A broker with its clients."""

    def __init__(self, broker: Broker, client: Client) -> None:
        self.broker = broker
        self.client = client
        self.port = int(broker.web_service_url.rpartition(":")[2])
        self._open: list[WebSocketClient] = []

    async def open(
        self, path: str, *, headers: Mapping[str, str | None] | None = None
    ) -> WebSocketClient:
        """Shake hands below `/ws`."""
        client = await asyncio.wait_for(
            WebSocketClient.open(self.port, f"/ws{path}", headers=headers), SECONDS
        )
        self._open.append(client)
        return client

    def topic(self, name: str) -> Topic:
        """A loaded topic of `public/default`."""
        topic = self.broker.service.topics.loaded(TopicName.parse(name))
        assert topic is not None, name
        return topic

    async def close(self) -> None:
        for each in self._open:
            await each.drop()


@asynccontextmanager
async def served(**config: Any) -> AsyncIterator[Served]:  # Any: values of settings
    """A broker with these settings."""
    async with Broker(config=config) as broker, Client(broker.service_url) as client:
        made = Served(broker, client)
        try:
            yield made
        finally:
            await made.close()


async def said(client: WebSocketClient) -> Any:  # Any: JSON
    """The next message, as JSON."""
    frame = await asyncio.wait_for(client.receive(), SECONDS)
    assert frame is not None, "the socket has ended"
    assert frame.opcode == TEXT, frame
    return json.loads(frame.payload)


async def closed(client: WebSocketClient) -> tuple[int | None, str]:
    """Code and reason of the close frame that comes next."""
    frame = await asyncio.wait_for(client.receive(), SECONDS)
    assert frame is not None, "the socket has ended"
    return frame.close_code, frame.payload[2:].decode()


async def until(condition: Any) -> None:  # Any: a function without arguments
    """Return when it holds."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - nobody tells when it does
            await asyncio.sleep(0.005)
