"""security_lines: authentication in figures, in Apache Pulsar's names."""

from __future__ import annotations

import base64

import jwt
import pytest

from pulsar_py.admin.metrics.security_lines import security_lines
from pulsar_py.common.errors import AuthenticationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.proto.PulsarApi_pb2 import CommandConnect
from pulsar_py.server.security.authentication import Authenticators
from pulsar_py.server.security.peer import Peer
from pulsar_py.server.security.providers import AuthenticationSettings, authenticators_of
from pulsar_py.server.security.token_provider import TokenSettings
from tests.unit.admin.metrics.metric_pages import by, only, page_text, parsed
from tests.unit.server.connection.standins import Client, RecordingTransport
from tests.unit.settings.parts import broker, connect

KEY = bytes(range(32))
SECRET = "data:;base64," + base64.b64encode(KEY).decode()
USERS = "data:;base64," + base64.b64encode(b"me:abNANd1rDfiNc").decode()


def bearer(**claims: object) -> dict[str, str]:
    return {"authorization": f"Bearer {jwt.encode({'sub': 'me', **claims}, KEY, 'HS256')}"}


@pytest.mark.metric(
    "pulsar_authentication_success_total",
    "pulsar_authentication_failures_total",
    "pulsar_expired_token_total",
    "pulsar_expiring_token_minutes",
)
async def test_who_was_let_in_and_who_was_not() -> None:
    clock = SystemClock()
    authenticators = authenticators_of(
        AuthenticationSettings(
            is_enabled=True,
            provider_names=("token", "basic"),
            token=TokenSettings(secret_key=SECRET),
            basic_users=USERS,
        ),
        clock,
    )
    now = clock.wall_time_millis() // 1000
    for seconds in (120, 400, 3000, 1_000_000):
        await authenticators.authenticate_http(bearer(exp=now + seconds), Peer())
    await authenticators.authenticate_http(bearer(), Peer())
    for headers in (bearer(exp=now - 9), {"authorization": "Bearer x"}, {}):
        with pytest.raises(AuthenticationError):
            await authenticators.authenticate_http(headers, Peer())
    found = parsed("".join(security_lines(authenticators, "c")))
    labels = ("provider_name", "auth_method", "reason")
    assert by(found, "pulsar_authentication_success_total", *labels) == {
        "AuthenticationProviderToken/token": 5,
        "AuthenticationProviderBasic/basic": 0,
    }
    assert by(found, "pulsar_authentication_failures_total", *labels) == {
        "AuthenticationProviderToken/token/expired": 1,
        "AuthenticationProviderToken/token/invalid": 1,
        "/none/missing": 1,
    }
    assert by(found, "pulsar_expired_token_total", "cluster") == {"c": 1}
    assert by(found, "pulsar_expiring_token_minutes_bucket", "le") == {
        "5.0": 1,
        "10.0": 2,
        "60.0": 3,
        "240.0": 3,
        "+Inf": 4,
    }
    assert by(found, "pulsar_expiring_token_minutes_count", "cluster") == {"c": 4}
    (total,) = by(found, "pulsar_expiring_token_minutes_sum").values()
    assert total == pytest.approx(1_003_520 / 60, abs=0.2)


def test_there_are_none_while_it_is_off() -> None:
    assert list(security_lines(Authenticators(), "c")) == []


@pytest.mark.metric(
    "pulsar_connection_created_total_count",
    "pulsar_connection_create_success_count",
    "pulsar_connection_create_fail_count",
    "pulsar_connection_closed_total_count",
)
async def test_the_page_has_those_of_both_protocols() -> None:
    settings = {
        "authenticationEnabled": True,
        "authenticationProviders": ("token",),
        "tokenSecretKey": SECRET,
    }
    token = jwt.encode({"sub": "me"}, KEY, "HS256").encode()
    async with broker(SystemClock(), **settings) as rig:
        await connect(rig, auth_method_name="token", auth_data=token)
        for _ in range(2):
            refused = rig.broker.connections.new_connection()
            transport = RecordingTransport(refused, ("127.0.0.1", 50_000))
            refused.connection_made(transport)
            client = Client(refused, transport)
            client.sends(CommandConnect(client_version="test", protocol_version=21))
            await client.receives()
            refused.connection_lost(None)
        await rig.broker.authenticators.authenticate_http(bearer(), Peer())
        found = parsed(await page_text(rig.broker))
    assert by(found, "pulsar_authentication_success_total", "auth_method") == {"token": 2}
    for name, count in (
        ("created_total", 3),
        ("create_success", 1),
        ("create_fail", 2),
        ("closed_total", 2),
    ):
        assert only(found, f"pulsar_connection_{name}_count") == count, name
