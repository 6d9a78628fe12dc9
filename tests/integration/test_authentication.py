"""Who is let in by the settings of authentication and authorization, over both protocols."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import bcrypt
import jwt
import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pulsar_py.client import AuthenticationToken, Client
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.common.log_format import fields_of
from pulsar_py.metadata.documents import DynamicConfiguration
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.server.security.actions import Action
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationState,
    ClientCredentials,
    HttpCredentials,
)
from pulsar_py.server.security.authorization import AccessTarget, Caller, PulsarAuthorization
from pulsar_py.standalone import Broker
from pulsar_py.testing import BrokerThread
from tests.certificates import Authority
from tests.wire_client import WireClient, encode

KEY = secrets.token_bytes(32)
SECRET_KEY = "data:;base64," + base64.b64encode(KEY).decode()
JAVA = "org.apache.pulsar.broker.authentication.AuthenticationProvider"
TOPIC = "persistent://public/default/t"


def token(role: object = "me", **claims: object) -> str:
    return jwt.encode({"sub": role, **claims}, KEY, "HS256")


def guarded(**more: object) -> dict[str, object]:
    """Settings of a broker with tokens, which makes `public/default`."""
    return {
        "authenticationEnabled": True,
        "authenticationProviders": f"{JAVA}Token",
        "tokenSecretKey": SECRET_KEY,
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
        **more,
    }


def authorized(**more: object) -> dict[str, object]:
    """The same with rights."""
    return guarded(**{"authorizationEnabled": True, "superUserRoles": "admin", **more})


async def http(
    broker: Broker, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Any]:
    """Status and parsed body."""
    address = urlsplit(broker.web_service_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    answer = await reader.read()
    writer.close()
    head, _, content = answer.partition(b"\r\n\r\n")
    try:
        return int(head.split(b" ")[1]), json.loads(content)
    except ValueError:
        return int(head.split(b" ")[1]), content


async def status(broker: Broker, authorization: str | None = None, path: str = "clusters") -> int:
    """The status of a call that needs authentication and no right."""
    headers = {} if authorization is None else {"Authorization": authorization}
    return (await http(broker, "GET", f"/admin/v2/{path}", **headers))[0]


async def admin(broker: Broker, method: str, path: str, body: object = None) -> None:
    """A call as super-user, which succeeds."""
    headers = {"Authorization": f"Bearer {token('admin')}"}
    found, answer = await http(broker, method, f"/admin/v2/{path}", body, **headers)
    assert found in {200, 204}, answer


@pytest.mark.setting("authenticationEnabled", "authenticationProviders", "tokenSecretKey")
async def test_only_who_has_a_token_is_let_in() -> None:
    async with Broker(config=guarded()) as broker:
        assert await status(broker) == 401
        assert await status(broker, f"Bearer {token()}") == 200
        assert await status(broker, "Bearer nonsense") == 401
        async with Client(
            broker.service_url, authentication=AuthenticationToken(token())
        ) as client:
            await (await client.create_producer(TOPIC)).send(b"x")
        async with Client(broker.service_url) as client:
            with pytest.raises(Exception, match="Failed to authenticate"):
                await client.create_producer(TOPIC)


def test_the_official_client_proves_itself_by_token_and_by_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    config = authorized(
        authenticationProviders=f"{JAVA}Tls,{JAVA}Token",
        superUserRoles="admin,operator",
        brokerServicePortTls=0,
        tlsCertificateFilePath=certificate,
        tlsKeyFilePath=key,
        tlsTrustCertsFilePath=authority.path,
    )
    with BrokerThread(config=config) as broker:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        client = pulsar.Client(
            broker.service_url,
            authentication=pulsar.AuthenticationToken(token("admin")),
            logger=logger,
        )
        client.create_producer("t").send(b"by token")
        client.close()
        client = pulsar.Client(
            broker.service_url_tls,
            authentication=pulsar.AuthenticationTLS(*authority.issue("operator")),
            tls_trust_certs_file_path=authority.path,
            logger=logger,
        )
        client.create_producer("t").send(b"by certificate")
        client.close()
        stranger = pulsar.Client(
            broker.service_url,
            authentication=pulsar.AuthenticationToken(token("stranger")),
            logger=logger,
        )
        with pytest.raises(pulsar.AuthorizationError):
            stranger.create_producer("t")
        stranger.close()


@pytest.mark.setting("anonymousUserRole")
async def test_who_sends_nothing_may_be_anonymous() -> None:
    async with Broker(config=guarded(anonymousUserRole="anybody")) as broker:
        assert await status(broker) == 200
        # Credentials that are wrong are refused all the same.
        assert await status(broker, "Bearer nonsense") == 401
        address = urlsplit(broker.service_url)
        client = await WireClient.connect(address.hostname or "", address.port or 0)
        client.writer.close()
        await client.writer.wait_closed()


@pytest.mark.setting("authenticateMetricsEndpoint")
@pytest.mark.parametrize(("is_guarded", "expected"), [(False, 200), (True, 401)])
async def test_whether_figures_are_open(is_guarded: bool, expected: int) -> None:
    async with Broker(config=guarded(authenticateMetricsEndpoint=is_guarded)) as broker:
        assert (await http(broker, "GET", "/metrics"))[0] == expected


def base64_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def pem_and_der(key: Any) -> tuple[bytes, str]:
    """A private key to sign with, and its public one as a setting."""
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, "data:;base64," + base64.b64encode(public).decode()


@pytest.mark.setting("tokenPublicKey")
@pytest.mark.parametrize("algorithm", ["RS256", "PS512", "ES256"])
async def test_tokens_signed_by_a_private_key(algorithm: str) -> None:
    is_rsa = algorithm[0] != "E"
    key = (
        rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())
    )
    private, public = pem_and_der(key)
    config = guarded(tokenSecretKey="", tokenPublicKey=public, tokenPublicAlg=algorithm)
    async with Broker(config=config) as broker:
        good = jwt.encode({"sub": "me"}, private, algorithm)
        assert await status(broker, f"Bearer {good}") == 200
        # The public key is no secret: a signature by it proves nothing.
        public_bytes = base64.b64decode(public.partition(",")[2])
        head, claims = b'{"alg": "HS256"}', b'{"sub": "me"}'
        parts = f"{base64_url(head)}.{base64_url(claims)}"
        signature = hmac.digest(public_bytes, parts.encode(), "sha256")
        forged = f"{parts}.{base64_url(signature)}"
        assert await status(broker, f"Bearer {forged}") == 401


@pytest.mark.setting("tokenAudienceClaim", "authenticationEnabled", "authorizationProvider")
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"tokenSecretKey": ""}, "needs tokenSecretKey or tokenPublicKey"),
        ({"tokenSecretKey": "data:;base64,c2hvcnQ="}, "of 5 bytes, expected at least 32"),
        ({"tokenSecretKey": "file:///nowhere/key"}, "/nowhere/key: No such file"),
        ({"tokenAudienceClaim": "aud"}, "tokenAudienceClaim=aud needs tokenAudience"),
        ({"authenticationProviders": ""}, "needs authenticationProviders"),
        ({"authenticationProviders": f"{JAVA}Athenz"}, "AuthenticationProviderAthenz is not"),
        ({"authenticationProviders": "basic"}, "needs basicAuthConf"),
        ({"authenticationProviders": "no.such.Provider"}, "No module named"),
        ({"authenticationEnabled": False, "authorizationEnabled": True}, "authenticationEnabled"),
        ({"authorizationEnabled": True, "authorizationProvider": "B"}, "=B is not offered"),
    ],
)
async def test_what_can_not_be_set_up_is_named(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        await Broker(config=guarded(**given)).start()


@pytest.mark.setting("tokenPublicAlg")
async def test_a_key_for_another_algorithm_is_refused() -> None:
    _, public = pem_and_der(ec.generate_private_key(ec.SECP256R1()))
    config = guarded(tokenSecretKey="", tokenPublicKey=public, tokenPublicAlg="RS256")
    with pytest.raises(ConfigurationError, match="for ES256, not for RS256"):
        await Broker(config=config).start()


@pytest.mark.setting("tokenAuthClaim", "tokenAudienceClaim", "tokenAudience")
async def test_claims_that_count() -> None:
    config = authorized(tokenAuthClaim="roles", tokenAudienceClaim="aud", tokenAudience="here")
    async with Broker(config=config) as broker:
        for audience, role, expected in (
            ("here", "admin", 200),
            (["there", "here"], ["admin", "x"], 200),
            ("there", "admin", 401),
            (None, "admin", 401),
            ("here", "x", 401),
            ("here", ["x", "admin"], 401),
        ):
            given = token(roles=role, **({} if audience is None else {"aud": audience}))
            assert await status(broker, f"Bearer {given}", "tenants") == expected


@pytest.mark.setting("tokenAllowedClockSkewSeconds")
@pytest.mark.parametrize(("skew", "expected"), [(0, 401), (60, 200)])
async def test_clocks_that_are_wrong(skew: int, expected: int) -> None:
    async with Broker(config=guarded(tokenAllowedClockSkewSeconds=skew)) as broker:
        expired = token(exp=int(time.time()) - 10)
        assert await status(broker, f"Bearer {expired}") == expected


@pytest.mark.setting("tokenSettingPrefix")
async def test_settings_of_tokens_may_have_a_prefix() -> None:
    config = guarded(tokenSettingPrefix="my_", my_tokenSecretKey=SECRET_KEY, tokenSecretKey="")
    async with Broker(config=config) as broker:
        assert await status(broker, f"Bearer {token()}") == 200


async def test_a_key_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_bytes(secrets.token_bytes(32))
    async with Broker(config=guarded(tokenSecretKey=f"file://{path}")) as broker:
        assert await status(broker, f"Bearer {token()}") == 401
        path.write_bytes(KEY)
        assert await status(broker, f"Bearer {token()}") == 200
        path.write_bytes(b"short")
        assert await status(broker, f"Bearer {token()}") == 200  # the former key stays


@pytest.mark.setting("basicAuthConf")
async def test_users_and_passwords(tmp_path: Path) -> None:
    path = tmp_path / "htpasswd"
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    path.write_text(f"apr:$apr1$Wm1x2y3z$zRgAqw8M6CP9jSyFh65sz/\ndes:abNANd1rDfiNc\nbc:{hashed}\n")
    config = guarded(authenticationProviders="basic", basicAuthConf=str(path))
    async with Broker(config=config) as broker:

        def basic(text: str) -> str:
            return f"Basic {base64.b64encode(text.encode()).decode()}"

        for user in ("apr", "des", "bc"):
            for _ in range(2):  # the second one is remembered
                assert await status(broker, basic(f"{user}:secret")) == 200
            assert await status(broker, basic(f"{user}:wrong")) == 401
        assert await status(broker, basic("nobody:secret")) == 401
        path.write_text("nobody:$apr1$Wm1x2y3z$zRgAqw8M6CP9jSyFh65sz/\n")
        assert await status(broker, basic("nobody:secret")) == 200
        assert await status(broker, basic("des:secret")) == 401


async def test_a_line_that_is_no_password_is_named(tmp_path: Path) -> None:
    path = tmp_path / "htpasswd"
    path.write_text("a:abNANd1rDfiNc\nb:{SHA}nonsense\n")
    config = guarded(authenticationProviders="basic", basicAuthConf=str(path))
    with pytest.raises(ConfigurationError, match="basicAuthConf: line 2"):
        await Broker(config=config).start()


class Knock:
    """A user's own provider: who knocks is let in."""

    method_name = "knock"

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        return Authenticated(auth_data.decode())

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        return Authenticated("x") if "knock" in credentials.headers else None


