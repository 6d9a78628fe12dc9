"""Reads the role and the expiry out of a verified token, and refuses a revoked one.

Source: AuthenticationProviderToken, AuthenticationProviderOpenID in Pulsar's broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulsar_py.common.errors import AuthenticationError
from pulsar_py.server.security.authentication import Authenticated, RevokedCredentialsError
from pulsar_py.server.security.revoked_tokens import RevokedTokens

__all__ = ["bearer_token", "proved_by", "role_in"]

_BEARER = "bearer "


def bearer_token(headers: Mapping[str, str]) -> bytes | None:
    """The token in `Authorization: Bearer`; None without one."""
    header = headers.get("authorization", "")
    if not header.lower().startswith(_BEARER):
        return None
    return header[len(_BEARER) :].encode("latin-1")


def role_in(claims: Mapping[str, Any], name: str) -> str | None:  # Any: JSON
    """The role: the claim's text, or the first of its list; None if there is none.

    Raises:
        AuthenticationError: The claim is of another type.
    """
    role = claims.get(name)
    if isinstance(role, list):
        role = role[0] if role else None
    if role is None or role == "":
        return None
    if not isinstance(role, str):
        raise AuthenticationError(f"token refused: its claim {name} is no text")
    return role


def proved_by(
    claims: Mapping[str, Any],  # Any: JSON
    *,
    role_claim: str,
    skew_seconds: int,
    revoked: RevokedTokens | None,
    is_unsigned: Callable[[], bool] | None = None,
) -> Authenticated:
    """What a token proves whose signature and times were checked.

    Args:
        claims: What it says.
        role_claim: The claim with the role.
        skew_seconds: Seconds by which its end is put off.
        revoked: The tokens that no longer count; None if none can be revoked.
        is_unsigned: Whether the key of its signature has gone since, asked while its holder is
            connected; None if it can't.

    Raises:
        AuthenticationError: It was revoked, or its role is no text.
    """
    if revoked is not None and revoked.has(claims):
        raise RevokedCredentialsError("token refused: it was revoked")
    checks: list[Callable[[], bool]] = [] if is_unsigned is None else [is_unsigned]
    if revoked is not None:
        checks.append(lambda: revoked.has_recently(claims))
    expires_at = claims.get("exp")
    return Authenticated(
        role_in(claims, role_claim),
        None if expires_at is None else (int(float(expires_at) * 1000) + skew_seconds * 1000),
        _either(checks) if checks else None,
    )


def _either(checks: Sequence[Callable[[], bool]]) -> Callable[[], bool]:
    """Whether one of the checks, of which there are one or two, finds something."""
    first, last = checks[0], checks[-1]  # asked of each connection twice a second
    return first if first is last else lambda: first() or last()
