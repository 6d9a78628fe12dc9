"""Tokens of an issuer with TLS, over both protocols, and our client's OAuth2 against it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pulsar_py.client import AuthenticationToken, Client
from pulsar_py.client.security.authentication_oauth2 import AuthenticationOauth2
from pulsar_py.common.errors import ConfigurationError
from pulsar_py.standalone import Broker
from tests.certificates import Authority
from tests.integration.test_authentication import SECRET_KEY, http, token
from tests.token_issuer import SECRET, SigningKey, TokenIssuer, now_seconds

JAVA = "org.apache.pulsar.broker.authentication.oidc.AuthenticationProviderOpenID"
TOPIC = "persistent://public/default/t"


@contextlib.asynccontextmanager
async def issuing(place: Path) -> AsyncIterator[TokenIssuer]:
    """An issuer with a certificate of an authority at `place`/ca.pem."""
    certificate, key = Authority(place).issue("issuer")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    async with TokenIssuer(context).running() as issuer:
        assert isinstance(issuer, TokenIssuer)
        yield issuer


def trusting(issuer: TokenIssuer, place: Path, **more: object) -> dict[str, object]:
    """Settings of a broker that takes the issuer's tokens."""
    return {
        "authenticationEnabled": True,
        "authenticationProviders": JAVA,
        "openIDAllowedTokenIssuers": issuer.url,
        "openIDAllowedAudiences": "pulsar",
        "openIDTokenIssuerTrustCertsFilePath": str(place / "ca.pem"),
        "brokerClientAuthenticationPlugin": "AuthenticationToken",
        **more,
    }


async def status(broker: Broker, text: str, path: str = "clusters") -> int:
    """Of a call with a token: that of the default needs authentication and no right."""
    found, _ = await http(broker, "GET", f"/admin/v2/{path}", Authorization=f"Bearer {text}")
    return found


@pytest.mark.setting(
    "openIDAllowedTokenIssuers",
    "openIDAllowedAudiences",
    "openIDTokenIssuerTrustCertsFilePath",
    "openIDAcceptedTimeLeewaySeconds",
)
async def test_tokens_of_an_issuer_let_in(tmp_path: Path) -> None:
    async with issuing(tmp_path) as issuer:
        settings = trusting(issuer, tmp_path, openIDAcceptedTimeLeewaySeconds=30)
        async with Broker(config=settings) as broker:
            now = now_seconds()
            good = issuer.token()
            assert await status(broker, good) == 200
            assert await status(broker, issuer.token(aud="other")) == 401
            assert await status(broker, issuer.token(iss="https://localhost:1")) == 401
            assert await status(broker, issuer.token(exp=now - 10)) == 200
            assert await status(broker, issuer.token(exp=now - 60)) == 401
            assert await status(broker, SigningKey("one").sign(issuer.claims())) == 401
            assert await status(broker, good[:-4] + "AAAA") == 401
            async with Client(
                broker.service_url, authentication=AuthenticationToken(good)
            ) as client:
                await (await client.create_producer(TOPIC)).send(b"x")
        assert issuer.fetches_count == 1


@pytest.mark.setting("openIDKeyIdCacheMissRefreshSeconds")
async def test_a_new_key_is_found_and_one_withdrawn_counts_no_more(tmp_path: Path) -> None:
    async with issuing(tmp_path) as issuer:
        settings = trusting(issuer, tmp_path, openIDKeyIdCacheMissRefreshSeconds=0)
        async with Broker(config=settings) as broker:
            old = issuer.token()
            assert await status(broker, old) == 200
            issuer.keys = [SigningKey("two", "RS256")]
            assert await status(broker, issuer.token()) == 200
            assert await status(broker, old) == 401


