"""token_jobs: which keys are made, how long tokens last, and which are refused."""

from __future__ import annotations

import base64
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from pulsar_py.cli.security.token_jobs import (
    TokenRequest,
    new_key_pair,
    new_secret_key,
    parse_expiry,
    parse_headers,
    signed,
    signing_key,
    validated,
    verification_key,
    write_secret,
)
from pulsar_py.common.errors import AuthenticationError, ConfigurationError

SECRET = base64.b64encode(bytes(range(32))).decode()


@pytest.mark.parametrize(("algorithm", "size"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_a_secret_key_is_used_with_the_algorithm_of_its_length(algorithm: str, size: int) -> None:
    text = new_secret_key(algorithm, is_base64=True).decode()
    assert len(base64.b64decode(text)) == size
    token = signed(TokenRequest("me"), signing_key(text, None))
    assert jwt.get_unverified_header(token)["alg"] == algorithm


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "ES384", "ES512"])
def test_a_pair_works_with_its_algorithm(algorithm: str) -> None:
    private, public = (base64.b64encode(each).decode() for each in new_key_pair(algorithm))
    token = signed(TokenRequest("me"), signing_key(None, private, algorithm))
    assert jwt.get_unverified_header(token)["alg"] == algorithm
    assert validated(token, verification_key(None, public, algorithm)) == {"sub": "me"}


def test_a_private_key_of_pem_signs_with_the_algorithm_of_its_curve(tmp_path: Path) -> None:
    key = serialization.load_der_private_key(new_key_pair("ES384")[0], None)
    path = tmp_path / "key.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    assert signing_key(None, str(path)).algorithms == ("ES384",)
    with pytest.raises(ConfigurationError, match="not for RS256"):
        signing_key(None, str(path), "RS256")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5), ("90s", 90), ("5m", 300), ("1h", 3600), ("3d", 259_200), ("2w", 1_209_600),
     ("2y", 63_072_000), ("1H", 3600)],
)  # fmt: skip
def test_times_have_units(text: str, seconds: int) -> None:
    assert parse_expiry(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "-1h", "1.5h", "1 month", "1x"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="expected such as"):
        parse_expiry(text)


@pytest.mark.parametrize("text", ["alg=none", "crit=x", "kid", "=x"])
def test_headers_that_are_not_the_users_are_refused(text: str) -> None:
    assert parse_headers(["kid=a=b"]) == {"kid": "a=b"}
    with pytest.raises(ConfigurationError, match="--headers"):
        parse_headers([text])


def test_tokens_that_do_not_count_are_refused() -> None:
    key = verification_key(SECRET, None)
    over = signed(TokenRequest("me", expires_at_seconds=1), signing_key(SECRET, None))
    with pytest.raises(AuthenticationError, match="expired"):
        validated(over, key)
    with pytest.raises(AuthenticationError, match="token refused"):
        validated(jwt.encode({"sub": "me"}, "", "none"), key)
    other = signing_key(new_secret_key("HS256", is_base64=True).decode(), None)
    with pytest.raises(AuthenticationError, match="Signature"):
        validated(signed(TokenRequest("me"), other), key)


def test_a_key_with_a_password_or_none_is_refused() -> None:
    public = base64.b64encode(new_key_pair("ES256")[1]).decode()
    with pytest.raises(ConfigurationError, match="no private key in DER"):
        signing_key(None, public)


def test_a_secret_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file or directory"):
        write_secret(tmp_path / "missing" / "key", b"")
