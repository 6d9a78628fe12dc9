"""The HTTP side of a broker: what is imported when, and who may open a WebSocket.

Settings of WebSocket connections are shown here, too.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import bcrypt
import jwt
import pytest

from pulsar_py.admin.foreign_pages import PageRules
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.common.loops.tasks import TaskOwner
from pulsar_py.server.security.peer import Peer
from pulsar_py.standalone import Broker
from pulsar_py.web import Web
from tests.certificates import Authority
from tests.unit.websocket.dialogs import closed, said, served
from tests.websocket_client import PING, WebSocketClient, frame_bytes

KEY = b"a key of thirty-two bytes, or so"
PRODUCER = "/v2/producer/persistent/public/default/t"
CONSUMER = "/v2/consumer/persistent/public/default/t/s"
GUARDED = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "authenticationProviders": "token",
    "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
    "superUserRoles": "admin",
    "brokerClientAuthenticationPlugin": "AuthenticationToken",
}


def token(role: str) -> str:
    return jwt.encode({"sub": role}, KEY, "HS256")


def test_nothing_of_websocket_is_imported_before_the_first_handshake() -> None:
    code = """
import asyncio, sys
from pulsar_py.standalone import Broker
from tests.websocket_client import WebSocketClient

def loaded():
    return any(name.startswith(("pulsar_py.websocket", "wsproto")) for name in sys.modules)

async def serve():
    async with Broker() as broker:
        port = int(broker.web_service_url.rpartition(":")[2])
        await WebSocketClient.open(port, "/admin/v2/clusters")
        print(loaded())
        path = "/ws/v2/producer/persistent/public/default/t"
        client = await WebSocketClient.open(port, path)
        print(client.status, loaded())
        await client.drop()

asyncio.run(serve())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "101", "True"]


