"""The client's side of SASL's DIGEST-MD5 (pure).

The client proves that it knows a password without sending it. The server begins with a challenge
of `name=value` pairs; the client answers with a digest of the password, the server's nonce and one
of its own; then the server proves the same. Only authentication is done (`qop=auth`): TLS alone
protects what follows.

MD5 is broken where collisions matter, and RFC 6331 calls this mechanism historic for this and other
reasons: whoever reads the exchange can try passwords. ZooKeeper offers nothing else beside
Kerberos, so use it over TLS or in a trusted network.

Source: RFC 2831; ZooKeeperSaslClient and SaslServerCallbackHandler in ZooKeeper.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from hashlib import md5
from typing import Final

_PAIR: Final = re.compile(r'\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))\s*(?:,|$)')
_NONCE_COUNT: Final = "00000001"  # each exchange is the first one with its nonce
_QOP: Final = "auth"
_MAX_CHALLENGE_BYTES: Final = 4096


class SaslError(Exception):
    """The exchange failed: the server asks for an unknown option, or does not know the password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestMd5Credentials:
    """A user name and its password."""

    username: str
    password: str = field(repr=False)
    service: str = "zookeeper"
    """First part of the name by which the server knows itself."""
    host: str = "zk-sasl-md5"
    """Second part; ZooKeeper has the same for all servers unless it is configured."""


class DigestMd5Exchange:
    """One exchange; `answer` to the challenge, then `check` of the server's proof."""

    def __init__(self, credentials: DigestMd5Credentials, client_nonce: str) -> None:
        """`client_nonce` must be new and unpredictable."""
        self._credentials = credentials
        self._client_nonce = client_nonce
        self._expected_proof = ""

    def answer(self, challenge: bytes) -> bytes:
        """The answer to a challenge.

        Raises:
            SaslError: It is no challenge, or asks for an option that this client lacks.
        """
        pairs = _pairs(challenge)
        if pairs.get("algorithm") != "md5-sess" or "nonce" not in pairs:
            raise SaslError("the challenge is none of DIGEST-MD5: no nonce, or another algorithm")
        offered = re.split(r"[,\s]+", pairs.get("qop", _QOP))
        if _QOP not in offered:
            raise SaslError(f"the server wants {offered}, this client authenticates only")
        is_utf8 = pairs.get("charset") == "utf-8"
        realm, nonce = pairs.get("realm", ""), pairs["nonce"]
        uri = f"{self._credentials.service}/{self._credentials.host}"
        secret = self._secret(realm, nonce, "utf-8" if is_utf8 else "iso-8859-1")
        self._expected_proof = self._digest(secret, nonce, f":{uri}")
        said = [
            ("charset", "utf-8") if is_utf8 else None,
            ("username", _quoted(self._credentials.username)),
            ("realm", _quoted(realm)) if "realm" in pairs else None,
            ("nonce", _quoted(nonce)),
            ("nc", _NONCE_COUNT),
            ("cnonce", _quoted(self._client_nonce)),
            ("digest-uri", _quoted(uri)),
            ("response", self._digest(secret, nonce, f"AUTHENTICATE:{uri}")),
            ("qop", _QOP),
        ]
        text = ",".join(f"{pair[0]}={pair[1]}" for pair in said if pair is not None)
        return text.encode("utf-8" if is_utf8 else "iso-8859-1")

    def check(self, proof: bytes) -> None:
        """Return if the server knows the password, too.

        Raises:
            SaslError: The server does not know it, or sent no proof.
        """
        said = _pairs(proof).get("rspauth", "")
        if not self._expected_proof or not hmac.compare_digest(
            said.encode(), self._expected_proof.encode()
        ):
            raise SaslError("the server can't prove that it knows the password")

    def _secret(self, realm: str, nonce: str, charset: str) -> str:
        name, password = self._credentials.username, self._credentials.password
        try:
            inner = _md5(f"{name}:{realm}:{password}".encode(charset))
        except UnicodeEncodeError:
            raise SaslError(f"the server takes {charset} only, name or password is more") from None
        return _md5(inner + f":{nonce}:{self._client_nonce}".encode(charset)).hex()

    def _digest(self, secret: str, nonce: str, what: str) -> str:
        purpose = _md5(what.encode()).hex()
        parts = (secret, nonce, _NONCE_COUNT, self._client_nonce, _QOP, purpose)
        return _md5(":".join(parts).encode()).hex()


def _pairs(message: bytes) -> dict[str, str]:
    """The pairs of a challenge; of a name that comes twice (realms) the first.

    Raises:
        SaslError: The text is no list of pairs.
    """
    if len(message) > _MAX_CHALLENGE_BYTES:
        raise SaslError(
            f"a message of {len(message)} bytes, expected at most {_MAX_CHALLENGE_BYTES}"
        )
    text = message.decode("utf-8", "replace")
    found: dict[str, str] = {}
    offset = 0
    while offset < len(text):
        match = _PAIR.match(text, offset)
        if match is None or match.end() == offset:
            raise SaslError("the server's message is no list of name=value pairs")
        name, quoted, plain = match.groups()
        value = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found.setdefault(name.lower(), value)
        offset = match.end()
    return found


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()
