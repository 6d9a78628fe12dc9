from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    NO_METHOD,
    Authenticated,
    AuthenticationState,
    Authenticators,
    Challenge,
    ClientCredentials,
    ExpiredCredentialsError,
    HttpCredentials,
    RevokedCredentialsError,
)
from pulsar_py.server.security.peer import Peer


def by(method_name: str) -> ClientCredentials:
    return ClientCredentials(method_name=method_name, peer=Peer("/1.2.3.4:5"))


class Open:
    method_name = "open"

    def new_state(self, credentials: ClientCredentials) -> Open:
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        return Authenticated(auth_data.decode())


def test_without_methods_it_is_off() -> None:
    assert not Authenticators().is_enabled
    assert Authenticators({"open": Open()}).is_enabled


def test_method_is_chosen_by_its_name() -> None:
    provider = Open()
    authenticators = Authenticators({"open": provider})
    assert authenticators.state_for(by("open")) is provider
    with pytest.raises(AuthenticationError, match="'closed'"):
        authenticators.state_for(by("closed"))


def test_anonymous_role_stands_in_for_a_method() -> None:
    assert Authenticators({"open": Open()}, "nobody").state_for(by("closed")) is None


class Kept:
    """A method over HTTP that has one good header."""

    method_name = "kept"

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        raise NotImplementedError

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        match credentials.headers.get("authorization"):
            case None:
                return None
            case "good":
                return Authenticated("me")
            case "withdrawn":
                raise RevokedCredentialsError("no more")
            case "old":
                raise ExpiredCredentialsError("too late")
            case "broken":
                raise ValueError("of the provider")
        raise AuthenticationError("wrong")


async def test_who_was_let_in_and_who_was_not_is_counted() -> None:
    authenticators = Authenticators({"kept": Kept()})
    proved = await authenticators.authenticate_http({"authorization": "good"}, Peer())
    assert proved.role == "me"
    named = {"x-pulsar-auth-method-name": "kept"}
    unknown = {"x-pulsar-auth-method-name": "other"}
    for headers in (
        {"authorization": "old"},
        {"authorization": "withdrawn"},
        {"authorization": "bad"},
        {"authorization": "broken"},
        {},
        named,
        unknown,
    ):
        with pytest.raises(AuthenticationError):
            await authenticators.authenticate_http(headers, Peer())
    with pytest.raises(AuthenticationError):
        authenticators.state_for(by("other"))
    figures = authenticators.counts.statistics()
    assert figures.successes_count == {"kept": 1}
    assert figures.failures_count == {
        ("kept", "expired"): 1,
        ("kept", "revoked"): 1,
        ("kept", "invalid"): 2,
        (NO_METHOD, "missing"): 2,
        (NO_METHOD, "unknown method"): 2,
    }
    assert figures.expired_count == 1