async def test_a_users_own_provider() -> None:
    config = guarded(authenticationProviders=f"token,{__name__}.Knock")
    async with Broker(config=config) as broker:
        assert (await http(broker, "GET", "/admin/v2/clusters", Knock="yes"))[0] == 200
        assert await status(broker, f"Bearer {token()}") == 200
        assert await status(broker) == 401


@pytest.mark.setting("authorizationEnabled", "superUserRoles")
async def test_super_users_and_those_that_they_let_in() -> None:
    async with Broker(config=authorized()) as broker:
        assert await status(broker, f"Bearer {token('me')}", "tenants") == 401
        assert await status(broker, f"Bearer {token('admin')}", "tenants") == 200
        await admin(broker, "POST", "namespaces/public/default/permissions/me", ["produce"])
        async with Client(
            broker.service_url, authentication=AuthenticationToken(token())
        ) as client:
            await (await client.create_producer(TOPIC)).send(b"x")
            with pytest.raises(Exception, match="Client is not authorized to"):
                await client.subscribe(TOPIC, subscription_name="s")


async def test_a_super_user_may_be_made_while_the_broker_runs() -> None:
    async with Broker(config=authorized()) as broker:
        documents = broker.service.resources.dynamic_configuration
        await documents.create("", DynamicConfiguration({"superUserRoles": "me"}))
        assert await status(broker, f"Bearer {token('me')}", "tenants") == 200
        assert await status(broker, f"Bearer {token('admin')}", "tenants") == 401


