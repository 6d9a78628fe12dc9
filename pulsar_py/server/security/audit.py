"""`Audit`: the log of who changed what, and who was refused (edge).

Lines go to the logger `pulsar_py.audit`: INFO for what was done, WARNING for what was refused.
Roles are as `authenticationRoleLoggingAnonymizer` has them; credentials, queries and bodies are
never in a line. Refusals and changes each have a bound to their rate, so that nobody hides
the ones by a flood of the others, or fills a disk; what was left out is counted, and the next line
of its kind says how much it was.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from pulsar_py.common.loops.clock import Clock
from pulsar_py.common.token_bucket import TokenBucket
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.role_logging import RoleLogging

__all__ = ["LINES_A_SECOND", "Audit", "AuditStatistics"]

logger = logging.getLogger("pulsar_py.audit")

LINES_A_SECOND: Final = 100
"""The most lines of a kind; as many again at once."""

_SHOWN_CHARACTERS: Final = 500
_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class AuditStatistics(Struct, frozen=True, kw_only=True):
    """Figures since the start."""

    changes_count: int
    authorization_refusals_count: int
    left_out_lines_count: int


class Audit:
    """The audit log of one broker, which owns it."""

    def __init__(self, clock: Clock, role_logging: RoleLogging = RoleLogging.NONE) -> None:
        self._role_logging = role_logging
        self._changes = _Lines(logging.INFO, clock)
        self._refusals = _Lines(logging.WARNING, clock)
        self._changes_count = 0
        self._authorization_refusals_count = 0

    def statistics(self) -> AuditStatistics:
        """The figures as they are now."""
        return AuditStatistics(
            changes_count=self._changes_count,
            authorization_refusals_count=self._authorization_refusals_count,
            left_out_lines_count=self._changes.left_out_count + self._refusals.left_out_count,
        )

    def role_fields(self, caller: Caller | None) -> dict[str, object]:
        """The role of a caller as fields of a log line."""
        if caller is None:
            return {}
        fields: dict[str, object] = {"role": self._role_logging.text(caller.role)}
        if caller.original_principal is not None:
            fields["original_principal"] = self._role_logging.text(caller.original_principal)
        return fields

    def authentication_refused(
        self, *, address: str, method_name: str, reason: str, path: str = ""
    ) -> None:
        """Log a failed authentication; `path` is that of a request over HTTP."""
        fields: dict[str, object] = {"remote_address": address, "method": _shown(method_name)}
        if path:
            fields["path"] = _shown(path)
        self._refusals.write("authentication failed", {**fields, "reason": _shown(reason)})

    def authorization_refused(
        self, caller: Caller, *, address: str, action: str, resource: str
    ) -> None:
        """A client of the binary protocol may not do what it asked for."""
        self._authorization_refusals_count += 1
        fields = {"remote_address": address, "action": action, "resource": _shown(resource)}
        self._refusals.write("refused", {**self.role_fields(caller), **fields})

    def on_request(
        self,
        caller: Caller | None,
        *,
        address: str,
        method: str,
        path: str,
        action: str,
        status: int,
    ) -> None:
        """A request over HTTP was answered: a line if it changes something, or was refused."""
        is_refused = status in _REFUSED
        if method in _READING and not is_refused:
            return
        fields = {
            **self.role_fields(caller),
            "remote_address": address,
            "action": action,
            "method": method,
            "resource": _shown(path),
            "status": int(status),
        }
        if is_refused:
            self._authorization_refusals_count += 1
            self._refusals.write("refused", fields)
            return
        is_done = status < HTTPStatus.BAD_REQUEST
        self._changes_count += is_done
        self._changes.write("changed" if is_done else "failed", fields)


class _Lines:
    """Lines of one kind, at a bounded rate."""

    def __init__(self, level: int, clock: Clock) -> None:
        self._level = level
        self._clock = clock
        self._bucket = TokenBucket(LINES_A_SECOND, now=clock.monotonic_seconds())
        self._unsaid_count = 0  # left out since the last line
        self.left_out_count = 0  # since the start

    def write(self, event: str, fields: dict[str, object]) -> None:
        if not logger.isEnabledFor(self._level):
            return
        if not self._bucket.try_take(1, self._clock.monotonic_seconds()):
            self._unsaid_count += 1
            self.left_out_count += 1
            return
        if self._unsaid_count:
            fields = {**fields, "left_out_before": self._unsaid_count}
            self._unsaid_count = 0
        logger.log(self._level, event, extra=fields)


def _shown(text: str) -> str:
    """A text that others sent, of bounded length and on one line."""
    return text[:_SHOWN_CHARACTERS].replace("\n", "\\n").replace("\r", "\\r")
