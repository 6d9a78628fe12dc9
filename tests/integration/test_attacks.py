"""What attackers tried over sockets against a broker with TLS, tokens and authorization.

Each test is an attack that got through once, or one that many systems have fallen to.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from pulsar_py.proto.PulsarApi_pb2 import (
    AuthData,
    BaseCommand,
    CommandAuthResponse,
    CommandProducer,
)
from pulsar_py.standalone import Broker
from tests.integration.security_recordings.callers import RECORDINGS, Secrets
from tests.integration.security_recordings.player import Connection, Json, Player
from tests.wire_client import encode, send_frame

PERMISSION = "/admin/v2/namespaces/t/n/permissions/producer"
TOPIC = "persistent://t/n/a"
pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 20.0
"""For what has to come, on a busy machine."""


class Besieged:
    """A broker without a port in clear text, and those who want something of it."""

    def __init__(self, broker: Broker, secrets: Secrets) -> None:
        self.broker = broker
        self.secrets = secrets
        self._player = Player(broker, secrets)
        self._open: list[asyncio.StreamWriter] = []

    async def prepare(self) -> None:
        """Tenants, namespaces and grants of the recordings."""
        for method, path, body in RECORDINGS["prepare"]:
            await self.rest(method, path, body)

    async def rest(self, method: str, path: str, body: Any = None) -> None:
        """A super-user's call."""
        assert await self._player.call("admin", method, path, body) in {200, 204, 409}

    async def connect(self, caller: str, **step: Any) -> Connection:
        """A connection of a caller, who was let in unless it is `bare`."""
        cnx, answer = await self._player.open(caller, {"tls": True, **step})
        assert cnx is not None
        assert step.get("bare") or answer == {"type": "CONNECTED"}, answer
        self._open.append(cnx.writer)
        return cnx

    async def ask(self, cnx: Connection, kind: str, **fields: Any) -> Json:
        """What a command is answered with."""
        return await self._player.ask(cnx, kind, fields, SECONDS)

    def connect_command(self, caller: str) -> bytes:
        """A caller's CONNECT."""
        connect = self.secrets.connect(RECORDINGS["callers"][caller], version=21, refresh=True)
        return encode(BaseCommand(type=BaseCommand.CONNECT, connect=connect))

    def auth_response(self, caller: str) -> bytes:
        """A caller's credentials, as an answer to a challenge."""
        data = self.secrets.data_of(RECORDINGS["callers"][caller]).encode()
        response = CommandAuthResponse(response=AuthData(auth_method_name="token", auth_data=data))
        return encode(BaseCommand(type=BaseCommand.AUTH_RESPONSE, authResponse=response))

    async def http(self, request: str) -> bytes:
        """What the HTTPS port writes until it closes."""
        address = urlsplit(self.broker.web_service_url_tls or "")
        reader, writer = await asyncio.open_connection(
            address.hostname,
            address.port,
            ssl=self.secrets.context({}),
            server_hostname="localhost",
        )
        writer.write(request.encode())
        self._open.append(writer)
        return await asyncio.wait_for(reader.read(), SECONDS)

    def drop_all(self) -> None:
        for writer in self._open:
            writer.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Besieged]:
    """One for all attacks: none may change what the next one meets."""
    secrets = Secrets.make(tmp_path_factory.mktemp("attacks"))
    settings = {**secrets.settings("strict"), "brokerServicePort": "", "webServicePort": ""}
    async with Broker(config=settings) as under_attack:
        made = Besieged(under_attack, secrets)
        await made.prepare()
        try:
            yield made
        finally:
            made.drop_all()


async def frames_until_closed(cnx: Connection) -> list[str]:
    """The kinds of what comes; the broker has to close."""
    kinds = []
    while (frame := await cnx.frame(SECONDS)) is not None:
        kinds.append(BaseCommand.Type.Name(frame.type))
    assert cnx.is_closed
    return kinds


async def test_nobody_is_served_before_he_has_proved_who_he_is(broker: Besieged) -> None:
    producer = CommandProducer(topic=TOPIC, producer_id=1, request_id=1)
    for frame in (
        send_frame(1, 0, b"x"),
        encode(BaseCommand(type=BaseCommand.PRODUCER, producer=producer)),
        broker.auth_response("admin"),
        b"\x7f\xff\xff\xff",
        b"GET /admin/v2/tenants HTTP/1.1\r\n\r\n",
        broker.connect_command("producer") + broker.connect_command("admin"),
        broker.connect_command("producer") + broker.auth_response("admin"),
    ):
        cnx = await broker.connect("none", bare=True)
        cnx.writer.write(frame)
        assert await frames_until_closed(cnx) == []


