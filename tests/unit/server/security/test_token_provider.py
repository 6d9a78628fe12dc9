"""token_provider: which tokens prove a role, and which algorithms a key takes."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import jwt
import pytest

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import Authenticated, RevokedCredentialsError
from pulsar_py.server.security.token_provider import (
    TokenProvider,
    TokenSettings,
    public_key,
    secret_key,
)
from pulsar_py.testing.clock import VirtualClock

KEY = bytes(range(32))


def provider(**more: Any) -> TokenProvider:
    text = "data:;base64," + base64.b64encode(KEY).decode()
    return TokenProvider(TokenSettings(secret_key=text, **more), VirtualClock())


def test_a_role_and_when_it_ends() -> None:
    token = jwt.encode({"sub": "me", "exp": 4_000_000_000}, KEY, "HS256")
    assert provider().verify(token) == Authenticated("me", 4_000_000_000_000)


def test_a_wrong_clock_counts_at_the_end_as_well() -> None:
    token = jwt.encode({"sub": "me", "exp": 4_000_000_000}, KEY, "HS256")
    lenient = provider(allowed_clock_skew_seconds=60)
    assert lenient.verify(token) == Authenticated("me", 4_000_000_060_000)


def test_a_revoked_token_is_refused_and_one_that_is_not_may_become_so(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    path.write_text("jti one\n")
    strict = provider(revocation_file=str(path))
    with pytest.raises(RevokedCredentialsError):
        strict.verify(jwt.encode({"sub": "me", "jti": "one"}, KEY, "HS256"))
    other = strict.verify(jwt.encode({"sub": "me", "jti": "two"}, KEY, "HS256"))
    assert other.is_revoked is not None
    assert not other.is_revoked()
    assert provider().verify(jwt.encode({"sub": "me"}, KEY, "HS256")).is_revoked is None


def test_a_token_loses_its_force_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    clock = VirtualClock()
    files = TokenProvider(TokenSettings(secret_key=str(path)), clock)
    found = files.verify(jwt.encode({"sub": "me"}, KEY, "HS256"))
    assert found.is_revoked is not None
    path.write_bytes(b"too short")
    clock.jump(1)
    assert not found.is_revoked()
    path.write_bytes(bytes(48))
    clock.jump(1)
    assert found.is_revoked()
    path.write_bytes(KEY)
    clock.jump(1)
    assert files.verify(jwt.encode({"sub": "me"}, KEY, "HS256")).role == "me"


@pytest.mark.parametrize("claims", [{}, {"sub": ""}])
def test_a_token_without_a_role_proves_none(claims: dict[str, object]) -> None:
    assert provider().verify(jwt.encode(claims, KEY, "HS256")) == Authenticated(None)


@pytest.mark.parametrize(
    ("claims", "key"),
    [
        ({"sub": "me", "exp": 1}, KEY),
        ({"sub": "me", "nbf": 4_000_000_000}, KEY),
        ({"sub": "me"}, KEY[::-1]),
    ],
)
def test_a_token_that_does_not_count(claims: dict[str, object], key: bytes) -> None:
    with pytest.raises(AuthenticationError, match="token refused"):
        provider().verify(jwt.encode(claims, key, "HS256"))


async def test_what_is_no_token_is_refused_without_being_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(AuthenticationError):
        await provider().authenticate(b"hunter2\xff")
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(("size", "algorithms"), [(32, 1), (48, 2), (64, 3)])
def test_a_longer_secret_takes_more_algorithms(size: int, algorithms: int) -> None:
    assert len(secret_key(bytes(size)).algorithms) == algorithms


def test_a_file_of_base64_is_a_key_as_it_is() -> None:
    """Apache Pulsar signs and checks with the text's bytes; tokens go both ways."""
    text = base64.b64encode(KEY)
    assert secret_key(text).key == text


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        secret_key(b"short")
    with pytest.raises(ValueError, match="no public key in DER"):
        public_key(b"\x00nonsense")
