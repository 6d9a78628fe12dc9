"""Exact results that the suites of official clients expect of a guarded broker."""

from __future__ import annotations

import asyncio
import base64
import secrets
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import jwt
import pulsar
import pytest

from pulsar_py.admin_client import AdminClient, AdminSettings
from pulsar_py.admin_client.clusters import tenant
from pulsar_py.client import AuthenticationTLS, Client
from pulsar_py.proto.PulsarApi_pb2 import BaseCommand, ServerError
from pulsar_py.standalone import Broker
from pulsar_py.testing import BrokerThread
from tests.certificates import Authority
from tests.integration.test_authentication import http
from tests.wire_client import WireClient, encode

KEY = secrets.token_bytes(32)
PLAIN_METHOD = "X-Pulsar-Auth-Method-Name"


def token(role: str) -> str:
    return jwt.encode({"sub": role}, KEY, "HS256")


def settings(**more: object) -> dict[str, object]:
    """As the clients' suites start their broker."""
    return {
        "authenticationEnabled": True,
        "authenticationProviders": "token",
        "tokenSecretKey": "data:;base64," + base64.b64encode(KEY).decode(),
        "authorizationEnabled": True,
        "superUserRoles": "admin",
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
        **more,
    }


class Caller(WireClient):
    """A connection that says CONNECT by itself."""

    @classmethod
    async def open(cls, broker: Broker) -> Caller:
        address = urlsplit(broker.service_url)
        return cls(*await asyncio.open_connection(address.hostname, address.port))

    async def asks(self, kind: int, field: str, **fields: object) -> BaseCommand:
        """Send a command, and the next answer."""
        command = BaseCommand(type=kind)  # type: ignore[arg-type]
        getattr(command, field).SetInParent()
        for name, value in fields.items():
            setattr(getattr(command, field), name, value)
        self.writer.write(encode(command))
        return (await asyncio.wait_for(self._read(), 30)).command

    async def connects(self, **fields: object) -> BaseCommand:
        return await self.asks(
            BaseCommand.CONNECT, "connect", client_version="test", protocol_version=21, **fields
        )

    async def partitions(self, topic: str) -> BaseCommand:
        kind = BaseCommand.PARTITIONED_METADATA
        return await self.asks(kind, "partitionMetadata", topic=topic, request_id=1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """One with an anonymous role."""
    async with Broker(config=settings(anonymousUserRole="anonymous")) as started:
        yield started


async def allow(broker: Broker, *roles: str) -> None:
    """Make `private/auth`, where these roles may produce and consume."""
    headers = {"Authorization": f"Bearer {token('admin')}"}
    for path, body in (
        ("tenants/private", {"adminRoles": [], "allowedClusters": ["standalone"]}),
        (
            "namespaces/private/auth",
            {
                "auth_policies": {
                    "namespace_auth": {each: ["produce", "consume"] for each in roles},
                    "destination_auth": {},
                    "subscription_auth_roles": {},
                }
            },
        ),
    ):
        found, answer = await http(broker, "PUT", f"/admin/v2/{path}", body, **headers)
        assert found == 204, answer


async def test_an_unknown_method_and_none_get_the_anonymous_role(broker: Broker) -> None:
    await allow(broker, "anonymous")
    for fields in (
        {"auth_method_name": "none"},
        {"auth_method_name": "unknown", "auth_data": b"x"},
        {"auth_method_name": ""},
        {},
    ):
        caller = await Caller.open(broker)
        assert (await caller.connects(**fields)).type == BaseCommand.CONNECTED, fields
        answer = await caller.partitions("persistent://private/auth/t")
        assert not answer.partitionMetadataResponse.HasField("error"), answer
        caller.writer.close()


async def test_without_an_anonymous_role_they_are_refused() -> None:
    async with Broker(config=settings()) as broker:
        for method in ("none", "unknown", ""):
            caller = await Caller.open(broker)
            answer = await caller.connects(auth_method_name=method)
            assert answer.type == BaseCommand.ERROR
            assert answer.error.error == ServerError.AuthenticationError
            caller.writer.close()


@pytest.mark.parametrize("anonymous", ["anonymous", ""])
async def test_credentials_over_http_that_are_refused_are_401(anonymous: str) -> None:
    async with Broker(config=settings(anonymousUserRole=anonymous)) as broker:
        path = "/admin/v2/clusters"
        for headers in (
            {"Authorization": "Bearer nonsense"},
            {"Authorization": "Bearer nonsense", PLAIN_METHOD: "token"},
            {"Authorization": f"Bearer {token('admin')}x", PLAIN_METHOD: "token"},
            {"Authorization": "Basic YTpi"},
            {"Authorization": f"Bearer {token('admin')}", PLAIN_METHOD: "unknown"},
        ):
            assert (await http(broker, "GET", path, **headers))[0] == 401, headers
        assert (await http(broker, "GET", path))[0] == (200 if anonymous else 401)


async def test_a_role_without_rights_is_told_what_it_may_not(broker: Broker) -> None:
    await allow(broker, "token-principal")
    caller = await Caller.open(broker)
    await caller.connects(auth_method_name="token", auth_data=token("other").encode())
    answer = (await caller.partitions("persistent://private/auth/t")).partitionMetadataResponse
    assert answer.error == ServerError.AuthorizationError
    assert answer.message == "Client is not authorized to Get Partition Metadata"
    caller.writer.close()


async def test_an_unknown_listener_is_named() -> None:
    config = settings(anonymousUserRole="admin")
    async with Broker(config=config) as broker:
        caller = await Caller.open(broker)
        await caller.connects()
        answer = await caller.asks(
            BaseCommand.LOOKUP,
            "lookupTopic",
            topic="persistent://public/default/t",
            request_id=1,
            advertised_listener_name="test",
        )
        assert answer.lookupTopicResponse.error == ServerError.ServiceNotReady
        assert "the broker do not have test listener" in answer.lookupTopicResponse.message
        caller.writer.close()


async def test_super_users_are_the_admins_of_the_tenants_that_are_made_at_the_start() -> None:
    async with Broker(config=settings(superUserRoles="operator,admin")) as broker:
        for name in ("public", "pulsar"):
            headers = {"Authorization": f"Bearer {token('admin')}"}
            found = await http(broker, "GET", f"/admin/v2/tenants/{name}", **headers)
            expected = {"adminRoles": ["admin", "operator"], "allowedClusters": ["standalone"]}
            assert found == (200, expected)


def test_an_authority_that_fails_strict_checks_works(tmp_path: Path) -> None:
    """Its certificates have neither key usage nor identifiers of keys, which RFC 5280 wants."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("broker")
    mine, my_key = authority.issue("admin")
    config = settings(
        authenticationProviders="tls",
        brokerServicePortTls=0,
        webServicePortTls=0,
        tlsCertificateFilePath=certificate,
        tlsKeyFilePath=key,
        tlsTrustCertsFilePath=authority.path,
    )
    with BrokerThread(config=config) as broker:
        assert broker.service_url_tls is not None
        assert broker.web_service_url_tls is not None
        assert not strict_handshake(broker.service_url_tls, authority.path)
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        official = pulsar.Client(
            broker.service_url_tls,
            authentication=pulsar.AuthenticationTLS(mine, my_key),
            tls_trust_certs_file_path=authority.path,
            tls_validate_hostname=True,
            logger=logger,
        )
        official.create_producer("t").send(b"official")
        official.close()
        asyncio.run(publish(broker.service_url_tls, authority.path, mine, my_key))
        with AdminClient(
            AdminSettings(
                url=broker.web_service_url_tls,
                tls_trust_certs_file=authority.path,
                tls_certificate_file=mine,
                tls_key_file=my_key,
            )
        ) as admin:
            assert admin.call(tenant("public")).allowed_clusters == ["standalone"]


def strict_handshake(url: str, authority_path: str) -> bool:
    """Whether a client that checks strictly trusts the broker."""
    address = urlsplit(url)
    context = ssl.create_default_context(cafile=authority_path)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        with (
            socket.create_connection((address.hostname, address.port or 0)) as plain,
            context.wrap_socket(plain, server_hostname="localhost"),
        ):
            return True
    except ssl.SSLCertVerificationError:
        return False


async def publish(url: str, authority_path: str, certificate: str, key: str) -> None:
    """A message of our own client."""
    async with Client(
        url,
        authentication=AuthenticationTLS(certificate, key),
        tls_trust_certs_file_path=authority_path,
        tls_validate_hostname=True,
    ) as client:
        await (await client.create_producer("t")).send(b"ours")
