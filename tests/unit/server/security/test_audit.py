"""What the audit log says, and how much of it."""

from __future__ import annotations

import logging

import pytest

from pulsar_py.common.log_format import fields_of
from pulsar_py.server.security.audit import LINES_A_SECOND, Audit
from pulsar_py.server.security.authorization import Caller
from pulsar_py.server.security.role_logging import RoleLogging
from pulsar_py.testing.clock import VirtualClock

ME = Caller("me", "you")


def request(audit: Audit, method: str, status: int, path: str = "/admin/v2/x") -> None:
    audit.on_request(
        ME, address="/192.0.2.1:1", method=method, path=path, action="write", status=status
    )


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pulsar_py.audit")


@pytest.mark.parametrize(
    ("method", "status", "event"),
    [
        ("PUT", 204, "changed"),
        ("POST", 307, "changed"),
        ("DELETE", 404, "failed"),
        ("POST", 500, "failed"),
        ("PUT", 403, "refused"),
        ("GET", 401, "refused"),
    ],
)
def test_a_request_has_a_line(
    method: str, status: int, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    audit = Audit(VirtualClock())
    request(audit, method, status)
    (record,) = caplog.records
    assert record.message == event
    assert record.levelno == (logging.WARNING if event == "refused" else logging.INFO)
    assert fields_of(record) == {
        "role": "me",
        "original_principal": "you",
        "remote_address": "/192.0.2.1:1",
        "action": "write",
        "method": method,
        "resource": "/admin/v2/x",
        "status": status,
    }
    assert audit.statistics().changes_count == (event == "changed")
    assert audit.statistics().authorization_refusals_count == (event == "refused")


def test_reading_has_none(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(VirtualClock())
    for method in ("GET", "HEAD", "OPTIONS"):
        request(audit, method, 200)
        request(audit, method, 404)
    assert not caplog.records


def test_commands_and_credentials_that_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(VirtualClock(), RoleLogging.REDACTED)
    audit.authorization_refused(ME, address="/a:1", action="produce", resource="t")
    audit.authentication_refused(address="/a:1", method_name="token\nx", reason="r" * 10_000)
    refused, failed = caplog.records
    assert fields_of(refused) == {
        "role": "[REDACTED]",
        "original_principal": "[REDACTED]",
        "remote_address": "/a:1",
        "action": "produce",
        "resource": "t",
    }
    assert fields_of(failed) == {
        "remote_address": "/a:1",
        "method": "token\\nx",
        "reason": "r" * 500,
    }


def test_a_flood_of_refusals_hides_no_change(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    audit = Audit(clock)
    for _ in range(LINES_A_SECOND + 7):
        request(audit, "GET", 401)
    assert len(caplog.records) == LINES_A_SECOND
    assert audit.statistics().left_out_lines_count == 7
    request(audit, "PUT", 204)
    assert caplog.records[-1].message == "changed"
    clock.jump(1)
    request(audit, "GET", 401)
    assert fields_of(caplog.records[-1])["left_out_before"] == 7
    request(audit, "GET", 401)
    assert "left_out_before" not in fields_of(caplog.records[-1])
    assert audit.statistics().authorization_refusals_count == LINES_A_SECOND + 9
