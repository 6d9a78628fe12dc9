"""revoked_tokens: which tokens a file revokes, and when a changed file counts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pulsar_py.common.errors import ConfigurationError
from pulsar_py.server.security.revoked_tokens import RevokedTokens, parse_rules
from pulsar_py.testing.clock import VirtualClock

FILE = b"""
# stolen on Monday
jti 4f9c2a
sub reports iat 2000
sub reports iat 1000
sub gone
"""


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "me", "jti": "4f9c2a", "iat": 9999}, True),
        ({"sub": "me", "jti": "4f9c2", "iat": 9999}, False),
        ({"sub": "me"}, False),
        ({}, False),
        ({"sub": ["gone"], "jti": ["4f9c2a"]}, False),
        ({"sub": "gone", "iat": 9999}, True),
        ({"sub": "reports", "iat": 1999}, True),
        ({"sub": "reports", "iat": 2000}, False),
        ({"sub": "reports"}, True),
        ({"sub": "reports", "iat": "9999"}, True),
    ],
)
def test_which_tokens_are_revoked(claims: dict[str, object], *, expected: bool) -> None:
    assert parse_rules(FILE).match(claims) is expected


def test_all_tokens_that_are_older() -> None:
    rules = parse_rules(b"iat 500\niat 300\nsub reports iat 2000")
    assert rules.match({"sub": "me", "iat": 499})
    assert not rules.match({"sub": "me", "iat": 500.5})
    assert rules.match({"sub": "reports", "iat": 1999})
    assert rules.match({})


@pytest.mark.parametrize("line", ["4f9c2a", "jti", "jti a b", "sub a iat", "iat soon", "sub a b 1"])
def test_a_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2: expected jti ID, sub NAME"):
        parse_rules(b"\n" + line.encode())


def test_a_changed_file_counts_soon(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, clock = tmp_path / "revoked", VirtualClock()
    path.write_text("")
    revoked = RevokedTokens(str(path), clock)
    assert not revoked.has({"jti": "a"})
    path.write_text("jti a\n")
    clock.jump(0.5)
    assert revoked.has({"jti": "a"})
    path.write_text("nonsense\n")
    clock.jump(0.5)
    with caplog.at_level(logging.WARNING):
        assert revoked.has({"jti": "a"})
        path.unlink()
        for _ in range(10):
            clock.jump(0.5)
            assert revoked.has({"jti": "a"})
    assert len(caplog.records) == 2  # the line, and once that the file is gone


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="tokenRevocationFile"):
        RevokedTokens(f"file://{tmp_path}/none", VirtualClock())
