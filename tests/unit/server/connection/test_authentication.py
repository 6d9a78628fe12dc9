from __future__ import annotations

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.connection.authentication import (
    Authenticated,
    Authenticators,
    Challenge,
)


class Open:
    method_name = "open"

    def new_state(self, remote_address: str) -> Open:
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated | Challenge:
        return Authenticated(auth_data.decode())


def test_without_methods_it_is_off() -> None:
    assert not Authenticators().is_enabled
    assert Authenticators({"open": Open()}).is_enabled


def test_method_is_chosen_by_its_name() -> None:
    provider = Open()
    authenticators = Authenticators({"open": provider})
    assert authenticators.state_for("open", "/1.2.3.4:5") is provider
    with pytest.raises(AuthenticationError, match="'closed'"):
        authenticators.state_for("closed", "/1.2.3.4:5")


def test_anonymous_role_stands_in_for_a_method() -> None:
    assert Authenticators({"open": Open()}, "nobody").state_for("closed", "/1.2.3.4:5") is None
