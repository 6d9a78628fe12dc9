"""The log of all HTTP requests, if `webServiceRequestLogEnabled` asks for it (edge).

A line for each answer goes to the logger `pulsar_py.requests`, without query, headers and body: any
of them may have secrets. While the setting is off, nothing stands between socket and application.

Source: the request log of Pulsar's WebService.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from pulsar_py.admin.http_messages import Response
from pulsar_py.admin.http_server import Application
from pulsar_py.common.loops.clock import Clock
from pulsar_py.server.security.peer import Peer

__all__ = ["logged"]

logger = logging.getLogger("pulsar_py.requests")

_SHOWN_CHARACTERS: Final = 500


def logged(application: Application, clock: Clock) -> Application:
    """The application with a log line for each answer."""

    async def answer(
        method: str, target: str, headers: Mapping[str, str], body: bytes, peer: Peer
    ) -> Response:
        started_at = clock.monotonic_seconds()
        response = await application(method, target, headers, body, peer)
        logger.info(
            "request",
            extra={
                "remote_address": peer.remote_address,
                "method": method,
                "path": target.partition("?")[0][:_SHOWN_CHARACTERS],
                "status": int(response.status),
                "bytes": len(response.body),
                "millis": round((clock.monotonic_seconds() - started_at) * 1000),
            },
        )
        return response

    return answer
