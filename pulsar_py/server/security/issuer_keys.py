"""Keys that an issuer of tokens publishes: a JSON Web Key Set, by key id (RFC 7517).

A key is for verifying signatures of RSA or of the curves P-256, P-384 and P-521; others in the set
are passed over, and so are keys of secrets, which nobody publishes. The algorithms that a key takes
follow from its kind and its `alg`, never from the token, so that no public key is used as a secret.

Source: JwksCache in Pulsar's pulsar-broker-auth-oidc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from pulsar_py.common.foreign_json import parse_json

__all__ = ["IssuerKey", "parse_key_set"]

_RSA: Final = ("RS256", "RS384", "RS512")
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_MAX_KEYS_COUNT: Final = 1000


class IssuerKey(Struct, frozen=True):
    """A public key and the algorithms that it verifies."""

    key: Any  # a public key of `cryptography`
    algorithms: tuple[str, ...]


def parse_key_set(data: bytes) -> Mapping[str, IssuerKey]:
    """The keys of a key set by their id.

    Raises:
        ValueError: It is no key set, or holds no key that could be used.
    """
    document = parse_json(data)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise ValueError("expected a JSON object with the list `keys`")  # noqa: TRY004
    if len(keys) > _MAX_KEYS_COUNT:
        raise ValueError(f"{len(keys)} keys, expected at most {_MAX_KEYS_COUNT}")
    found = {}
    for each in keys:
        key = _key_of(each) if isinstance(each, dict) else None
        if key is not None:
            found[each["kid"]] = key
    if not found:
        raise ValueError("no key with a `kid` for signatures of RSA or of P-256, P-384, P-521")
    return found


def _key_of(value: Mapping[str, Any]) -> IssuerKey | None:  # Any: JSON
    import jwt  # noqa: PLC0415 - takes 90 ms, which brokers without tokens save

    if not isinstance(value.get("kid"), str) or value.get("use", "sig") != "sig":
        return None
    if value.get("kty") == "RSA":
        algorithms: tuple[str, ...] = _RSA
    elif value.get("kty") == "EC" and str(value.get("crv")) in _CURVES:
        algorithms = (_CURVES[str(value["crv"])],)
    else:
        return None
    if "alg" in value:
        algorithms = tuple(each for each in algorithms if each == value["alg"])
    public = {name: each for name, each in value.items() if name in _PUBLIC_MEMBERS}
    try:
        key = jwt.PyJWK.from_dict(public, algorithms[0] if algorithms else None).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return IssuerKey(key, algorithms) if algorithms else None


_PUBLIC_MEMBERS: Final = frozenset({"kty", "n", "e", "crv", "x", "y"})
"""A private key that somebody published by mistake is used as the public one that it holds."""