@pytest.mark.setting("authorizationAllowWildcardsMatching")
@pytest.mark.parametrize(("is_allowed", "expected"), [(False, 403), (True, 200)])
async def test_grants_to_roles_of_a_pattern(is_allowed: bool, expected: int) -> None:
    config = authorized(authorizationAllowWildcardsMatching=is_allowed)
    async with Broker(config=config) as broker:
        await admin(broker, "POST", "namespaces/public/default/permissions/team.*", ["consume"])
        path = "namespaces/public/default/topics"
        assert await status(broker, f"Bearer {token('team.a')}", path) == expected
        assert await status(broker, f"Bearer {token('other')}", path) == 403


@pytest.mark.setting("proxyRoles")
async def test_a_proxy_acts_for_whom_it_names() -> None:
    async with Broker(
        config=authorized(proxyRoles="proxy", superUserRoles="admin,proxy")
    ) as broker:
        for original, expected in (("admin", 200), ("me", 401), ("proxy", 401), (None, 401)):
            headers: Mapping[str, str] = (
                {} if original is None else {"X_Original_Principal": original}
            )
            found, _ = await http(
                broker,
                "GET",
                "/admin/v2/tenants",
                Authorization=f"Bearer {token('proxy')}",
                **headers,
            )
            assert found == expected, original