async def test_nobody_becomes_somebody_else(broker: Besieged) -> None:
    for caller, frame in (
        ("producer", broker.auth_response("admin")),
        ("producer", broker.connect_command("admin")),
        # Behind a proxy, whose role the connection has.
        ("proxy>producer", broker.auth_response("producer")),
        ("proxy>producer", broker.auth_response("admin")),
    ):
        cnx = await broker.connect(caller)
        cnx.writer.write(frame)
        assert await frames_until_closed(cnx) == []


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://o/n/a",
        "persistent://t/n/../../o/n/a",
        "persistent://../o/n/a",
        "persistent://t/n/a/../../../o/n/a",
        "persistent://T/n/a",
        "non-persistent://o/n/a",
        "persistent://pulsar/system/transaction_coordinator_assign",
        "persistent://t/n/__change_events",
        "persistent://t/n/__change_events-partition-0",
    ],
)
async def test_who_may_produce_in_a_namespace_may_nowhere_else(
    broker: Besieged, topic: str
) -> None:
    await broker.rest("POST", PERMISSION, ["produce"])
    cnx = await broker.connect("producer")
    answer = await broker.ask(cnx, "PRODUCER", topic=topic, producer_id=1)
    assert answer["type"] == "ERROR", topic


async def test_names_like_that_of_a_granted_topic_are_not_granted(broker: Besieged) -> None:
    cnx = await broker.connect("topicuser")
    for name in ("one-partition-00", "one-partition--1", "one-DLQ", "One", "one/two", "one\n"):
        answer = await broker.ask(cnx, "LOOKUP", topic=f"persistent://t/n/{name}")
        assert answer["response"] == "Failed", name
    answer = await broker.ask(cnx, "LOOKUP", topic="persistent://t/n/one")
    assert answer["response"] == "Connect"


async def test_a_watch_ends_with_the_right_to_the_names(broker: Besieged) -> None:
    await broker.rest("POST", PERMISSION, ["produce"])
    watching = await broker.connect("producer")
    pattern = {"namespace": "t/n", "topics_pattern": "persistent://t/n/.*"}
    answer = await broker.ask(watching, "WATCH_TOPIC_LIST", watcher_id=1, **pattern)
    assert answer["type"] == "WATCH_TOPIC_LIST_SUCCESS"
    await broker.rest("PUT", "/admin/v2/persistent/t/n/before")
    frame = await watching.frame(SECONDS)
    assert frame is not None
    assert frame.type == BaseCommand.WATCH_TOPIC_UPDATE

    await broker.rest("DELETE", PERMISSION)
    await no_watch_left(broker)
    await broker.rest("PUT", "/admin/v2/persistent/t/n/after")
    # Nothing comes before the answer to what is asked last.
    answer = await broker.ask(watching, "LOOKUP", topic=TOPIC)
    assert answer["error"] == "AuthorizationError"


async def no_watch_left(broker: Besieged) -> None:
    """Return when the broker has ended all watches; a second is promised."""
    connections = broker.broker.service.connections
    async with asyncio.timeout(SECONDS):
        while any(each.watchers for each in connections._open):
            await asyncio.sleep(0.01)


async def test_who_waits_to_be_exclusive_does_not_outwait_his_right(broker: Besieged) -> None:
    await broker.rest("POST", PERMISSION, ["produce"])
    holder, waiting = await broker.connect("both"), await broker.connect("producer")
    fields = {"topic": "persistent://t/n/exclusive", "producer_id": 1}
    exclusive = {**fields, "producer_access_mode": "Exclusive"}
    answer = await broker.ask(holder, "PRODUCER", **exclusive)
    assert answer["type"] == "PRODUCER_SUCCESS"
    answer = await broker.ask(
        waiting, "PRODUCER", **fields, producer_access_mode="WaitForExclusive"
    )
    assert answer["type"] == "PRODUCER_SUCCESS"  # which says that it is not ready

    await broker.rest("DELETE", PERMISSION)
    frame = await waiting.frame(SECONDS)
    assert frame is not None
    assert frame.type == BaseCommand.ERROR
    holder.writer.close()
    waiting.writer.write(send_frame(1, 0, b"x"))
    assert await frames_until_closed(waiting) == []


@pytest.mark.parametrize(
    ("lengths", "status"),
    [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: xchunked", 501),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 501),
        ("Content-Length: 0\r\nContent-Length: 5", 400),
        ("Content-Length: 0, 5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length : 5", 400),
    ],
)
async def test_a_request_does_not_hide_in_anothers_body(
    broker: Besieged, lengths: str, status: int
) -> None:
    token = broker.secrets.token({"sub": "admin"})
    who = f"Host: localhost\r\nAuthorization: Bearer {token}"
    hidden = f"GET /admin/v2/tenants HTTP/1.1\r\n{who}\r\n\r\n"
    head = f"POST /admin/v2/x HTTP/1.1\r\n{who}\r\n{lengths}\r\n\r\n"
    answer = await broker.http(f"{head}0\r\n\r\n{hidden}")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(f"HTTP/1.1 {status}".encode())


