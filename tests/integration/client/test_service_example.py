"""The service of the documents' chapter: it works, tells of an outage, and ends without losses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pulsar_py
from examples.fastapi_service import service
from pulsar_py.testing.restartable_broker import RestartableBroker


async def call(app: Callable[..., object], method: str, path: str) -> tuple[int, object]:
    """One request by ASGI; no server, no HTTP client."""
    sent: list[dict[str, object]] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "app": app,
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(event: dict[str, object]) -> None:
        sent.append(event)

    await app(scope, receive, send)
    body = b"".join(each.get("body", b"") for each in sent)
    return sent[0]["status"], json.loads(body)


async def test_orders_become_bills_and_an_outage_is_told(
    async_pulsar_broker: RestartableBroker,
) -> None:
    app = service(async_pulsar_broker.service_url)
    async with pulsar_py.Client(async_pulsar_broker.service_url) as client:
        bills = await client.subscribe("bills", "s")
        async with app.router.lifespan_context(app):
            status, answer = await call(app, "POST", "/orders/tea")
            assert (status, set(answer)) == (200, {"id"})
            assert (await bills.receive(30_000)).data() == b"bill of tea"
            assert await call(app, "GET", "/health") == (200, {})

            await async_pulsar_broker.stop()
            async with asyncio.timeout(30):
                while (await call(app, "GET", "/health"))[0] == 200:
                    await asyncio.sleep(0.01)
            status, lost = await call(app, "GET", "/health")
            assert status == 503
            assert any(who.startswith("producer ") for who in lost)
            await async_pulsar_broker.restart()
            async with asyncio.timeout(10):
                while (await call(app, "GET", "/health"))[0] == 503:
                    await asyncio.sleep(0.01)
            assert (await call(app, "POST", "/orders/coffee"))[0] == 200
        # Whether its bill was sent before the end or not: nothing is lost.
        async with app.router.lifespan_context(app), asyncio.timeout(10):
            while (await bills.receive()).data() != b"bill of coffee":
                pass
