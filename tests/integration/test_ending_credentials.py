"""What becomes of open connections whose token is revoked or expires, over both protocols."""

from __future__ import annotations

import asyncio
import base64
import secrets
import time
from pathlib import Path

import jwt
import pytest

from pulsar_py.client import AuthenticationToken, Client
from pulsar_py.common.errors import AuthenticationError
from tests.unit.websocket.dialogs import Served, closed, said, served, until
from tests.websocket_client import WebSocketClient

KEY = secrets.token_bytes(32)
POLICY_VIOLATION = 1008


def token(**claims: object) -> str:
    return jwt.encode({"sub": "me", **claims}, KEY, "HS256")


def settings(**more: object) -> dict[str, object]:
    return {
        "authenticationEnabled": True,
        "authenticationProviders": "token",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
        **more,
    }


async def web_producer(broker: Served, name: str) -> WebSocketClient:
    """One that has published."""
    found = await broker.open(f"/v2/producer/persistent/public/default/t?token={name}")
    assert found.status == 101
    found.send('{"payload": "YQ=="}')
    assert (await said(found))["result"] == "ok"
    return found


@pytest.mark.setting("tokenRevocationFile")
async def test_connections_of_a_revoked_token_end_and_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text("jti none\n")
    stolen, good = token(jti="stolen"), token(jti="good")
    async with served(**settings(tokenRevocationFile=str(path))) as broker:
        url = broker.broker.service_url
        async with (
            Client(url, authentication=AuthenticationToken(stolen)) as thief,
            Client(url, authentication=AuthenticationToken(good)) as owner,
        ):
            await (await thief.create_producer("t")).send(b"x")
            producer = await owner.create_producer("t")
            over_web, others = await web_producer(broker, stolen), await web_producer(broker, good)
            connections = broker.broker.service.connections
            before = connections.created_count
            refused = connections.refused_handshakes_count

            path.write_text("jti none\njti stolen\n")
            code, reason = await closed(over_web)
            assert (code, reason) == (POLICY_VIOLATION, "the credentials were revoked")
            await until(lambda: connections.refused_handshakes_count > refused)
            async with Client(url, authentication=AuthenticationToken(stolen)) as again:
                with pytest.raises(AuthenticationError):
                    await again.create_producer("t")
            assert connections.created_count > before

            await producer.send(b"still here")
            others.send('{"payload": "YQ=="}')
            assert (await said(others))["result"] == "ok"


async def test_a_websocket_ends_with_its_token() -> None:
    async with served(**settings()) as broker:
        lasting = await web_producer(broker, token())
        started_at = time.time()
        short = await web_producer(broker, token(exp=int(started_at) + 3))
        assert await closed(short) == (POLICY_VIOLATION, "the credentials expired")
        assert time.time() >= int(started_at) + 3
        await asyncio.sleep(0)
        lasting.send('{"payload": "YQ=="}')
        assert (await said(lasting))["result"] == "ok"
