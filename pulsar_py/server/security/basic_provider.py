"""Basic authentication: users and hashes of their passwords, as `htpasswd` writes them.

Hashes are `$apr1$` (Apache's MD5), DES crypt, and bcrypt, which Apache Pulsar does not have. They
take milliseconds by design: at most a few are worked on at a time, in threads; a password that was
right is remembered for some seconds, as a digest with a salt of this process. Who is not in the
file costs the same time as who is: somebody else's hash stands in, for each name always the same,
so that in a file with several kinds those who are missing are as quick or slow as those who are
there. Connections end when the file has another hash for their user,
or none.

Source: AuthenticationProviderBasic in Pulsar's broker; RFC 7617.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Mapping
from itertools import islice
from typing import Final

from pulsar_py.common.errors import AuthenticationError, ConfigurationError
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.authentication import (
    Authenticated,
    AuthenticationProvider,
    AuthenticationState,
    ClientCredentials,
    HttpCredentials,
)
from pulsar_py.server.security.key_source import KeySource

__all__ = ["BasicProvider", "parse_users"]

_AT_ONCE: Final = 2
_REMEMBERED_SECONDS: Final = 10.0
_REMEMBERED_COUNT: Final = 1000
_MAX_PASSWORD_BYTES: Final = 1024
_BASIC: Final = "basic "
_APR1_EXAMPLE: Final = "$apr1$saltsalt$" + 22 * "."
_DES_EXAMPLE: Final = 13 * "."
_BCRYPT: Final = ("$2a$", "$2b$", "$2y$")
_HASH: Final = re.compile(
    r"\$apr1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}"
    r"|\$2[aby]\$(?:0[4-9]|[12][0-9]|3[01])\$[./0-9A-Za-z]{53}"
    r"|[./0-9A-Za-z]{13}"
)
"""Of `$apr1$`, bcrypt, DES crypt."""


def parse_users(data: bytes) -> Mapping[str, str]:
    """Hashes by user.

    Raises:
        ValueError: A line has no hash of a known kind; the text has its number.
    """
    users = {}
    for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        user, separator, password_hash = text.partition(":")
        if not (user and separator and _HASH.fullmatch(password_hash)):
            raise ValueError(
                f"line {number}: expected user:hash with a hash of $apr1$, DES crypt or bcrypt"
            )
        users[user] = password_hash
    return users


def is_password(password: str, password_hash: str) -> bool:
    """Whether a password has this hash; takes milliseconds."""
    # Imported late: brokers without Basic authentication need none of them.
    if password_hash.startswith(_BCRYPT):
        import bcrypt  # noqa: PLC0415 - at first use

        return bcrypt.checkpw(password.encode()[:72], password_hash.encode())
    from passlib.hash import apr_md5_crypt, des_crypt  # noqa: PLC0415 - at first use

    kind = apr_md5_crypt if password_hash.startswith("$apr1$") else des_crypt
    return bool(kind.verify(password, password_hash))


class BasicProvider(AuthenticationProvider):
    """The method `basic`; owned by `Authenticators`."""

    method_name = "basic"

    def __init__(self, source: str, clock: Clock) -> None:
        """Read the users.

        Raises:
            ConfigurationError: There is no file, or a line of it is wrong.
        """
        if not source:
            raise ConfigurationError(
                "authentication by Basic needs basicAuthConf, the file of users and password hashes"
            )
        is_password("", _APR1_EXAMPLE)  # loads the library here, which is not safe in two threads
        is_password("", _DES_EXAMPLE)
        self._users = KeySource("basicAuthConf", source, parse_users, is_secret=True)
        self._clock = clock
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._salt = secrets.token_bytes(16)
        # When what was right is forgotten, by digest of user, hash and password; oldest first.
        self._remembered: dict[bytes, float] = {}

    def new_state(self, credentials: ClientCredentials) -> AuthenticationState:
        """There is no state beside the provider's."""
        del credentials
        return self

    async def authenticate(self, auth_data: bytes) -> Authenticated:
        """The user of `user:password`.

        Raises:
            AuthenticationError: There is no such user, or the password is wrong.
        """
        if len(auth_data) > _MAX_PASSWORD_BYTES:
            raise AuthenticationError("credentials are too long")
        user, separator, password = auth_data.decode("utf-8", "replace").partition(":")
        if not separator or "\0" in password:
            raise AuthenticationError("expected user:password")
        users = self._users.current()
        known = users.get(user)
        password_hash = known or self._stand_in(user, users)
        digest = hashlib.blake2b(
            f"{user}\0{password_hash}\0{password}".encode(), key=self._salt
        ).digest()
        if known is not None and self._is_remembered(digest):
            return self._proved(user, known)
        async with self._room:
            is_right = await asyncio.to_thread(is_password, password, password_hash)
        if known is None or not is_right:
            raise AuthenticationError("invalid user or password")
        self._remember(digest)
        return self._proved(user, known)

    def _stand_in(self, user: str, users: Mapping[str, str]) -> str:
        """The hash that is worked on for a user who is not there."""
        if not users:
            return _APR1_EXAMPLE
        digest = hashlib.blake2b(user.encode(), key=self._salt, digest_size=8).digest()
        place = int.from_bytes(digest, "big") % len(users)
        return next(islice(users.values(), place, None))

    def _proved(self, user: str, password_hash: str) -> Authenticated:
        """The user, for as long as the file has this hash."""

        def is_revoked() -> bool:
            users = self._users.recent(self._clock.monotonic_seconds())
            return users.get(user) != password_hash

        return Authenticated(user, is_revoked=is_revoked if self._users.can_change else None)

    async def authenticate_http(self, credentials: HttpCredentials) -> Authenticated | None:
        """The user of `Authorization: Basic`."""
        header = credentials.headers.get("authorization", "")
        if not header.lower().startswith(_BASIC):
            return None
        try:
            data = base64.b64decode(header[len(_BASIC) :].strip(), validate=True)
        except (binascii.Error, ValueError):
            raise AuthenticationError("the header Authorization is not base64") from None
        return await self.authenticate(data)

    def _is_remembered(self, digest: bytes) -> bool:
        ends_at = self._remembered.get(digest)
        return ends_at is not None and ends_at > self._clock.monotonic_seconds()

    def _remember(self, digest: bytes) -> None:
        self._remembered.pop(digest, None)
        self._remembered[digest] = self._clock.monotonic_seconds() + _REMEMBERED_SECONDS
        if len(self._remembered) > _REMEMBERED_COUNT:
            del self._remembered[next(iter(self._remembered))]