@pytest.mark.parametrize(
    "path",
    [
        "/admin;x/v2/tenants",
        "/%61dmin/v2/tenants",
        "/admin%2fv2/tenants",
        "//admin/v2/tenants",
        "/x/../admin/v2/tenants",
        "/console/../admin/v2/tenants",
        "/console/..%2f..%2f..%2fserver%2fconfig.py",
        "http://elsewhere/admin/v2/tenants",
        "/admin/v2/tenants?token={token}",
    ],
)
async def test_no_writing_of_a_path_goes_around_authentication(broker: Besieged, path: str) -> None:
    token = broker.secrets.token({"sub": "admin"})
    cookie = f"Cookie: token={token}; Authorization=Bearer {token}"
    lines = f"Host: localhost\r\nConnection: close\r\n{cookie}"
    path = path.replace("{token}", token)
    answer = await broker.http(f"GET {path} HTTP/1.1\r\n{lines}\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 404"))
    assert b"Set-Cookie" not in answer


async def test_who_has_no_right_makes_neither_topics_nor_subscriptions(broker: Besieged) -> None:
    await broker.rest("PUT", "/admin/v2/persistent/o/n/there")
    cnx = await broker.connect("producer")
    for name in ("never", "there"):
        topic = f"persistent://o/n/{name}"
        schema = {"name": "s", "schema_data": b"", "type": "String"}
        for kind, fields in (
            ("PARTITIONED_METADATA", {"metadata_auto_creation_enabled": True}),
            ("LOOKUP", {"authoritative": True}),
            ("PRODUCER", {"producer_id": 1}),
            ("SUBSCRIBE", {"subscription": "s", "subType": "Shared", "consumer_id": 1}),
            ("SUBSCRIBE", {"subscription": "s", "subType": "Shared", "consumer_id": 2, "durable": False}),
            ("GET_SCHEMA", {}),
            ("GET_OR_CREATE_SCHEMA", {"schema": schema}),
        ):  # fmt: skip
            answer = await broker.ask(cnx, kind, topic=topic, **fields)
            assert "AuthorizationError" in str(answer), (kind, answer)
        path = f"/admin/v2/persistent/o/n/{name}"
        for method, rest in (
            ("PUT", path),
            ("PUT", f"{path}/partitions"),
            ("PUT", f"{path}/subscription/s"),
            ("PUT", path.replace("persistent", "non-persistent")),
            ("GET", f"{path}/stats"),
        ):
            answer = await broker.http(request_of(broker, "producer", method, rest))
            assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 403")), (rest, answer)
    for path, is_empty in (
        ("persistent/o/n", False),
        ("persistent/o/n/partitioned", True),
        ("non-persistent/o/n", True),
        ("persistent/o/n/there/subscriptions", True),
    ):
        answer = await broker.http(request_of(broker, "admin", "GET", f"/admin/v2/{path}"))
        listed = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert "persistent://o/n/never" not in listed
        assert not (is_empty and listed), (path, listed)


def request_of(broker: Besieged, role: str, method: str, path: str) -> str:
    """A request with a role's token, the last one of its connection."""
    token = broker.secrets.token({"sub": role})
    body = "Content-Type: application/json\r\nContent-Length: 1\r\n\r\n2"
    who = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close"
    return f"{method} {path} HTTP/1.1\r\n{who}\r\n{body if method == 'PUT' else chr(13) + chr(10)}"


SHOWN = (
    "/metrics",
    "/admin/v2/brokers/configuration/runtime",
    "/admin/v2/brokers/configuration/values",
    "/admin/v2/brokers/internal-configuration",
    "/admin/v2/persistent/t/n/shown/stats",
    "/admin/v2/persistent/t/n/shown/internalStats",
    "/admin/v2/broker-stats/topics",
    "/admin/v2/broker-stats/metrics",
)
"""What tells most of a broker, its topics and their clients."""


async def test_secrets_stand_neither_in_the_log_nor_in_what_is_served(
    broker: Besieged, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    callers = RECORDINGS["callers"]
    await broker.rest("POST", PERMISSION, ["produce"])
    cnx = await broker.connect("producer")
    answer = await broker.ask(cnx, "PRODUCER", topic="persistent://t/n/shown", producer_id=1)
    assert answer["type"] == "PRODUCER_SUCCESS"
    for caller in ("badkey", "expired", "algnone"):
        wrong = await broker.connect("none", bare=True)
        wrong.writer.write(broker.connect_command(caller))
        assert await frames_until_closed(wrong) == ["ERROR"]
        token = broker.secrets.data_of(callers[caller])
        request = f"GET /admin/v2/tenants?token={token} HTTP/1.1\r\nHost: localhost\r\n"
        request += f"Connection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        assert (await broker.http(request)).startswith(b"HTTP/1.1 401")
    shown = [
        (await broker.http(request_of(broker, "admin", "GET", path))).decode() for path in SHOWN
    ]
    assert [each.split(" ")[1] for each in shown] == ["200"] * len(SHOWN)
    told = str([vars(each) for each in caplog.records] + [each.message for each in caplog.records])
    assert "authentication failed" in told
    assert "eof_received" not in told, "a client that ends TLS is nothing to warn of"
    for place in (told, *shown):
        # Every token of ours begins so; a key would stand there as bytes, as text or as base64.
        assert "eyJ" not in place
        for key in broker.secrets.keys.values():
            assert repr(key)[2:-1] not in place
            assert base64.b64encode(key).decode() not in place
