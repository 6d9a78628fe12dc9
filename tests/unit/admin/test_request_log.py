"""A line for each request, without its secrets."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.request_log import logged
from pulsar_py.common.log_format import fields_of
from pulsar_py.server.security.peer import Peer
from pulsar_py.testing.clock import VirtualClock


async def test_what_a_line_says(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()

    async def application(
        method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        clock.jump(0.25)
        return Response(200, b"abc")

    caplog.set_level(logging.INFO, "pulsar_py.requests")
    headers = {"authorization": "Bearer secret"}
    target = "/admin/v2/clusters?token=secret"
    answer = await logged(application, clock)("GET", target, headers, b"secret", Peer("/a:1"))
    assert answer.body == b"abc"
    (record,) = caplog.records
    assert fields_of(record) == {
        "remote_address": "/a:1",
        "method": "GET",
        "path": "/admin/v2/clusters",
        "status": 200,
        "bytes": 3,
        "millis": 250,
    }