def test_the_rest_api_is_imported_with_the_first_request() -> None:
    code = """
import asyncio, sys
from pulsar_py.standalone import Broker
from tests.websocket_client import WebSocketClient

def loaded():
    return "pulsar_py.admin.api.all_routes" in sys.modules

async def serve():
    broker = Broker()
    print(loaded())
    async with broker:
        print(loaded(), "h11" in sys.modules)
        port = int(broker.web_service_url.rpartition(":")[2])
        clients = [WebSocketClient.open(port, "/admin/v2/clusters") for _ in range(3)]
        print(*[client.status for client in await asyncio.gather(*clients)], loaded())

asyncio.run(serve())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3 + ["200"] * 3 + ["True"]


async def test_the_rest_api_is_made_once_however_many_ask_for_it() -> None:
    async with Broker() as broker:
        web = Web(broker.service, SystemClock(), PageRules())
        tasks = TaskOwner("test")
        first = tasks.spawn(web._rest("GET", "/admin/v2/clusters", {}, b"", Peer()), "first")
        await asyncio.sleep(0)
        first.cancel()
        made = web._making
        answers = await asyncio.gather(
            *(web._rest("GET", "/admin/v2/clusters", {}, b"", Peer()) for _ in range(3))
        )
        assert [answer.status for answer in answers] == [200] * 3
        assert web._making is made
        assert first.cancelled()
        await web.close()


async def test_a_web_that_is_closed_while_the_rest_api_is_imported_ends_that() -> None:
    async with Broker() as broker:
        web = Web(broker.service, SystemClock(), PageRules())
        web.prepare()
        made = web._making
        assert made is not None
        await web.close()
        assert made.done()


async def test_in_virtual_time_the_rest_api_is_there_at_once() -> None:
    async with Broker() as broker:
        web = Web(broker.service, SystemClock(), PageRules(), imports_at_once=True)
        web.prepare()
        assert web._making is None
        answer = await web._rest("GET", "/admin/v2/clusters", {}, b"", Peer())
        assert answer.status == 200
        await web.close()


async def test_a_caller_has_the_rights_of_his_role() -> None:
    async with served(**GUARDED) as broker:
        admin = {"Authorization": f"Bearer {token('admin')}"}
        friend = {"Authorization": f"Bearer {token('friend')}"}
        audit = broker.broker.service.audit

        def refusals_count() -> int:
            return audit.statistics().authorization_refusals_count

        for headers, path, status in (
            (None, PRODUCER, 401),
            ({"Authorization": "Bearer nonsense"}, PRODUCER, 401),
            (None, f"{PRODUCER}?token=nonsense", 401),
            (friend, PRODUCER, 403),
            (friend, CONSUMER, 403),
            (friend, "/v2/reader/persistent/public/default/t", 403),
            (friend, "/v3/consumer/s?topics=persistent://public/default/t", 403),
            (friend | {"X-Original-Principal": "admin"}, PRODUCER, 403),
            (admin, PRODUCER, 101),
            (None, f"{PRODUCER}?token={token('admin')}", 101),
            (admin | {"X-Original-Principal": "admin"}, PRODUCER, 101),
        ):
            before = refusals_count()
            assert (await broker.open(path, headers=headers)).status == status, (path, headers)
            assert (refusals_count() > before) == (status == 403), "the audit log has a line"


async def test_users_and_passwords_open_a_websocket(tmp_path: Path) -> None:
    path = tmp_path / "htpasswd"
    path.write_text("admin:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode())
    config = {**GUARDED, "authenticationProviders": "basic", "basicAuthConf": str(path)}
    async with served(**config) as broker:
        for password, status in (("secret", 101), ("wrong", 401)):
            text = base64.b64encode(f"admin:{password}".encode()).decode()
            headers = {"Authorization": f"Basic {text}"}
            assert (await broker.open(PRODUCER, headers=headers)).status == status


async def test_a_certificate_opens_a_websocket_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    config = {
        **GUARDED,
        "authenticationProviders": "tls",
        "webServicePortTls": 0,
        "tlsCertificateFilePath": certificate,
        "tlsKeyFilePath": key,
        "tlsTrustCertsFilePath": authority.path,
    }
    async with served(**config) as broker:
        port = int(str(broker.broker.web_service_url_tls).rpartition(":")[2])
        for pair, status in ((authority.issue("admin"), 101), (authority.issue("other"), 403)):
            context = ssl.create_default_context(cafile=authority.path)
            context.check_hostname = False
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
            context.load_cert_chain(*pair)
            client = await WebSocketClient.open(port, f"/ws{PRODUCER}", tls=context)
            assert client.status == status
            if status == 101:
                client.send('{"payload": "YQ=="}')
                assert (await said(client))["result"] == "ok"
            await client.drop()


@pytest.mark.setting("consoleEnabled")
async def test_the_console_can_be_off() -> None:
    async with served(consoleEnabled=False) as broker:
        web = broker.broker.web_service_url

        def status(path: str) -> int:
            try:
                with urllib.request.urlopen(web + path) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                error.close()
                return error.code

        for path, wanted in (("/console/", 404), ("/admin/console/me", 404), ("/metrics", 200)):
            assert await asyncio.to_thread(status, path) == wanted


@pytest.mark.setting("webSocketServiceEnabled")
async def test_websocket_can_be_off() -> None:
    async with served(webSocketServiceEnabled=False) as broker:
        assert (await broker.open(PRODUCER)).status == 404


@pytest.mark.setting("webSocketMaxTextFrameSize")
async def test_messages_of_a_client_are_limited() -> None:
    async with served(webSocketMaxTextFrameSize=100) as broker:
        producer = await broker.open(PRODUCER)
        producer.send("x" * 101)
        assert (await closed(producer))[0] == 1009


@pytest.mark.setting("webSocketSessionIdleTimeoutMillis")
async def test_an_idle_connection_is_closed() -> None:
    async with served(webSocketSessionIdleTimeoutMillis=100) as broker:
        assert (await closed(await broker.open(CONSUMER)))[0] == 1001


@pytest.mark.setting("webSocketPingDurationSeconds")
async def test_clients_are_pinged() -> None:
    async with served(webSocketPingDurationSeconds=1) as broker:
        client = await broker.open(CONSUMER)
        frame = await client.receive()
        assert frame is not None
        assert (frame.opcode, frame.payload) == (PING, b"PING")
        client.writer.write(frame_bytes(b"PING", opcode=10))
