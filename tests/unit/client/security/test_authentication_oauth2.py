"""OAuth2 against an issuer in memory, in virtual time."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from pulsar_py.client.security.authentication import AUTH_REFRESH_CHALLENGE
from pulsar_py.client.security.authentication_oauth2 import AuthenticationOauth2
from pulsar_py.common.errors import (
    AuthenticationDataError,
    InvalidConfigurationError,
    UnusableCredentialsError,
)
from pulsar_py.testing.clock import VirtualClock
from pulsar_py.testing.network import run_simulated
from tests.http_server import Answer, Asked, HttpServer

KEY = {"type": "client_credentials", "client_id": "me", "client_secret": "s3cret&"}
DATA_URL = "data:application/json;base64," + b64encode(json.dumps(KEY).encode()).decode()


class Issuer(HttpServer):
    """Gives out numbered tokens that last 100 seconds."""

    def __init__(self) -> None:
        super().__init__(self.respond)
        self.answer_token: Callable[[int], Answer] = lambda number: Answer.json(
            {"access_token": f"token-{number}", "expires_in": 100, "token_type": "Bearer"}
        )
        self.forms: list[dict[str, list[str]]] = []

    def respond(self, asked: Asked) -> Answer:
        if asked.target.endswith("/.well-known/openid-configuration"):
            return Answer.json({"token_endpoint": self.url + "/token"})
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        self.forms.append(parse_qs(asked.body.decode()))
        return self.answer_token(len(self.forms))


def with_issuer(
    work: Callable[[Issuer, AuthenticationOauth2], Awaitable[None]], **more: Any
) -> None:
    async def run() -> None:
        async with Issuer().running() as issuer:
            assert isinstance(issuer, Issuer)
            params = {"issuer_url": issuer.url + "/realm/", "private_key": DATA_URL} | more
            oauth2 = AuthenticationOauth2(json.dumps(params), clock=VirtualClock())
            await work(issuer, oauth2)

    run_simulated(run())


def test_the_token_is_fetched_with_the_credentials() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        assert oauth2.method_name == "token"
        assert await oauth2.authenticate() == b"token-1"
        assert await oauth2.http_headers() == {"Authorization": "Bearer token-1"}
        assert issuer.asked[0].target == "/realm/.well-known/openid-configuration"
        assert issuer.forms == [
            {
                "grant_type": ["client_credentials"],
                "client_id": ["me"],
                "client_secret": ["s3cret&"],
                "audience": ["urn:pulsar"],
                "scope": ["a b"],
            }
        ]

    with_issuer(work, audience="urn:pulsar", scope="a b")


def test_a_token_is_kept_until_shortly_before_its_end() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        for seconds, expected in ((0, b"token-1"), (89, b"token-1"), (2, b"token-2")):
            await asyncio.sleep(seconds)
            assert await oauth2.authenticate() == expected

    with_issuer(work)


def test_a_challenge_fetches_a_new_token() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        await oauth2.authenticate()
        assert await oauth2.authenticate(AUTH_REFRESH_CHALLENGE) == b"token-2"
        assert await oauth2.authenticate() == b"token-2"

    with_issuer(work)


def test_who_asks_at_the_same_time_shares_one_fetch() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        tokens = await asyncio.gather(*(oauth2.authenticate() for _ in range(5)))
        assert tokens == [b"token-1"] * 5
        assert len(issuer.forms) == 1

    with_issuer(work)


def test_a_token_without_lifetime_is_used_once() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        issuer.answer_token = lambda number: Answer.json({"access_token": f"token-{number}"})
        assert await oauth2.authenticate() == b"token-1"
        assert await oauth2.authenticate() == b"token-2"

    with_issuer(work)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer.json({"error": "invalid_client"}, 401), "401: invalid_client"),
        (Answer.json({"error": "e", "error_description": "no such client"}, 400), "no such client"),
        (Answer(200, b"<html>"), "no access_token"),
        (Answer.json([]), "no access_token"),
        (Answer(raw=b""), "localhost"),
    ],
)
def test_an_issuer_that_refuses_is_named_and_asked_again_later(
    answer: Answer, problem: str
) -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        good, issuer.answer_token = issuer.answer_token, lambda _: answer
        with pytest.raises(AuthenticationDataError, match=problem) as info:
            await oauth2.authenticate()
        assert "s3cret" not in str(info.value)
        is_refused = answer.status in {400, 401}
        assert isinstance(info.value, UnusableCredentialsError) is is_refused
        issuer.answer_token = good
        assert await oauth2.authenticate() == b"token-2"

    with_issuer(work)


def test_an_issuer_without_configuration_is_named() -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        issuer.answer = lambda _: Answer.json({"reason": "?"}, 404)
        with pytest.raises(AuthenticationDataError, match="HTTP status 404, no token_endpoint"):
            await oauth2.authenticate()

    with_issuer(work)


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}"])
def test_the_credentials_may_be_a_file_that_is_replaced(tmp_path: Path, form: str) -> None:
    path = tmp_path / "key file.json"
    path.write_text(json.dumps(KEY))

    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        await oauth2.authenticate()
        path.write_text(json.dumps(KEY | {"client_id": "other"}))
        await oauth2.authenticate(AUTH_REFRESH_CHALLENGE)
        assert [form["client_id"] for form in issuer.forms] == [["me"], ["other"]]

    with_issuer(work, private_key=form.format(path))


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("/nowhere/at/all", "No such file"),
        ("data:,nonsense", "expected a JSON object with client_id"),
        ("data:,%7B%22client_id%22%3A%22s3cret%22%7D", "expected a JSON object with client_id"),
    ],
)
def test_credentials_that_can_not_be_read_are_named_but_not_quoted(key: str, problem: str) -> None:
    async def work(issuer: Issuer, oauth2: AuthenticationOauth2) -> None:
        with pytest.raises(UnusableCredentialsError, match=problem) as info:
            await oauth2.authenticate()
        assert "s3cret" not in str(info.value)

    with_issuer(work, private_key=key)


def test_java_s_spellings_and_plain_credentials_are_understood() -> None:
    AuthenticationOauth2({"issuerUrl": "https://i", "privateKey": "file:///k", "audience": "a"})
    AuthenticationOauth2({"issuer_url": "https://i", "client_id": "c", "client_secret": "s"})


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ("nonsense", "auth_params_string"),
        ("{}", "issuer_url"),
        ('{"issuer_url": "ftp://x", "private_key": "k"}', "issuer_url"),
        ('{"issuer_url": "https://x"}', "private_key"),
        ('{"issuer_url": "https://x", "client_id": "c"}', "private_key"),
        ('{"issuer_url": "https://x", "private_key": 7}', "private_key"),
        ('{"issuer_url": "https://x", "private_key": "k", "colour": "red"}', "colour"),
    ],
)
def test_bad_parameters_are_named(params: str, name: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=name):
        AuthenticationOauth2(params)
