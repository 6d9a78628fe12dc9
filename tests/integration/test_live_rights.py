"""What becomes of open connections whose rights or keys go, over all protocols.

A second is promised: connections are looked at twice in it, and changed rights at once. Here each
wait is for the thing itself; tests in virtual time watch the second.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bcrypt
import jwt
import pytest
import pytest_asyncio

from pulsar_py.common.loops.clock import Clock, SystemClock
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.standalone import Broker
from tests.certificates import Authority
from tests.unit.websocket.dialogs import SECONDS, closed, said
from tests.websocket_client import CLOSE, WebSocketClient
from tests.wire_client import WireClient, drop, encode, send_frame

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = secrets.token_bytes(32)
NAMESPACE = "public/default"
POLICY_VIOLATION = 1008
WITHDRAWN = (POLICY_VIOLATION, "the right was withdrawn")
REVOKED = (POLICY_VIOLATION, "the credentials were revoked")
BOTH = ["produce", "consume"]


def token(role: str = "me", *, key: bytes = KEY, **claims: object) -> str:
    return jwt.encode({"sub": role, **claims}, key, "HS256")


PING = BaseCommand(type=BaseCommand.PING)
PING.ping.SetInParent()


class Guarded:
    """A broker with tokens and rights, and who calls it."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self._open: list[WireClient | WebSocketClient | KeepAlive] = []

    @classmethod
    @asynccontextmanager
    async def running(
        cls, folder: Path, clock: Clock | None = None, **more: object
    ) -> AsyncIterator[Guarded]:
        """One whose files lie in a folder."""
        folder.mkdir(exist_ok=True)
        key, revoked = folder / "secret.key", folder / "revoked"
        key.write_bytes(KEY)
        key.chmod(0o600)
        revoked.write_text("")
        config = {
            "authenticationEnabled": True,
            "authenticationProviders": "token",
            "tokenSecretKey": str(key),
            "tokenRevocationFile": str(revoked),
            "authorizationEnabled": True,
            "superUserRoles": "admin",
            "brokerClientAuthenticationPlugin": "AuthenticationToken",
            **more,
        }
        async with Broker(config=config, clock=clock) as broker:
            made = cls(broker, folder)
            try:
                yield made
            finally:
                await made.drop_all()

    async def admin(self, method: str, path: str, body: object = None) -> None:
        """A super-user's call, which succeeds."""
        status = await self.call(f"Bearer {token('admin')}", method, path, body)
        assert status in {200, 204}, (method, path, status)

    async def call(self, authorization: str, method: str, path: str, body: object = None) -> int:
        """The status of one request."""
        http = await self.http()
        status = await http.ask(authorization, method, path, body)
        await http.drop()
        return status

    async def http(self, tls: ssl.SSLContext | None = None) -> KeepAlive:
        """A connection for several requests."""
        broker = self.broker
        url = broker.web_service_url if tls is None else broker.web_service_url_tls
        http = KeepAlive(*await self._connected(url, tls))
        self._open.append(http)
        return http

    async def _connected(
        self, url: str | None, tls: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert url is not None, "the port is open"
        address = urlsplit(url)
        name = None if tls is None else "localhost"
        return await asyncio.open_connection(
            address.hostname, address.port, ssl=tls, server_hostname=name
        )

    async def wire(
        self,
        credentials: str,
        *,
        method: str = "token",
        refreshes: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> WireClient:
        """A client of the binary protocol that was let in."""
        url = self.broker.service_url if tls is None else self.broker.service_url_tls
        client = WireClient(*await self._connected(url, tls))
        command = BaseCommand(type=BaseCommand.CONNECT)
        connect = command.connect
        connect.client_version, connect.protocol_version = "test", 21
        connect.auth_method_name, connect.auth_data = method, credentials.encode()
        connect.feature_flags.supports_auth_refresh = refreshes
        client.writer.write(encode(command))
        answer = await client._read()
        assert answer.command.type == BaseCommand.CONNECTED
        client._task = asyncio.get_running_loop().create_task(client._read_all())
        self._open.append(client)
        return client

    async def web(self, kind: str, path: str, credentials: str) -> WebSocketClient:
        """A client of WebSocket that was let in."""
        found = await asyncio.wait_for(
            WebSocketClient.open(
                urlsplit(self.broker.web_service_url).port or 0,
                f"/ws/v2/{kind}/persistent/{path}",
                headers={"Authorization": credentials},
            ),
            SECONDS,
        )
        self._open.append(found)
        assert found.status == 101, found.body
        return found

    async def drop_all(self) -> None:
        for each in self._open:
            await (each.close() if isinstance(each, WireClient) else each.drop())


class KeepAlive:
    """A connection of HTTP that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def drop(self) -> None:
        """Close it."""
        await drop(self._writer)

    async def ask(
        self, authorization: str, method: str = "GET", path: str = "clusters", body: object = None
    ) -> int:
        """The status of a request."""
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} /admin/v2/{path} HTTP/1.1", "Host: localhost"]
        lines += [f"Authorization: {authorization}"] if authorization else []
        lines += ["Content-Type: application/json"]
        self._writer.write("\r\n".join([*lines, f"Content-Length: {len(data)}\r\n\r\n"]).encode())
        self._writer.write(data)
        head = (await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), SECONDS)).decode()
        sizes = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        await self._reader.readexactly(int(sizes[0].partition(":")[2]) if sizes else 0)
        return int(head.split()[1])


def replaced(path: Path, data: bytes) -> None:
    """Put another file there: one written anew may have the time and size of the former."""
    other = path.with_suffix(".new")
    other.write_bytes(data)
    other.chmod(0o600)
    other.replace(path)


async def lookup(client: WireClient, topic: str) -> int | None:
    """The error of a lookup, None without one."""
    command = BaseCommand(type=BaseCommand.LOOKUP)
    command.lookupTopic.topic = topic
    command.lookupTopic.request_id = client.next_request_id()
    answer = (await client.request(command, command.lookupTopic.request_id)).lookupTopicResponse
    return answer.error if answer.HasField("error") else None


async def pushed(client: WireClient) -> str:
    """The kind of the next command that answers nothing."""
    found = await asyncio.wait_for(client.pushed.get(), SECONDS)
    return BaseCommand.Type.Name(found.command.type)


async def lost(client: WireClient) -> None:
    """Return when the broker has closed the connection."""
    assert client._task is not None
    await asyncio.wait_for(asyncio.shield(client._task), SECONDS)


async def end_of(client: WebSocketClient) -> tuple[int | None, str]:
    """Code and reason of the close frame, behind messages that were sent before."""
    async with asyncio.timeout(SECONDS):
        while (frame := await client.receive()) is not None and frame.opcode != CLOSE:
            pass
    assert frame is not None, "the socket has ended"
    return frame.close_code, frame.payload[2:].decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    """One for all tests: each leaves it as it was."""
    async with Guarded.running(tmp_path_factory.mktemp("rights") / "files") as made:
        yield made


Change = Callable[[Guarded], Coroutine[None, None, None]]


def calls(*lines: tuple[str, str, Any]) -> Change:
    """A super-user's calls."""

    async def change(guarded: Guarded) -> None:
        for line in lines:
            await guarded.admin(*line)

    return change


def admins(*roles: str) -> tuple[str, str, Any]:
    return "POST", "tenants/public", {"adminRoles": roles, "allowedClusters": ["standalone"]}


ON_NAMESPACE = f"namespaces/{NAMESPACE}/permissions/me"
ON_TOPIC = f"persistent/{NAMESPACE}/of-topic/permissions/me"
SUPERS = "brokers/configuration/superUserRoles"
WAYS: dict[str, tuple[Change, Change]] = {
    "of-namespace": (
        calls(("POST", ON_NAMESPACE, BOTH)),
        calls(("DELETE", ON_NAMESPACE, None)),
    ),
    "of-topic": (
        calls(("PUT", f"persistent/{NAMESPACE}/of-topic", None), ("POST", ON_TOPIC, BOTH)),
        calls(("DELETE", ON_TOPIC, None)),
    ),
    "of-tenant": (calls(admins("me")), calls(admins())),
    "of-setting": (
        calls(("POST", f"{SUPERS}/admin%2Cme", None)),
        calls(("POST", f"{SUPERS}/admin", None)),
    ),
}
"""How a role gets its right, and how it is withdrawn, by the name of a topic."""


@pytest.mark.parametrize("name", WAYS)
async def test_a_right_that_is_withdrawn_is_gone_at_once(guarded: Guarded, name: str) -> None:
    grant, withdraw = WAYS[name]
    topic, path = f"persistent://{NAMESPACE}/{name}", f"{NAMESPACE}/{name}"
    await grant(guarded)
    client = await guarded.wire(token())
    assert await lookup(client, topic) is None
    assert (await client.create_producer(topic)).type == BaseCommand.PRODUCER_SUCCESS
    for number, is_durable in ((2, True), (3, False)):  # a consumer, and a reader
        answer = await client.subscribe(topic, f"s{number}", consumer_id=number, durable=is_durable)
        assert answer.type == BaseCommand.SUCCESS
    kept = await guarded.wire(token("admin"))
    assert (await kept.create_producer(topic)).type == BaseCommand.PRODUCER_SUCCESS
    bearer = f"Bearer {token()}"
    web = [
        await guarded.web("producer", path, bearer),
        await guarded.web("consumer", f"{path}/s", bearer),
        await guarded.web("reader", path, bearer),
    ]

    await withdraw(guarded)
    assert {await pushed(client), await pushed(client), await pushed(client)} == {
        "CLOSE_PRODUCER",
        "CLOSE_CONSUMER",
    }
    assert await lookup(client, topic) == ServerError.AuthorizationError
    assert [await end_of(each) for each in web] == [WITHDRAWN] * 3
    assert await lookup(kept, topic) is None
    assert kept.pushed.empty()


async def test_a_role_that_is_left_out_of_a_subscriptions_list_leaves_it(guarded: Guarded) -> None:
    topic = f"persistent://{NAMESPACE}/of-subscription"
    listed = f"namespaces/{NAMESPACE}/permissions/subscription/s"
    await guarded.admin("POST", ON_NAMESPACE, BOTH)
    await guarded.admin("POST", listed, ["me", "other"])
    client = await guarded.wire(token())
    assert await lookup(client, topic) is None
    for number, name in ((1, "s"), (2, "others")):
        answer = await client.subscribe(topic, name, consumer_id=number)
        assert answer.type == BaseCommand.SUCCESS
    web = await guarded.web("consumer", f"{NAMESPACE}/over-web/s", f"Bearer {token()}")

    await guarded.admin("DELETE", f"namespaces/{NAMESPACE}/permissions/s/me")
    found = await asyncio.wait_for(client.pushed.get(), SECONDS)
    assert found.command.close_consumer.consumer_id == 1
    assert await end_of(web) == WITHDRAWN
    assert await lookup(client, topic) is None
    assert client.pushed.empty()
    await guarded.admin("DELETE", ON_NAMESPACE)


@pytest.mark.setting("tokenRevocationFile")
@pytest.mark.parametrize(
    ("claims", "rule"),
    [
        ({"jti": "x"}, "jti x"),
        ({}, "sub me"),
        ({"iat": 10}, "iat 11"),
        ({"iat": 10}, "sub me iat 11"),
    ],
)
async def test_a_revoked_token_ends_everything_that_it_opened(
    guarded: Guarded, claims: dict[str, Any], rule: str
) -> None:
    await guarded.admin("POST", ON_NAMESPACE, BOTH)
    bearer = f"Bearer {token(**claims)}"
    wire, kept = await guarded.wire(token(**claims)), await guarded.wire(token("admin", iat=20))
    web = await guarded.web("reader", f"{NAMESPACE}/revoked", bearer)
    http = await guarded.http()
    assert await http.ask(bearer) == 200
    revoked = guarded.folder / "revoked"
    revoked.write_text(f"{rule}\n")
    try:
        await lost(wire)
        assert await closed(web) == REVOKED
        assert await http.ask(bearer) == 401
        assert await lookup(kept, f"persistent://{NAMESPACE}/revoked") is None
    finally:
        revoked.write_text("")


@pytest.mark.setting("tokenSecretKey")
async def test_tokens_of_a_former_key_end_with_it(guarded: Guarded) -> None:
    key = guarded.folder / "secret.key"
    bearer = f"Bearer {token('admin')}"
    wire = await guarded.wire(token("admin"))
    web = await guarded.web("producer", f"{NAMESPACE}/rotated", bearer)
    http = await guarded.http()
    assert await http.ask(bearer) == 200
    try:
        replaced(key, b"short")  # no key: the former one stays
        assert await http.ask(bearer) == 200
        replaced(key, KEY)
        web.send('{"payload": "YQ=="}')
        assert (await said(web))["result"] == "ok"

        other = secrets.token_bytes(32)
        replaced(key, other)
        await lost(wire)
        assert await closed(web) == REVOKED
        assert await http.ask(bearer) == 401
        assert await http.ask(f"Bearer {token('admin', key=other)}") == 200
    finally:
        replaced(key, KEY)


@pytest.mark.setting("basicAuthConf")
async def test_users_of_basic_end_with_their_line(tmp_path: Path) -> None:
    def line(user: str, password: bytes) -> str:
        return f"{user}:{bcrypt.hashpw(password, bcrypt.gensalt(4)).decode()}\n"

    def basic(user: str, password: str) -> str:
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    users = tmp_path / "users"
    changed, stays = line("changed", b"one"), line("stays", b"one")
    users.write_text(changed + line("gone", b"one") + stays)
    settings: dict[str, object] = {
        "authenticationProviders": "basic",
        "basicAuthConf": str(users),
        "authorizationEnabled": False,
    }
    async with Guarded.running(tmp_path / "files", None, **settings) as guarded:
        wire = {
            user: await guarded.wire(f"{user}:one", method="basic")
            for user in ("changed", "gone", "stays")
        }
        web = await guarded.web("producer", f"{NAMESPACE}/t", basic("gone", "one"))
        http = await guarded.http()
        assert await http.ask(basic("gone", "one")) == 200
        users.write_text(line("changed", b"two") + stays)
        await lost(wire["changed"])
        await lost(wire["gone"])
        assert await closed(web) == REVOKED
        assert await http.ask(basic("gone", "one")) == 401
        assert await http.ask(basic("changed", "two")) == 200
        assert await lookup(wire["stays"], f"persistent://{NAMESPACE}/t") is None


class LaterClock(SystemClock):
    """One whose day may be put forward."""

    later_millis = 0

    def wall_time_millis(self) -> int:
        return super().wall_time_millis() + self.later_millis


async def test_an_expired_token_serves_nothing_until_there_is_another(tmp_path: Path) -> None:
    clock = LaterClock()
    async with Guarded.running(tmp_path / "files", clock) as guarded:
        topic = f"persistent://{NAMESPACE}/t"
        ends_at = clock.wall_time_millis() // 1000 + 3600
        plain = await guarded.wire(token("admin", exp=ends_at))
        client = await guarded.wire(token("admin", exp=ends_at), refreshes=True)
        other = await guarded.wire(token("admin"))
        assert await lookup(client, topic) is None
        assert (await client.create_producer(topic)).type == BaseCommand.PRODUCER_SUCCESS
        assert (await client.subscribe(topic, "s", consumer_id=2)).type == BaseCommand.SUCCESS
        client.flow(10, consumer_id=2)
        assert (await other.create_producer(topic)).type == BaseCommand.PRODUCER_SUCCESS

        clock.later_millis = 3_600_000
        await lost(plain)
        assert await pushed(client) == "AUTH_CHALLENGE"
        client.writer.write(send_frame(1, 7, b"by an expired token"))
        held = asyncio.get_running_loop().create_task(lookup(client, topic))
        client.writer.write(encode(PING))
        assert await pushed(client) == "PONG"  # behind them, and before their answers
        other.writer.write(send_frame(1, 1, b"of another"))
        assert await pushed(other) == "SEND_RECEIPT"
        client.writer.write(encode(PING))
        assert await pushed(client) == "PONG"
        assert not held.done()

        answer = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
        answer.authResponse.response.auth_method_name = "token"
        answer.authResponse.response.auth_data = token("admin").encode()
        client.writer.write(encode(answer))
        assert await held is None
        kinds = sorted([await pushed(client) for _ in range(3)])
        assert kinds == ["MESSAGE", "MESSAGE", "SEND_RECEIPT"]


@pytest.mark.parametrize("refreshes", [False, True])
async def test_a_connection_ends_with_its_certificate(tmp_path: Path, *, refreshes: bool) -> None:
    authority, clock = Authority(tmp_path), LaterClock()
    certificate, key = authority.issue("broker")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(authority.path)
    tls.load_cert_chain(*authority.issue("admin"))
    settings: dict[str, object] = {
        "authenticationProviders": "tls",
        "brokerServicePort": "",
        "webServicePort": "",
        "brokerServicePortTls": 0,
        "webServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "tlsTrustCertsFilePath": authority.path,
    }
    async with Guarded.running(tmp_path / "files", clock, **settings) as guarded:
        wire = await guarded.wire("", method="tls", refreshes=refreshes, tls=tls)
        http = await guarded.http(tls)
        assert await http.ask("") == 200
        assert await lookup(wire, f"persistent://{NAMESPACE}/t") is None
        clock.later_millis = 100 * 365 * 24 * 3_600_000  # it is good until 2100
        if refreshes:
            assert await pushed(wire) == "AUTH_CHALLENGE"
            answer = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
            answer.authResponse.response.auth_data = b""
            wire.writer.write(encode(answer))
        await lost(wire)
        assert await http.ask("") == 401
