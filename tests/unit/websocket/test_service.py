"""Handshakes, and what is left when connections end."""

from __future__ import annotations

from tests.unit.websocket.dialogs import closed, said, served, until
from tests.websocket_client import WebSocketClient

TOPIC = "persistent/public/default/t"


async def test_what_is_no_handshake_is_told_so() -> None:
    async with served() as broker:
        path = f"/v2/producer/{TOPIC}"
        for headers, status in (
            ({"Upgrade": None}, 405),
            ({"Sec-WebSocket-Version": "8"}, 405),
            ({"Sec-WebSocket-Key": None}, 400),
            ({"Connection": None}, 400),
        ):
            assert (await broker.open(path, headers=headers)).status == status
        refused = await WebSocketClient.open(broker.port, f"/ws{path}", method="POST")
        assert refused.status == 405
        assert (await broker.open(f"{path}?token=a&token=b")).status == 400
        assert (await broker.open(f"{path}%00")).status == 400
        assert (await broker.open("/v2/nothing/x")).status == 404
        default = "persistent/public/default"
        for name in (f"{default}/", f"{default}/..", "persistent//a/b", "other/public/default/t"):
            for kind in ("producer", "reader"):
                assert (await broker.open(f"/v2/{kind}/{name}")).status == 400
        assert (await broker.open("/v2/consumer/persistent/a/b/c/")).status == 400


async def test_pages_of_other_sites_are_refused_unless_they_are_listed() -> None:
    config = {"webServiceAllowedOrigins": "https://tools.example"}
    async with served(**config) as broker:
        path = f"/v2/producer/{TOPIC}"
        own = f"http://127.0.0.1:{broker.port}"
        for origin, status in (
            ("https://evil.example", 403),
            ("null", 403),
            ("https://tools.example", 101),
            (own, 101),
        ):
            assert (await broker.open(path, headers={"Origin": origin})).status == status
        headers: dict[str, str | None] = {"Sec-Fetch-Site": "cross-site"}
        assert (await broker.open(path, headers=headers)).status == 403


async def test_nothing_stays_behind() -> None:
    async with served() as broker:
        connections = broker.broker.service.connections
        before = connections.count
        opened = [
            await broker.open(f"/v2/producer/{TOPIC}"),
            await broker.open(f"/v2/consumer/{TOPIC}/s"),
            await broker.open(f"/v2/reader/{TOPIC}"),
            await broker.open(f"/v2/consumer/{TOPIC}/s"),
        ]
        assert [each.status for each in opened] == [101, 101, 101, 409]
        assert connections.count > before
        for each in opened[:3]:
            await each.drop()
        await until(lambda: connections.count == before)
        topic = broker.topic("t")
        assert list(topic.subscriptions) == ["s"]


async def test_a_broker_that_stops_says_so() -> None:
    async with served() as broker:
        producer = await broker.open(f"/v2/producer/{TOPIC}")
        producer.send('{"payload": "YQ=="}')
        assert (await said(producer))["result"] == "ok"
        await broker.broker.stop()
        assert (await closed(producer))[0] == 1001
