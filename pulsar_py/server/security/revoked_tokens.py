"""Tokens that no longer count, by a file that is read again when it changes (edge).

A file has a line for each rule, and comments that begin with `#`:

    jti 4f9c2a                  the token with this claim `jti`
    sub reports                 every token with this claim `sub`
    sub reports iat 1767225600  those of them issued before this second since 1970
    iat 1767225600              every token issued before

A token that does not say when it was issued counts as issued before. A line that is none of these
is refused at the start, naming it; later the former rules stay, with a warning.

Source: an extension; the claims are those of RFC 7519, 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.key_source import KeySource

__all__ = ["RevokedTokens", "Rules", "parse_rules"]

_EXPECTED: Final = "expected jti ID, sub NAME, sub NAME iat SECONDS or iat SECONDS"


@dataclass(frozen=True, slots=True)
class Rules:
    """Which tokens are revoked."""

    ids: frozenset[str] = frozenset()
    """Values of `jti`."""
    subjects: Mapping[str, float] = field(default_factory=dict)
    """The second before which a subject's tokens were issued; infinite: all of them."""
    issued_before: float = 0.0
    """The same for all tokens."""

    def match(self, claims: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a token with these claims is revoked."""
        token_id, subject = claims.get("jti"), claims.get("sub")
        if isinstance(token_id, str) and token_id in self.ids:
            return True
        before = self.issued_before
        if isinstance(subject, str):
            before = max(before, self.subjects.get(subject, 0.0))
        issued_at = claims.get("iat")
        return before > (issued_at if isinstance(issued_at, int | float) else 0)


def parse_rules(data: bytes) -> Rules:
    """The rules of a file.

    Raises:
        ValueError: A line is none; the text has its number.
    """
    ids: set[str] = set()
    subjects: dict[str, float] = {}
    issued_before = 0.0
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").splitlines(), start=1):
        match [] if line.startswith("#") else line.split():
            case []:
                pass
            case ["jti", value]:
                ids.add(value)
            case ["sub", value]:
                subjects[value] = float("inf")
            case ["sub", value, "iat", seconds] if seconds.isdecimal():
                subjects[value] = max(subjects.get(value, 0.0), int(seconds))
            case ["iat", seconds] if seconds.isdecimal():
                issued_before = max(issued_before, int(seconds))
            case _:
                raise ValueError(f"line {number}: {_EXPECTED}")
    return Rules(frozenset(ids), subjects, issued_before)


class RevokedTokens:
    """The rules as they are now; owned by the provider of tokens."""

    def __init__(self, path: str, clock: Clock) -> None:
        """Read the file that `tokenRevocationFile` names.

        Raises:
            ConfigurationError: It can't be read, or a line of it is wrong.
        """
        self._source = KeySource("tokenRevocationFile", path, parse_rules, is_secret=False)
        self._clock = clock

    def has(self, claims: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a token with these claims is revoked now."""
        return self._source.current().match(claims)

    def has_recently(self, claims: Mapping[str, Any]) -> bool:  # Any: JSON
        """The same as of at most `LOOK_AGAIN_SECONDS` ago: every connection asks twice a second."""
        return self._source.recent(self._clock.monotonic_seconds()).match(claims)
