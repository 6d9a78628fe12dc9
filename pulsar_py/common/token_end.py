"""When a JSON Web Token ends, by what it says of itself; nothing is verified (pure)."""

from __future__ import annotations

import base64
from typing import Final

from pulsar_py.common.foreign_json import parse_json

__all__ = ["SOON_DAYS", "token_end"]

SOON_DAYS: Final = 7
"""Before its end by less than this, whoever looks after a token is told of it."""


def token_end(token: str) -> float | None:
    """Seconds since 1970; None for a token without an end, and for another kind of text."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims, signature
        return None
    try:
        claims = parse_json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (KeyError, TypeError, ValueError):  # base64's error is a ValueError
        return None
