"""A service with FastAPI: one client in its lifespan, orders in, bills out, an end without losses.

.venv/bin/uvicorn --factory examples.fastapi_service:service
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Response

import pulsar_py

logger = logging.getLogger("orders")

END_SECONDS = 20
"""Less than what the server allows: 30 s of gunicorn's `graceful_timeout`."""


class Places(pulsar_py.ConnectionListener):
    """What is cut off now, for the health check."""

    def __init__(self) -> None:
        self.lost: dict[str, str] = {}

    def disconnected(self, who: str, reason: str) -> None:
        """It looks for another place by itself."""
        self.lost[who] = reason

    def reconnected(self, who: str, broker: str) -> None:
        """It has one again."""
        del broker
        self.lost.pop(who, None)

    def given_up(self, who: str, error: Exception) -> None:
        """It will have none any more: restart the service."""
        self.lost[who] = f"given up: {error}"


def service(url: str = "pulsar://localhost:6650") -> FastAPI:
    """Make the application; nothing is connected before its lifespan begins."""
    places = Places()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with pulsar_py.Client(
            url, operation_timeout_seconds=10, connection_listener=places
        ) as client:
            orders = app.state.orders = await client.create_producer("orders")
            bills = await client.create_producer("bills", send_timeout_millis=0)

            async def bill(
                consumer: pulsar_py.Consumer[bytes], message: pulsar_py.Message[bytes]
            ) -> None:
                await bills.send(b"bill of " + message.data())
                await consumer.acknowledge(message)

            billing = await client.subscribe("orders", "billing", message_listener=bill)
            yield
            try:
                async with asyncio.timeout(END_SECONDS):
                    await billing.drain()  # first those who take in, then those who give out
                    await orders.drain()
                    await bills.drain()
            except TimeoutError:
                logger.warning("ended with work under way: its messages come again")

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders/{name}")
    async def order(name: str) -> dict[str, str]:
        try:
            async with asyncio.timeout(2):
                return {"id": str(await app.state.orders.send(name.encode()))}
        except (TimeoutError, pulsar_py.ProducerQueueFullError) as error:
            raise HTTPException(503, "try again later") from error

    @app.get("/health")
    def health(response: Response) -> dict[str, str]:
        if places.lost:
            response.status_code = 503
        return places.lost

    return app
