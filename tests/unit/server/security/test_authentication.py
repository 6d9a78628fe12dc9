from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import (
    Authenticated,
    Authenticators,
    Challenge,
    ClientCredentials,
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