class Hearing(PulsarAuthorization):
    """Rules that take note of who asked."""

    heard: ClassVar[list[Caller]] = []

    async def allows(self, caller: Caller, action: Action, target: AccessTarget) -> bool:
        self.heard.append(caller)
        return await super().allows(caller, action, target)


async def test_original_principal_is_handed_through_from_connect_and_from_its_header() -> None:
    config = authorized(
        authorizationProvider=f"{__name__}.Hearing",
        proxyRoles="proxy",
        superUserRoles="admin,proxy",
    )
    async with Broker(config=config) as broker:
        headers = {
            "Authorization": f"Bearer {token('proxy')}",
            "X_Original_Principal": "you",
        }
        Hearing.heard.clear()
        assert (await http(broker, "GET", "/admin/v2/tenants", **headers))[0] == 401
        assert Hearing.heard == [Caller("proxy", "you")]

        Hearing.heard.clear()
        address = urlsplit(broker.service_url)
        proxy = WireClient(*await asyncio.open_connection(address.hostname, address.port))
        for kind, field, values in (
            (
                BaseCommand.CONNECT,
                "connect",
                {
                    "client_version": "test",
                    "protocol_version": 21,
                    "auth_method_name": "token",
                    "auth_data": token("proxy").encode(),
                    "original_principal": "you",
                },
            ),
            (BaseCommand.LOOKUP, "lookupTopic", {"topic": TOPIC, "request_id": 1}),
        ):
            command = BaseCommand(type=kind)
            for name, value in values.items():
                setattr(getattr(command, field), name, value)
            proxy.writer.write(encode(command))
            answer = (await proxy._read()).command
        assert answer.lookupTopicResponse.error == ServerError.AuthorizationError
        assert Hearing.heard == [Caller("proxy", "you")]
        await proxy.close()