@pytest.mark.setting("openIDCacheRefreshAfterWriteSeconds", "openIDCacheExpirationSeconds")
async def test_keys_of_an_issuer_that_went_away_expire(tmp_path: Path) -> None:
    async with issuing(tmp_path) as issuer:
        settings = trusting(
            issuer,
            tmp_path,
            openIDCacheRefreshAfterWriteSeconds=1,
            openIDCacheExpirationSeconds=2,
        )
        async with Broker(config=settings) as broker:
            good = issuer.token()
            assert await status(broker, good) == 200
            issuer.is_failing = True
            assert await status(broker, good) == 200
            async with asyncio.timeout(10):
                while await status(broker, good) == 200:
                    await asyncio.sleep(0.1)
            issuer.is_failing = False
            async with asyncio.timeout(10):
                while await status(broker, good) == 401:
                    await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def a_silent_issuer(end: asyncio.Event) -> AsyncIterator[str]:
    """The URL of one that takes connections and says nothing, until `end` closes them."""

    async def silence(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await end.wait()
        writer.close()

    silent = await asyncio.start_server(silence, "localhost", 0)
    async with silent:
        try:
            yield f"https://localhost:{silent.sockets[0].getsockname()[1]}"
        finally:
            end.set()


async def test_an_issuer_that_does_not_answer_holds_nobody_else_up(tmp_path: Path) -> None:
    end = asyncio.Event()
    async with a_silent_issuer(end) as url, issuing(tmp_path) as issuer:
        settings = trusting(
            issuer,
            tmp_path,
            openIDAllowedTokenIssuers=f"{issuer.url},{url}",
            openIDHttpConnectionTimeoutMillis=600_000,
            openIDHttpReadTimeoutMillis=600_000,
            authenticationProviders=f"token,{JAVA}",
            tokenSecretKey=SECRET_KEY,
        )
        async with Broker(config=settings) as broker, asyncio.TaskGroup() as group:
            waiting = group.create_task(status(broker, issuer.token(iss=url)))
            await asyncio.sleep(0.1)
            for _ in range(10):
                assert await status(broker, issuer.token()) == 200
                assert await status(broker, token("me")) == 200  # of the other provider
            assert not waiting.done()
            end.set()
            assert await waiting == 401


@pytest.mark.setting("openIDHttpConnectionTimeoutMillis", "openIDHttpReadTimeoutMillis")
async def test_an_issuer_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with a_silent_issuer(asyncio.Event()) as url, issuing(tmp_path) as issuer:
        settings = trusting(
            issuer,
            tmp_path,
            openIDAllowedTokenIssuers=url,
            openIDHttpConnectionTimeoutMillis=200,
            openIDHttpReadTimeoutMillis=200,
        )
        async with Broker(config=settings) as broker:
            assert await status(broker, issuer.token(iss=url)) == 401


async def test_an_issuer_with_another_authoritys_certificate_is_not_asked(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    Authority(others)
    async with issuing(tmp_path) as issuer:
        async with Broker(config=trusting(issuer, others)) as broker:
            assert await status(broker, issuer.token()) == 401
        assert not issuer.asked


@pytest.mark.setting("openIDRoleClaim")
async def test_the_role_of_a_claim_has_its_rights(tmp_path: Path) -> None:
    async with issuing(tmp_path) as issuer:
        settings = trusting(
            issuer,
            tmp_path,
            authorizationEnabled=True,
            superUserRoles="operators",
            openIDRoleClaim="groups",
        )
        async with Broker(config=settings) as broker:
            operator = issuer.token(groups=["operators", "x"])
            somebody = issuer.token("operators", groups=["x", "operators"])
            assert await status(broker, operator, "tenants") == 200
            assert await status(broker, somebody, "tenants") == 401


@pytest.mark.setting("openIDKeySetFile")
async def test_keys_of_a_file_need_no_issuer(tmp_path: Path) -> None:
    key = SigningKey("mine")
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [key.jwk]}))
    async with issuing(tmp_path) as issuer:
        settings = trusting(issuer, tmp_path, openIDKeySetFile=str(path))
        async with Broker(config=settings) as broker:
            assert await status(broker, key.sign(issuer.claims())) == 200
            assert await status(broker, issuer.token()) == 401
        assert not issuer.asked


async def test_our_client_fetches_its_token_of_the_issuer(tmp_path: Path) -> None:
    async with issuing(tmp_path) as issuer:
        issuer.token_seconds = 3
        settings = trusting(issuer, tmp_path, authenticationRefreshCheckSeconds=5)
        params = {
            "issuer_url": issuer.url,
            "client_id": "app",
            "client_secret": SECRET,
            "audience": "pulsar",
            "tls_trust_certs_file_path": str(tmp_path / "ca.pem"),
        }
        async with (
            Broker(config=settings) as broker,
            Client(
                broker.service_url, authentication=AuthenticationOauth2(json.dumps(params))
            ) as client,
        ):
            producer = await client.create_producer(TOPIC)
            await producer.send(b"first")
            (cnx,) = broker.service.connections._open
            assert cnx.role == "app"
            fetched = sum(asked.target == "/token" for asked in issuer.asked)
            async with asyncio.timeout(15):  # the broker asks for another when this one ends
                while sum(asked.target == "/token" for asked in issuer.asked) == fetched:
                    await asyncio.sleep(0.1)
            await producer.send(b"second")
            assert list(broker.service.connections._open) == [cnx]


@pytest.mark.setting("openIDRequireIssuersUseHttps", "openIDFallbackDiscoveryMode")
async def test_issuers_in_clear_text_only_where_that_is_allowed(tmp_path: Path) -> None:
    async with TokenIssuer().running() as issuer:
        assert isinstance(issuer, TokenIssuer)
        settings = trusting(issuer, tmp_path, openIDTokenIssuerTrustCertsFilePath="")
        with pytest.raises(ConfigurationError, match="openIDRequireIssuersUseHttps=false"):
            await Broker(config=settings).start()
        settings["openIDRequireIssuersUseHttps"] = False
        async with Broker(config=settings) as broker:
            assert await status(broker, issuer.token()) == 200
        settings["openIDFallbackDiscoveryMode"] = "KUBERNETES_DISCOVER_PUBLIC_KEYS"
        with pytest.raises(ConfigurationError, match="Kubernetes is not offered"):
            await Broker(config=settings).start()
