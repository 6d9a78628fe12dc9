"""A small issuer of OpenID Connect for tests: it has keys, publishes them, and signs tokens.

It answers over HTTP, with TLS if it is given a context: discovery, keys, and the client credentials
grant of OAuth2 with the form's `client_id` as role.
"""

from __future__ import annotations

import json
import ssl
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pulsar_py.common.loops.clock import SystemClock
from tests.http_server import Answer, Asked, HttpServer

SECRET = "s3cret"


def now_seconds() -> int:
    """The time that the issuer puts into tokens."""
    return SystemClock().wall_time_millis() // 1000


class SigningKey:
    """A private key with the id and algorithm by which it is published."""

    def __init__(self, key_id: str, algorithm: str = "ES256") -> None:
        self.key_id, self.algorithm = key_id, algorithm
        if algorithm.startswith("RS"):
            self.private: Any = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        else:
            curves = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
            self.private = ec.generate_private_key(curves[algorithm])

    @property
    def public_pem(self) -> bytes:
        """The public key, as somebody would use it for a secret."""
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    @property
    def jwk(self) -> dict[str, Any]:
        """The public key as it is published."""
        kind = jwt.get_algorithm_by_name(self.algorithm)
        published: dict[str, Any] = json.loads(kind.to_jwk(self.private.public_key()))
        published.pop("key_ops", None)
        return {**published, "kid": self.key_id, "alg": self.algorithm, "use": "sig"}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """A token of these claims alone."""
        return jwt.PyJWS().encode(  # which takes claims of wrong types, too
            json.dumps(claims).encode(),
            self.private,
            self.algorithm,
            headers={"kid": self.key_id, **header},
        )


class TokenIssuer(HttpServer):
    """The issuer, with one key at first."""

    def __init__(self, tls: ssl.SSLContext | None = None, *, audience: str = "pulsar") -> None:
        super().__init__(self.respond, tls)
        self.keys = [SigningKey("one")]
        self.audience = audience
        self.token_seconds = 600.0
        self.discovery: dict[str, Any] = {}
        """What differs in the discovery document."""
        self.is_failing = False

    @property
    def key_set(self) -> dict[str, Any]:
        """What is published of the keys."""
        return {"keys": [key.jwk for key in self.keys]}

    @property
    def fetches_count(self) -> int:
        """How often keys were asked for."""
        return sum(asked.target == "/keys" for asked in self.asked)

    def claims(self, role: Any = "me", **more: Any) -> dict[str, Any]:
        """Claims of a token that is good; `exp` and others may be changed, None leaves one out."""
        now = now_seconds()
        whole = {
            "iss": self.url,
            "aud": self.audience,
            "sub": role,
            "iat": now,
            "exp": now + self.token_seconds,
            **more,
        }
        return {name: value for name, value in whole.items() if value is not None}

    def token(self, role: Any = "me", **more: Any) -> str:
        """A token signed with the newest key."""
        return self.keys[-1].sign(self.claims(role, **more))

    def respond(self, asked: Asked) -> Answer:
        """The answers of the three places."""
        if self.is_failing:
            return Answer(500)
        if asked.target == "/.well-known/openid-configuration":
            document = {
                "issuer": self.url,
                "jwks_uri": self.url + "/keys",
                "token_endpoint": self.url + "/token",
            }
            return Answer.json({**document, **self.discovery})
        if asked.target == "/keys":
            return Answer.json(self.key_set)
        if asked.target == "/token":
            form = parse_qs(asked.body.decode())
            if form["client_secret"] != [SECRET]:
                return Answer.json({"error": "invalid_client"}, 401)
            token = self.token(form["client_id"][0])
            return Answer.json({"access_token": token, "expires_in": self.token_seconds})
        return Answer(404)