@pytest.mark.setting("authenticateOriginalAuthData")
@pytest.mark.parametrize(("is_checked", "expected"), [(False, "CONNECTED"), (True, "ERROR")])
async def test_whether_a_proxys_word_counts(is_checked: bool, expected: str) -> None:
    config = authorized(authenticateOriginalAuthData=is_checked, proxyRoles="proxy")
    async with Broker(config=config) as broker:
        address = urlsplit(broker.service_url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        command = BaseCommand(type=BaseCommand.CONNECT)
        connect = command.connect
        connect.client_version, connect.protocol_version = "test", 21
        connect.auth_method_name, connect.auth_data = "token", token("proxy").encode()
        connect.original_principal = "me"
        connect.original_auth_method, connect.original_auth_data = "token", "nonsense"
        data = command.SerializeToString()
        size = len(data).to_bytes(4, "big")
        writer.write((len(data) + 4).to_bytes(4, "big") + size + data)
        total = int.from_bytes(await reader.readexactly(4), "big")
        answer = BaseCommand.FromString((await reader.readexactly(total))[4:])
        writer.close()
        assert BaseCommand.Type.Name(answer.type) == expected


@pytest.mark.setting("brokerClientAuthenticationPlugin")
@pytest.mark.parametrize(("plugin", "expected"), [("", 404), ("AuthenticationTls", 200)])
async def test_whether_tenants_are_made_at_the_start(plugin: str, expected: int) -> None:
    async with Broker(config=authorized(brokerClientAuthenticationPlugin=plugin)) as broker:
        found = await status(broker, f"Bearer {token('admin')}", "tenants/public")
        assert found == expected


@pytest.mark.setting("authenticationRoleLoggingAnonymizer", "webServiceRequestLogEnabled")
async def test_who_did_what_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    config = authorized(
        authenticationRoleLoggingAnonymizer="REDACTED", webServiceRequestLogEnabled=True
    )
    stranger, expired = token("stranger"), token("late", exp=1)
    async with Broker(config=config) as broker:
        await admin(broker, "PUT", "tenants/t", {"allowedClusters": ["standalone"]})
        assert await status(broker, f"Bearer {stranger}", "tenants") == 401
        assert await status(broker, f"Bearer {expired}") == 401
        async with Client(
            broker.service_url, authentication=AuthenticationToken(stranger)
        ) as client:
            with pytest.raises(Exception, match="not authorized"):
                await client.create_producer(TOPIC)
        figures = broker.service.authenticators.counts.statistics()
        assert figures.successes_count["token"] >= 3
        assert figures.expired_count == 1
        assert broker.service.audit.statistics().changes_count == 1
        assert broker.service.audit.statistics().authorization_refusals_count >= 2
    lines = [each for each in caplog.records if each.name == "pulsar_py.audit"]
    assert {each.message for each in lines} == {"changed", "refused", "authentication failed"}
    changed = fields_of(next(each for each in lines if each.message == "changed"))
    assert changed["role"] == "[REDACTED]"
    assert changed["resource"] == "/admin/v2/tenants/t"
    assert changed["action"] == "create tenant"
    requests = [fields_of(each) for each in caplog.records if each.name == "pulsar_py.requests"]
    assert [each["path"] for each in requests][:2] == ["/admin/v2/tenants/t", "/admin/v2/tenants"]
    written = str([(each.getMessage(), fields_of(each)) for each in caplog.records])
    assert stranger not in written
    assert expired not in written
    assert "'stranger'" not in written
