"""Writes roles for logs: as they are, hidden, or as a digest (pure).

Source: DefaultAuthenticationRoleLoggingAnonymizer, DefaultRoleAnonymizerType in Pulsar's broker.
"""

from __future__ import annotations

import base64
import hashlib
from enum import Enum

__all__ = ["RoleLogging"]


class RoleLogging(Enum):
    """One way; the values are those of `authenticationRoleLoggingAnonymizer`."""

    NONE = "NONE"
    REDACTED = "REDACTED"
    SHA256 = "hash:SHA256"
    MD5 = "hash:MD5"

    def text(self, role: str | None) -> str | None:
        """What a log has in place of a role; None stays None."""
        if role is None or self is RoleLogging.NONE:
            return role
        if self is RoleLogging.REDACTED:
            return "[REDACTED]"
        if self is RoleLogging.SHA256:
            return f"SHA-256:{_base64(hashlib.sha256(role.encode()).digest())}"
        digest = hashlib.md5(role.encode(), usedforsecurity=False).digest()
        return f"MD5:{_base64(digest)}"


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode("ascii")
