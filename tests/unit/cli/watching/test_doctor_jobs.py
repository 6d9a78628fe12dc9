"""What `doctor` makes of a broker's answers."""

from __future__ import annotations

import asyncio
import base64
import json

import jwt
import pytest

from pulsar_py.admin_client import AdminSettings
from pulsar_py.cli.watching.doctor_jobs import as_text, of_broker, of_subscription, token_symptoms
from pulsar_py.client import Client
from pulsar_py.common.errors import AuthenticationError, TopicNotFoundError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.standalone import Broker


def token(**claims: object) -> str:
    text = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"header.{text}.signature"


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (None, []),
        ("opaque", []),
        ("a.!.c", []),
        (token(sub="me"), []),
        (token(exp=1000 + 8 * 86_400), []),
        (token(exp=1000 + 86_400), ["TOKEN_EXPIRES"]),
        (token(exp=999), ["TOKEN_EXPIRED"]),
    ],
)
def test_a_token_s_end_is_told(given: str | None, codes: list[str]) -> None:
    assert [each["code"] for each in token_symptoms(given, 1000.0)] == codes


async def test_a_subscription_is_found_and_told_what_stops_it() -> None:
    async with Broker() as broker, Client(broker.service_url) as client:
        consumer = await client.subscribe("orders", "billing")
        producer = await client.create_producer("orders")
        await producer.send(b"x")
        await consumer.close()
        admin = AdminSettings(url=broker.web_service_url)
        (found,) = await asyncio.to_thread(
            of_subscription, admin, "billing", None, "public/default"
        )
        with pytest.raises(TopicNotFoundError, match="no topic of public/default has a subscr"):
            await asyncio.to_thread(of_subscription, admin, "none", None, "public/default")
        symptoms = await asyncio.to_thread(of_broker, admin)
    (reason,) = found["reasons"]
    assert reason["code"] == "NO_CONSUMERS"
    command = "pulsar-py client consume -s billing -n 0 persistent://public/default/orders"
    assert reason["command"] == command
    head, sentence, last = as_text([found], is_of_subscription=True)
    assert head == "persistent://public/default/orders, subscription billing:"
    assert "No consumer is connected and 1 entry waits" in sentence
    assert last.strip() == command
    assert not [each for each in symptoms if each["urgency"] == "error"]


def test_what_moves_and_what_is_well_is_said_too() -> None:
    moving = {"topic": "t\x1b", "subscription": "s", "reasons": []}
    assert list(as_text([moving], is_of_subscription=True)) == [
        "t\\x1b, subscription s:",
        "  it moves: entries are being sent",
    ]
    assert list(as_text([], is_of_subscription=False)) == ["Nothing to look at."]


async def test_a_token_that_has_ended_is_told_though_the_broker_refuses_it() -> None:
    key = "data:;base64," + base64.b64encode(KEY).decode()
    settings = {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "tokenSecretKey": key,
    }
    now = int(SystemClock().wall_time_millis() / 1000)
    async with Broker(config=settings) as broker:

        def ask(given: str) -> list[str]:
            admin = AdminSettings(url=broker.web_service_url, token=given)
            return [each["code"] for each in of_broker(admin)]

        assert await asyncio.to_thread(ask, signed(exp=now - 60)) == ["TOKEN_EXPIRED"]
        assert "TOKEN_EXPIRES" in await asyncio.to_thread(ask, signed(exp=now + 86_400))
        with pytest.raises(AuthenticationError):
            await asyncio.to_thread(ask, "nonsense")


KEY = bytes(range(32))


def signed(**claims: object) -> str:
    return jwt.encode({"sub": "me", **claims}, KEY, "HS256")
