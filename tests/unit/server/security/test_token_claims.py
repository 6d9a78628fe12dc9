"""token_claims: what a verified token proves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import Authenticated
from pulsar_py.server.security.revoked_tokens import RevokedTokens
from pulsar_py.server.security.token_claims import bearer_token, proved_by, role_in
from pulsar_py.testing.clock import VirtualClock


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"r": "me"}, "me"),
        ({"r": ["me", "you"]}, "me"),
        ({"r": []}, None),
        ({"r": ""}, None),
        ({"r": [""]}, None),
        ({}, None),
    ],
)
def test_the_role_is_a_text_or_the_first_of_a_list(claims: dict[str, Any], role: object) -> None:
    assert role_in(claims, "r") == role


@pytest.mark.parametrize("value", [1, True, {"a": "me"}, [["me"]]])
def test_a_role_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(AuthenticationError, match="its claim r is no text"):
        role_in({"r": value}, "r")


def test_the_end_is_put_off_by_the_skew() -> None:
    found = proved_by({"sub": "me", "exp": 10}, role_claim="sub", skew_seconds=5, revoked=None)
    assert found == Authenticated("me", 15_000)


def test_a_token_may_lose_its_force_in_two_ways(tmp_path: Path) -> None:
    path, clock, lost = tmp_path / "revoked", VirtualClock(), [False]
    path.write_text("")
    found = proved_by(
        {"jti": "a"},
        role_claim="sub",
        skew_seconds=0,
        revoked=RevokedTokens(str(path), clock),
        is_unsigned=lambda: lost[0],
    )
    assert found.is_revoked is not None
    assert not found.is_revoked()
    lost[0] = True
    assert found.is_revoked()
    lost[0] = False
    path.write_text("jti a")
    clock.jump(1)
    assert found.is_revoked()


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", b"abc"), ("bearer abc", b"abc"), ("Basic abc", None), ("", None)],
)
def test_the_token_in_a_header(header: str, token: bytes | None) -> None:
    assert bearer_token({"authorization": header}) == token
