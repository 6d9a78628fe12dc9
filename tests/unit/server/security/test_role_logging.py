"""How roles stand in logs."""

from __future__ import annotations

import base64
import hashlib

from pulsar_py.server.security.role_logging import RoleLogging


def test_the_ways_of_apache_pulsar() -> None:
    sha = base64.b64encode(hashlib.sha256(b"admin").digest()).decode()
    md5 = base64.b64encode(hashlib.md5(b"admin", usedforsecurity=False).digest()).decode()
    assert RoleLogging("NONE").text("admin") == "admin"
    assert RoleLogging("REDACTED").text("admin") == "[REDACTED]"
    assert RoleLogging("hash:SHA256").text("admin") == f"SHA-256:{sha}"
    assert RoleLogging("hash:MD5").text("admin") == f"MD5:{md5}"


def test_nobody_stays_nobody() -> None:
    for way in RoleLogging:
        assert way.text(None) is None
