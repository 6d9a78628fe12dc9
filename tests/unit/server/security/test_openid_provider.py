"""openid_provider: which tokens of an issuer are taken."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import AuthenticationError, ConfigurationError
from pulsar_py.common.loops.clock import SystemClock
from pulsar_py.server.security.authentication import (
    Authenticated,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
    RevokedCredentialsError,
)
from pulsar_py.server.security.issuer_keys import parse_key_set
from pulsar_py.server.security.openid_provider import OpenIdProvider, OpenIdSettings
from pulsar_py.server.security.peer import Peer
from pulsar_py.testing.clock import VirtualClock
from tests.token_issuer import SigningKey, TokenIssuer, now_seconds

ISSUER = TokenIssuer()
OTHER = SigningKey("two")


def settings(**more: Any) -> OpenIdSettings:
    whole = {
        "allowed_issuers": (ISSUER.url,),
        "allowed_audiences": ("pulsar", "others"),
        "needs_https": False,
        **more,
    }
    return OpenIdSettings(**whole)


def provider(**more: Any) -> OpenIdProvider:
    async def fetch(issuer: str) -> Any:
        assert issuer == ISSUER.url
        return parse_key_set(json.dumps(ISSUER.key_set).encode())

    return OpenIdProvider(settings(**more), SystemClock(), fetch=fetch)


async def proved(token: str, **more: Any) -> Authenticated:
    made = provider(**more)
    try:
        return await made.authenticate(token.encode())
    finally:
        await made.close()


async def test_a_good_token_proves_its_role_until_its_end() -> None:
    end = now_seconds() + 60
    found = await proved(ISSUER.token("me", exp=end))
    assert (found.role, found.expires_at_millis) == ("me", end * 1000)
    found = await proved(ISSUER.token("me", exp=end), leeway_seconds=5)
    assert (found.role, found.expires_at_millis) == ("me", end * 1000 + 5000)


async def test_the_role_is_the_claim_of_the_setting() -> None:
    token = ISSUER.token("me", groups=["first", "second"])
    assert (await proved(token, role_claim="groups")).role == "first"
    assert (await proved(token, role_claim="missing")).role is None
    with pytest.raises(AuthenticationError, match="is no text"):
        await proved(ISSUER.token("me", groups={"a": 1}), role_claim="groups")


@pytest.mark.parametrize("aud", ["others", ["x", "pulsar"]])
async def test_one_of_the_audiences_is_enough(aud: object) -> None:
    assert (await proved(ISSUER.token(aud=aud))).role == "me"


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "somebody else"},
        {"aud": []},
        {"aud": None},
        {"aud": {"pulsar": 1}},
        {"iss": "http://elsewhere"},
        {"iss": None},
        {"iss": ["http://localhost:0"]},
        {"iat": None},
        {"exp": None},
        {"exp": "soon"},
        {"nbf": now_seconds() + 1000},
        {"iat": now_seconds() + 1000},
    ],
)
async def test_a_token_that_does_not_count(changes: dict[str, Any]) -> None:
    with pytest.raises(AuthenticationError, match="token refused"):
        await proved(ISSUER.token(**changes))


async def test_clocks_may_differ_by_the_leeway() -> None:
    now = now_seconds()
    late, early = ISSUER.token(exp=now - 20), ISSUER.token(nbf=now + 20, iat=now + 20)
    for token in (late, early):
        assert (await proved(token, leeway_seconds=60)).role == "me"
        with pytest.raises(AuthenticationError):
            await proved(token, leeway_seconds=10)
    with pytest.raises(ExpiredCredentialsError):
        await proved(late)


def forged(algorithm: str, **header: Any) -> str:
    """A token whose signature is made with the public key as secret, or with nothing."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    text = f"{part({'alg': algorithm, 'kid': 'one', **header})}.{part(ISSUER.claims())}"
    if algorithm.lower() == "none":
        return f"{text}."
    digest = hmac.new(ISSUER.keys[0].public_pem, text.encode(), "sha256").digest()
    return f"{text}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "token",
    [
        forged("HS256"),
        forged("none"),
        forged("NONE"),
        forged("ES256", jwk=OTHER.jwk),
        forged("ES256", jku="http://localhost:1/keys"),
        forged("ES256", kid="../../etc/passwd"),
        forged("ES256", kid=""),
        forged("ES256", kid=["one"]),
        forged("RS256"),
        OTHER.sign(ISSUER.claims(), kid="one"),
        OTHER.sign(ISSUER.claims()),
        "a.b.c",
        "",
        "a" * 70_000,
    ],
)
async def test_forged_tokens_are_refused(token: str) -> None:
    with pytest.raises(AuthenticationError):
        await proved(token)


async def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(AuthenticationError, match="ASCII"):
        await provider().authenticate(b"\xff")


async def test_over_http_the_bearer_token_counts() -> None:
    made = provider()
    for header, role in ((f"Bearer {ISSUER.token()}", "me"), ("Basic abc", None)):
        answer = await made.authenticate_http(HttpCredentials({"authorization": header}, Peer()))
        assert (answer and answer.role) == role
    assert made.new_state(ClientCredentials(method_name="token", peer=Peer())) is made


async def test_a_revoked_token_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text("jti one\n")
    with pytest.raises(RevokedCredentialsError):
        await proved(ISSUER.token(jti="one"), revocation_file=str(path))
    other = await proved(ISSUER.token(jti="two"), revocation_file=str(path))
    assert other.is_revoked is not None


async def test_keys_of_a_file_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [OTHER.jwk]}))
    made = OpenIdProvider(settings(key_set_file=str(path)), SystemClock())
    with pytest.raises(AuthenticationError, match="no key 'one'"):
        await made.authenticate(ISSUER.token().encode())
    path.write_text(json.dumps(ISSUER.key_set))
    found = await made.authenticate(ISSUER.token().encode())
    assert found.role == "me"
    assert found.is_revoked is not None
    assert not found.is_revoked()
    await made.close()


async def test_a_token_loses_its_force_with_the_key_in_a_file(tmp_path: Path) -> None:
    path, clock = tmp_path / "keys.json", VirtualClock()
    path.write_text(json.dumps(ISSUER.key_set))
    made = OpenIdProvider(settings(key_set_file=str(path)), clock)
    found = await made.authenticate(ISSUER.token().encode())
    assert found.is_revoked is not None
    path.write_text(json.dumps({"keys": [*ISSUER.key_set["keys"], OTHER.jwk]}))
    clock.jump(1)
    assert not found.is_revoked()
    path.write_text(json.dumps({"keys": [OTHER.jwk]}))
    clock.jump(1)
    assert found.is_revoked()
    await made.close()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"allowed_audiences": ()}, "needs openIDAllowedAudiences"),
        ({"allowed_issuers": ()}, "needs openIDAllowedTokenIssuers"),
        ({"allowed_issuers": ("issuer.example",)}, "expected https:// or http://"),
        ({"needs_https": True}, "openIDRequireIssuersUseHttps=false allows http"),
        ({"key_set_file": "/no/such/file"}, "openIDKeySetFile"),
    ],
)
def test_settings_that_could_not_work(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        provider(**changes)
