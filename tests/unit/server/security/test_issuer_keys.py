"""issuer_keys: which keys of a key set count, and what they verify."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pulsar_py.server.security.issuer_keys import parse_key_set
from tests.token_issuer import SigningKey


def parsed(*keys: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    data = json.dumps({"keys": keys}).encode()
    return {key_id: key.algorithms for key_id, key in parse_key_set(data).items()}


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES384", "ES512"])
def test_a_key_takes_what_it_says(algorithm: str) -> None:
    assert parsed(SigningKey("a", algorithm).jwk) == {"a": (algorithm,)}


def test_without_a_name_the_kind_decides() -> None:
    keys = [SigningKey("r", "RS256").jwk, SigningKey("e", "ES384").jwk]
    for key in keys:
        del key["alg"]
    assert parsed(*keys) == {"r": ("RS256", "RS384", "RS512"), "e": ("ES384",)}


@pytest.mark.parametrize(
    "changes",
    [
        {"alg": "HS256"},
        {"alg": "none"},
        {"alg": "RS256"},
        {"use": "enc"},
        {"kid": None},
        {"kid": 7},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": ["EC"]},
        {"crv": "P-384"},
        {"crv": {}},
        {"x": "AAAA"},
        {"x": None},
    ],
)
def test_what_could_not_verify_is_passed_over(changes: dict[str, Any]) -> None:
    good = SigningKey("good").jwk
    assert list(parsed({**SigningKey("a").jwk, **changes}, good)) == ["good"]


def test_of_a_private_key_the_public_one_is_used() -> None:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from jwt.algorithms import ECAlgorithm  # noqa: PLC0415

    key = SigningKey("a")
    private = {**json.loads(ECAlgorithm.to_jwk(key.private)), "kid": "a"}
    found = parse_key_set(json.dumps({"keys": [private]}).encode())
    assert isinstance(found["a"].key, ec.EllipticCurvePublicKey)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keys": {}}', '{"keys": []}', '{"keys": [7]}', "{" * 5000]
)
def test_what_is_no_key_set_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_key_set(text.encode())


def test_more_keys_than_anybody_has_are_an_error() -> None:
    with pytest.raises(ValueError, match="1001 keys"):
        parse_key_set(json.dumps({"keys": [{}] * 1001}).encode())
