"""Reading and writing a log of policy events as a client, with the broker's own role."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest

from pulsar_py.common.errors import AuthenticationError, ServiceNotReadyError
from pulsar_py.common.names import TopicName
from pulsar_py.policy_logs import PolicyLogs
from pulsar_py.server.broker import BrokerService
from pulsar_py.server.change_events.event_decoder import EventDecoder
from pulsar_py.server.policies.policy_events import PolicyEvent, schema_text
from pulsar_py.standalone import Broker

KEY = b"a key of thirty-two bytes, or so"
EVENTS = TopicName.parse("persistent://public/default/__change_events")
A = TopicName.parse("persistent://public/default/a")
LOCAL = PolicyEvent(A, is_global=False, document={"maxProducerPerTopic": 1})
GLOBAL = PolicyEvent(A, is_global=True, document={"maxProducerPerTopic": 2})
GONE = PolicyEvent(A, is_global=False, document=None)


def guarded(role: str) -> dict[str, Any]:
    return {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "authenticationProviders": "token",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "superUserRoles": "admin",
        "brokerClientAuthenticationPlugin": (
            "org.apache.pulsar.client.impl.auth.AuthenticationToken"
        ),
        "brokerClientAuthenticationParameters": f"token:{jwt.encode({'sub': role}, KEY, 'HS256')}",
    }


@asynccontextmanager
async def served(**config: Any) -> AsyncIterator[BrokerService]:
    """A broker that does not follow its log by itself."""
    async with Broker(config=config) as broker:
        service = broker._service
        assert service is not None
        service.topics.policy_keeper = None
        yield service


async def test_what_is_appended_is_read_and_waited_for() -> None:
    async with served() as service, PolicyLogs(service).open(EVENTS) as log:
        assert await log.read() == []
        decoder = EventDecoder(EVENTS, service.schemas)
        for event in (LOCAL, GLOBAL, GONE):
            place, _ = await asyncio.gather(log.append(event), log.wait())
            (message,) = await log.read()
            assert log.place == place
            (logged,) = await decoder.events_of([message], "")
            assert logged.event == event
        stored = await service.schemas.latest(EVENTS.schema_id)
        assert stored is not None
        assert stored.definition.data.decode() == schema_text()


async def test_a_log_that_is_served_here_is_followed_otherwise() -> None:
    async with served() as service, PolicyLogs(service).open(EVENTS) as log:
        with pytest.raises(ServiceNotReadyError, match="served here"):
            await log.is_followed()


async def test_logs_share_a_client_that_ends_with_the_last() -> None:
    async with served() as service:
        logs = PolicyLogs(service)
        other = TopicName.parse("persistent://public/default/other")
        async with logs.open(EVENTS):
            client = logs._client
            async with logs.open(other):
                assert logs._client is client
            assert logs._client is client
        assert logs._client is None


async def test_the_brokers_own_role_is_proved() -> None:
    async with served(**guarded("admin")) as service, PolicyLogs(service).open(EVENTS) as log:
        await log.append(LOCAL)
        assert len(await log.read()) == 1
    config = guarded("admin") | {"brokerClientAuthenticationParameters": "token:x"}
    async with served(**config) as service:
        with pytest.raises(AuthenticationError):
            async with PolicyLogs(service).open(EVENTS):
                pass
